//! Room `structures`: the structures of the specification, each parsed and checked.
//!
//! | module | holds |
//! | --- | --- |
//! | `superblock`, `object_header`, `shared`, `common` | where a file begins; messages; messages that objects share |
//! | `group`, `attribute` | links and attributes, in headers, heaps and trees |
//! | `dataspace`, `datatype`, `number`, `bit_layout`, `fill_value`, `layout` | the messages of a dataset |
//! | `chunk_index`, `grid` | the addresses and the places of chunks |
//! | `btree1`, `btree2`, `array`, `fixed_array`, `extensible_array` | indices |
//! | `fractal_heap`, `global_heap` | heaps |
//!
//! A function that reads structures gives errors of the codes `header`, `version`, `bounds` and
//! `structure-limit`. Its page names only what it refuses besides.
//!
//! It must not know how values are read or decoded.

mod array;
pub(crate) mod attribute;
pub(crate) mod bit_layout;
mod btree1;
mod btree2;
pub(crate) mod chunk_index;
pub(crate) mod common;
pub(crate) mod dataspace;
pub(crate) mod datatype;
mod extensible_array;
pub(crate) mod fill_value;
mod fixed_array;
mod fractal_heap;
mod global_heap;
pub(crate) mod grid;
pub(crate) mod group;
pub(crate) mod layout;
pub(crate) mod number;
pub(crate) mod object_header;
mod shared;
pub(crate) mod superblock;
