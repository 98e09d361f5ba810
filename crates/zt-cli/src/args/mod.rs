//! Groups of arguments that several commands share, and the parsers of values.
//!
//! | group | commands | |
//! | --- | --- | --- |
//! | [`files`] | `ls`, `info`, `stats`, `verify`, `hash` | several files and folders, `--recursive` |
//! | [`input`] | all that read files of any kind | `--names`, `--ml-dtype`, `--allow-http`, `--requests` |
//! | [`select`], a part of `input` | the same | `--include`, `--exclude`, `--rename`, `--rename-from` |
//! | [`jobs`] | all that use several threads | `--jobs` |
//! | [`convert`] | `convert`, `merge`, `split`, `append` | `--from`, `--dense`, `--dtype`, `--drop-unsupported` |
//! | [`write`], a part of `convert` | the same | `--zstd`, `--planes`, `--digest`, `--align`, `--no-dedup` |
//! | [`edit`] | all that edit a file | the file, `--dry-run`, `--wait` |
//!
//! [`names`] suggests the name that a user meant, and [`complete`] completes it in a shell. [`rewrite`] edits a
//! file that cannot be edited in place. [`glob`], [`size`] and [`value`] parse a pattern, a number of bytes
//! and an attribute.
//!
//! It must not know: the commands.

pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod edit;
pub(crate) mod files;
pub(crate) mod glob;
pub(crate) mod hints;
pub(crate) mod input;
pub(crate) mod jobs;
pub(crate) mod rewrite;
pub(crate) mod select;
pub(crate) mod size;
pub(crate) mod value;
pub(crate) mod write;
