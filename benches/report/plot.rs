//! The plot: how many times zt's time each other contestant takes, operation by operation.
//!
//! Written as text, because a library for plots would be larger than all of this crate. Colours
//! follow the reader's scheme, so that it can be read in light and in dark.

use std::fmt::Write;

use crate::contest::{Role, Standing, Timed};
use crate::contestants::{peer_safetensors, peer_ztensor1, peer_ztensor2};

const LEFT: f64 = 330.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 64.0;
const ROW: f64 = 26.0;
/// The axis, in multiples of our time; what is beyond is drawn at its end, with its number.
const LEAST: f64 = 0.125;
const MOST: f64 = 64.0;

/// The peers, each with its class of colour.
const FAMILIES: [(&str, &str); 3] =
    [(peer_safetensors::NAME, "a"), (peer_ztensor1::NAME, "b"), (peer_ztensor2::NAME, "c")];

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.small{font-size:11px;fill:#59636e}\
.grid{stroke:#d1d9e0;stroke-width:1}\
.ours{stroke:#1a7f37;stroke-width:2}\
.a{fill:#0969da}.b{fill:#bc4c00}.c{fill:#8250df}\
.limit{fill:none;stroke:#59636e;stroke-width:2}\
@media(prefers-color-scheme:dark){\
text{fill:#f0f6fc}.small{fill:#9198a1}.grid{stroke:#3d444d}.ours{stroke:#3fb950}\
.a{fill:#4493f8}.b{fill:#f0883e}.c{fill:#ab7df8}.limit{stroke:#9198a1}}";

/// One row for each operation: a dot for the first way of each peer, a ring for the limit that a
/// target names, else for the quickest.
pub(super) fn svg(standings: &[Standing]) -> String {
    let height = TOP + ROW * standings.len() as f64 + 30.0;
    let bottom = height - 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Times of peers and limits as multiples of zt's\">\n<style>{STYLE}</style>\n"
    );
    legend(&mut svg);
    let mut at = LEAST;
    while at <= MOST {
        let x = place(at);
        let class = if at == 1.0 { "ours" } else { "grid" };
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at}x</text>",
            TOP - 8.0,
            bottom + 16.0,
        );
        at *= 2.0;
    }
    for (row, standing) in standings.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 14.0,
            y + 4.0,
            standing.id,
        );
        if let Some(limit) = limit(standing) {
            mark(&mut svg, standing, limit, "limit", y);
        }
        for (family, class) in FAMILIES {
            let first = standing.results.iter().find(|timed| timed.name.starts_with(family));
            if let Some(timed) = first {
                mark(&mut svg, standing, timed, class, y);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String) {
    let _ = writeln!(
        svg,
        "<text x=\"10\" y=\"20\">Time as a multiple of zt's: right of the green line is slower than zt</text>"
    );
    let mut x = LEFT;
    let names = FAMILIES.iter().copied().chain([("limit of the machine", "limit")]);
    for (name, class) in names {
        let _ = writeln!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"38\" r=\"5\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"42\">{name}</text>",
            x + 10.0,
        );
        x += 120.0;
    }
}

fn mark(svg: &mut String, standing: &Standing, timed: &Timed, class: &str, y: f64) {
    let multiple = standing.speed_against(timed);
    let x = place(multiple.clamp(LEAST, MOST));
    let _ = writeln!(
        svg,
        "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}: {multiple:.2}x</title></circle>",
        escaped(&timed.name),
    );
    if !(LEAST..=MOST).contains(&multiple) {
        let _ = writeln!(
            svg,
            "<text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">{multiple:.*}x</text>",
            x + 8.0,
            y + 4.0,
            if multiple < LEAST { 2 } else { 0 },
        );
    }
}

fn limit(standing: &Standing) -> Option<&Timed> {
    let limits = || standing.results.iter().filter(|timed| timed.role == Role::Limit);
    let named = |timed: &&Timed| {
        let mut targets = standing.targets.iter();
        targets.any(|target| target.against == timed.name)
    };
    limits()
        .find(named)
        .or_else(|| limits().min_by(|one, other| one.median().total_cmp(&other.median())))
}

/// Where a multiple of our time is on the axis, which is logarithmic.
fn place(multiple: f64) -> f64 {
    let right = WIDTH - 40.0;
    LEFT + (right - LEFT) * (multiple / LEAST).ln() / (MOST / LEAST).ln()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
