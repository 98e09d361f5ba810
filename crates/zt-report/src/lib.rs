//! One HTML page that shows a model: its modules by size, its objects, their values, and what changed.
//!
//! Place in the graph: above `zt`, below `zt-cli`.
//!
//! [`Report`] is a value: statistics as [`zt::stats`] and [`zt::diff`] find them. [`Report::to_html`] puts it as JSON
//! into a page, beside a script that draws it. The script is `assets/page.js`, which `cargo xtask page` makes of the
//! sources in `page/`. Nothing is drawn in Rust.
//!
//! ```
//! use zt::{Dense, File, Writer};
//! use zt_report::{Report, ReportOptions};
//!
//! let mut bytes = Vec::new();
//! let mut writer = Writer::new(&mut bytes)?;
//! writer.add("layers.0.weight", &Dense::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
//! writer.finish()?;
//!
//! let report = Report::of(&File::from_bytes(bytes)?, "model.zt", &ReportOptions::new())?;
//! assert_eq!(report.objects[0].name, "layers.0.weight");
//! let page = report.to_html(ReportOptions::new().limit());
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! Names and texts of files are not trusted. They reach the page as data, the script sets them as text, and a
//! content security policy forbids every other script, every style and every request.
//!
//! Invariant: this crate opens no file and writes none.
#![forbid(unsafe_code)]

mod collect;
mod delta;
mod odd;
mod page;
mod report;

pub use collect::ReportOptions;
pub use odd::{Odd, digits, odd};
pub use report::{
    Change, Delta, DeltaSummary, FileSummary, Finding, Findings, Object, Report, Status,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
