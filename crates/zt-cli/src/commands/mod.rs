//! The commands, one file for each.
//!
//! A command asks the library, prints a document or text, and gives an exit code. No command uses
//! another. [`each`] asks a command about each of several files, and [`converted`] writes what a command makes
//! of its inputs.

pub(crate) mod append;
pub(crate) mod average;
pub(crate) mod bench;
pub(crate) mod cat;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod converted;
pub(crate) mod delta;
pub(crate) mod diff;
mod each;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod fetch;
pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod meta;
pub(crate) mod patch;
pub(crate) mod prove;
pub(crate) mod quantize;
pub(crate) mod rename;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod rm;
pub(crate) mod seal;
pub(crate) mod show;
pub(crate) mod sign;
pub(crate) mod split;
pub(crate) mod stats;
pub(crate) mod verify;
