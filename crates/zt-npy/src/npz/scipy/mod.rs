//! A sparse matrix of SciPy, as `scipy.sparse.save_npz` writes it: one per archive.
//!
//! | `format` | members beside `format`, `shape` and `data` | object |
//! | --- | --- | --- |
//! | csr | `indices`, `indptr` | `sparse_csr` |
//! | csc, bsr | `indices`, `indptr` | `sparse_coo`, in the order of the values |
//! | coo | `row`, `col` | `sparse_coo` |
//! | dia | `offsets` | `sparse_coo`, without the values beyond the matrix |
//!
//! Archives with any other member are plain arrays. The archive has no name for its matrix, so the matrix
//! gets the name of the file.

mod read;
mod write;

pub(super) use read::add;
pub(super) use write::Matrix;

/// The names of the members, without `.npy`.
const FORMAT: &str = "format";
const SHAPE: &str = "shape";
const VALUES: &str = "data";
const INDICES: &str = "indices";
const INDPTR: &str = "indptr";
const ROW: &str = "row";
const COL: &str = "col";
const OFFSETS: &str = "offsets";
/// Whether SciPy makes a `sparray` of it, and no `spmatrix`. Newer versions write it.
const IS_ARRAY: &str = "_is_array";
