//! `zt diff --summary`: how far two versions are from each other, by object or by module.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use zt::File;
use zt::diff::{Distance, Summary};
use zt::manifest::Text;

use super::{Arguments, Text as Lines, bodies, judged, no_difference};
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::table::Table;
use crate::output::text::{self, cell, count, digits};
use crate::output::tree::{Order, Summed, tree};
use crate::output::value::Float;

/// Prints the summary of two files.
pub(super) fn print(
    arguments: &Arguments,
    [first, second]: [&File; 2],
    summary: Summary,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (mut rows, mut changed) = (Vec::new(), Vec::new());
    for object in summary.objects {
        match object.distance {
            Ok(distance) => rows.push((object.name, Figures(distance))),
            Err(changes) => changed.push((object.name, changes)),
        }
    }
    rows.sort_by_key(|(_, figures)| Reverse(figures.size()));
    let all = changed.iter_mut().flat_map(|(_, changes)| changes);
    let (unreadable, is_unlike) = judged(all, arguments, output);
    let named: Vec<_> = rows.iter().map(|(name, row)| (name.as_str(), *row)).collect();
    let depth = arguments.depth.map_or(usize::MAX, usize::from);
    let branches = arguments.tree.then(|| tree(&named, Order::Size, depth));
    let same = named.iter().filter(|(_, row)| row.0.different == 0).count();
    let (only_a, only_b) = (&summary.only_a, &summary.only_b);
    let mut types: BTreeMap<(Option<Text>, Option<Text>), u64> = BTreeMap::new();
    for (name, _) in &named {
        let of = |file: &File| file.tensor(name).ok()?.value_type();
        let (a, b) = (of(first), of(second));
        if a != b {
            *types.entry((a, b)).or_default() += 1;
        }
    }
    let is_same = same == named.len() && only_a.is_empty() && only_b.is_empty();

    let printed = if output.json {
        let objects = named.iter().map(|(name, figures)| Row { name, figures });
        let others = changed.iter();
        let others = others.map(|(name, changes)| object! { name, changes: bodies(changes) });
        let types = types.iter();
        let types = types.map(|((a, b), objects)| object! { a, b, objects });
        output.document(&object! {
            a: path_text(&arguments.a),
            b: path_text(&arguments.b),
            objects: objects.collect::<Vec<_>>(),
            tree: &branches,
            types: types.collect::<Vec<_>>(),
            changed: others.collect::<Vec<_>>(),
            only_a,
            only_b,
            unchanged: same,
        })
    } else {
        let mut lines = Vec::new();
        if same < named.len() {
            let table = match &branches {
                Some(branches) => table(branches.iter().map(|it| (it.label(), it.sums))),
                None => {
                    let moved = named.iter().filter(|(_, row)| row.0.different > 0);
                    table(moved.map(|(name, row)| (cell(name).into_owned(), *row)))
                }
            };
            lines.push(table.render(output.colored()));
        }
        let names = [&arguments.a, &arguments.b].map(|path| text::path(path));
        let text = Lines { names, first };
        for (name, changes) in &changed {
            lines.extend(text.of_object(name, changes));
        }
        for ((a, b), objects) in &types {
            let [a, b] = [a, b].map(|name| name.as_deref().map_or("none".into(), cell));
            lines.push(format!("{}: dtype {a} -> {b}", count(*objects, "object", "objects")));
        }
        lines.extend(text.only(only_a, only_b));
        lines.push(if is_same && changed.is_empty() {
            no_difference(same as u64)
        } else {
            let number = named.len() - same + changed.len();
            text.total(number, only_a, only_b, same as u64)
        });
        output.line(&lines.join("\n"))
    };
    let exit = if is_same && !is_unlike { of_findings(&unreadable) } else { Exit::Failed };
    Failure::unless_closed(printed).map(|()| exit)
}

/// A distance as keys of JSON.
#[derive(Clone, Copy, Default)]
struct Figures(Distance);

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let distance = &self.0;
        object! {
            count: distance.count,
            different: distance.different,
            not_finite: distance.not_finite,
            relative: Float(distance.relative()),
            cosine: distance.cosine(),
            max_abs: Float(distance.max_abs),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct Row<'r> {
    name: &'r str,
    #[serde(flatten)]
    figures: &'r Figures,
}

impl Summed for Figures {
    fn add(&mut self, other: &Self) {
        self.0.append(&other.0);
    }

    /// The largest change first, and before it NaN and infinities, which have no distance.
    fn size(&self) -> u64 {
        match self.0.not_finite {
            // Numbers that are not negative have the order of their bits.
            0 => self.0.relative().to_bits(),
            _ => u64::MAX,
        }
    }
}

fn table(rows: impl Iterator<Item = (String, Figures)>) -> Table {
    let mut table =
        Table::new(&["NAME", ">CHANGE", ">COSINE", ">MAX ABS", ">DIFFERENT", ">NAN, INF"]);
    for (name, Figures(distance)) in rows {
        let share = 100.0 * distance.different as f64 / distance.count.max(1) as f64;
        let not_finite = match distance.not_finite {
            0 => "-".to_owned(),
            number => number.to_string(),
        };
        let cells = [
            name,
            digits(distance.relative()),
            distance.cosine().map_or("-".to_owned(), digits),
            digits(distance.max_abs),
            format!("{share:.1} %"),
            not_finite,
        ];
        table.marked_row(distance.not_finite > 0, cells);
    }
    table
}
