#![doc = include_str!("../README.md")]
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
