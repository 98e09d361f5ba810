//! Room `bytes`: the bytes of a file, read by address and counted.
//!
//! | module | holds |
//! | --- | --- |
//! | `store` | reads structures by their addresses, and counts their bytes against a budget |
//! | `cursor` | reads the fields of one structure in order |
//! | `size` | the widths of addresses and lengths, and sums that cannot overflow |
//! | `bits`, `checksum`, `name` | packed numbers; lookup3 and fletcher32; names as text |
//! | `budget` | bytes that a file may cause to be read or made |
//! | `fault` | every fault of HDF5, with its code |
//!
//! It must not know any structure of HDF5, nor a filter.

pub(crate) mod bits;
pub(crate) mod budget;
pub(crate) mod checksum;
pub(crate) mod cursor;
pub(crate) mod fault;
pub(crate) mod name;
pub(crate) mod size;
pub(crate) mod store;
