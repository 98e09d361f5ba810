//! Tables for notebooks. They escape every text of a file.

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
    let mut table = "<table><thead><tr>".to_owned();
    HEAD.iter()
        .for_each(|head| table.push_str(&format!("<th>{head}</th>")));
    table.push_str("</tr></thead><tbody>");
    rows.iter().for_each(|row| table.push_str(row));
    table.push_str("</tbody></table>");
    if let Some(left) = count.checked_sub(rows.len()).filter(|left| *left > 0) {
        table.push_str(&format!("<p>and {left} more</p>"));
    }
    table
}

fn cells(texts: &[&str]) -> String {
    let mut row = "<tr>".to_owned();
    for text in texts {
        row.push_str("<td>");
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let text = text.replace('>', "&gt;").replace('"', "&quot;");
        row.push_str(&text.replace('\'', "&#39;"));
        row.push_str("</td>");
    }
    row + "</tr>"
}
