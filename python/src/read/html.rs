//! The small form of a report, for notebooks: totals, tables and histograms. Every text of a file is escaped.

use std::collections::BTreeMap;

use zt::File;
use zt::stats::{Histogram, ObjectStats};

use crate::read::tensor::Tensor;
use crate::share::error::Result;

/// The most rows of a table.
pub(crate) const MOST: usize = 50;

/// The row of a tensor.
pub(crate) fn row(tensor: &Tensor) -> Result<String> {
    let handle = tensor.tensor();
    let shape: Vec<String> = handle.shape().iter().map(u64::to_string).collect();
    Ok(cells(&[
        tensor.name(),
        &shape.join(" × "),
        tensor.dtype().as_deref().unwrap_or(""),
        handle.format(),
        &tensor.nbytes().map_or(String::new(), human),
    ]))
}

/// `512 B`, `1.5 KiB`, `250.0 MiB`, as the program prints them.
pub(crate) fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in units {
        // 1023.95 would be printed as 1024.0 of the smaller unit.
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" {
        return format!("{bytes} B");
    }
    format!("{value:.1} {unit}")
}

/// The row of a tensor that cannot be read.
pub(crate) fn faulty(name: &str, error: &zt::Error) -> String {
    cells(&[name, "", "", &error.message(), ""])
}

/// The table with these rows, of a file with `count` tensors.
pub(crate) fn table(rows: &[String], count: usize) -> String {
    const HEAD: [&str; 5] = ["name", "shape", "dtype", "format", "size"];
    let mut table = head(&HEAD);
    rows.iter().for_each(|row| table.push_str(row));
    table.push_str("</tbody></table>");
    if let Some(left) = count.checked_sub(rows.len()).filter(|left| *left > 0) {
        table.push_str(&format!("<p>and {left} more</p>"));
    }
    table
}

/// `gguf, 272 tensors, 134515008 parameters, 93.8 MiB: q4_1 72.9 MiB, q8_0 20.7 MiB`: the largest types first.
pub(crate) fn totals(file: &File) -> String {
    const TYPES: usize = 8;
    let (mut parameters, mut all, mut types) = (0u64, 0u64, BTreeMap::<String, u64>::new());
    for tensor in file.tensors().flatten() {
        parameters = parameters.saturating_add(tensor.element_count().unwrap_or(u64::MAX));
        let lens = tensor
            .components()
            .map(|(_, it)| it.blob.decoded_len.unwrap_or(it.blob.span.byte_len()));
        let bytes = lens.fold(0, u64::saturating_add);
        all = all.saturating_add(bytes);
        let of_type = tensor.value_type().unwrap_or("unknown".into()).into_owned();
        let sum = types.entry(of_type).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let mut types: Vec<(String, u64)> = types.into_iter().collect();
    types.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let types = types.iter().take(TYPES);
    let types: Vec<String> =
        types.map(|(name, bytes)| format!("{name} {}", human(*bytes))).collect();
    let (kind, count, all) = (file.kind(), file.len(), human(all));
    let text =
        format!("{kind}, {count} tensors, {parameters} parameters, {all}: {}", types.join(", "));
    format!("<p>{}</p>", escaped(&text))
}

/// The figures of a tensor, or of a sample of its values, and its histogram.
pub(crate) fn figures(stats: &ObjectStats, is_sample: bool) -> String {
    let values = &stats.values;
    let Some(finite) = values.finite else {
        return String::new();
    };
    let mut html = head(&["min", "max", "mean", "std", "zeros", "NaN", "inf"]);
    let [min, max] = [finite.min, finite.max].map(|bound| bound.to_string());
    let [mean, std] = [finite.mean, finite.std].map(|value| format!("{value:.6e}"));
    let counts = [values.zeros, values.nan, values.inf].map(|count| count.to_string());
    let [zeros, nan, inf] = &counts;
    html.push_str(&cells(&[&min, &max, &mean, &std, zeros, nan, inf]));
    html.push_str("</tbody></table>");
    if is_sample {
        html.push_str(&format!("<p>of a sample of {} values</p>", values.count));
    }
    let histogram = stats.sketch.as_ref().and_then(|it| it.histogram.as_ref());
    html + &histogram.map_or(String::new(), bars)
}

fn bars(histogram: &Histogram) -> String {
    const HEIGHT: f64 = 60.0;
    let most = histogram.counts.iter().max().copied().unwrap_or(1) as f64;
    let mut svg = format!(
        "<svg width=\"{}\" height=\"{HEIGHT}\" fill=\"currentColor\">",
        5 * histogram.counts.len()
    );
    for (at, count) in histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // One value among millions is seen.
        let height = (*count as f64 / most * HEIGHT).max(1.0);
        let (x, y) = (5 * at, HEIGHT - height);
        svg.push_str(&format!("<rect x=\"{x}\" y=\"{y:.1}\" width=\"4\" height=\"{height:.1}\"/>"));
    }
    svg + "</svg>"
}

fn head(names: &[&str]) -> String {
    let mut table = "<table><thead><tr>".to_owned();
    names.iter().for_each(|name| table.push_str(&format!("<th>{name}</th>")));
    table + "</tr></thead><tbody>"
}

fn cells(texts: &[&str]) -> String {
    let mut row = "<tr>".to_owned();
    for text in texts {
        row.push_str("<td>");
        row.push_str(&escaped(text));
        row.push_str("</td>");
    }
    row + "</tr>"
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\'', "&#39;")
}
