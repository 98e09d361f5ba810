//! Writes a matrix that `scipy.sparse.load_npz` opens.

use std::io::Write;

use zt::{DType, Elements, Result};
use zt_foreign::{Incoming, Job, Outgoing, Sink};
use zt_zip::ArchiveWriter;

use super::{COL, FORMAT, INDICES, INDPTR, ROW, SHAPE, VALUES};
use crate::descr::{self, descr_of};
use crate::fault::NpyFault;
use crate::header::render;
use crate::npz::ENDING;

/// The roles of the values in both formats, and of the coordinates in `sparse_coo`.
const ROLE: &str = "values";
const COORDS: &str = "coords";

/// SciPy's indices have a sign. Those of a file that was checked are below 2^63.
const SIGNED: &str = "<i8";

/// An object that SciPy can hold: `sparse_csr`, or `sparse_coo` of two dimensions.
pub(in crate::npz) struct Matrix<'i> {
    object: Outgoing<'i>,
    layout: &'static str,
    shape: [i64; 2],
    /// NumPy's name of the values' type, and their number.
    descr: String,
    count: u64,
}

impl<'i> Matrix<'i> {
    /// The object as a matrix; `None` if it is none, or if NumPy does not have the type of its values.
    pub(in crate::npz) fn new(incoming: &Incoming<'i>) -> Option<Self> {
        let object = Outgoing::new(&Incoming { dtype: None, ..*incoming });
        let tensor = object.tensor;
        let layout = match tensor.format() {
            _ if tensor.fault().is_some() => return None,
            "sparse_csr" => "csr",
            "sparse_coo" => "coo",
            _ => return None,
        };
        let [rows, columns] = *tensor.shape() else {
            return None;
        };
        let values = tensor.object().component(ROLE)?;
        let (dtype, logical_type) = (values.dtype?, values.logical_type.as_deref());
        let byte_len = tensor.decoded_len(ROLE).ok()?;
        Some(Matrix {
            layout,
            shape: [i64::try_from(rows).ok()?, i64::try_from(columns).ok()?],
            descr: descr_of(dtype, logical_type)?,
            count: byte_len.checked_div(descr::byte_len(dtype, logical_type))?,
            object,
        })
    }

    /// Writes the archive. SciPy does not check all indices, so they are checked before.
    pub(in crate::npz) fn write(&self, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        let blame = |error| self.object.blame(error);
        self.object.tensor.check_data().map_err(blame)?;
        job.rest(&self.object, &[]);
        job.check()?;
        let elements = |role| self.object.tensor.elements(role).map_err(blame);
        let mut archive = ArchiveWriter::new(sink);
        if self.layout == "csr" {
            for role in [INDICES, INDPTR] {
                let indices = elements(role)?;
                array(&mut archive, role, &indices, &indices.bytes)?;
            }
        } else {
            let coords = elements(COORDS)?;
            let (rows, columns) = coords.bytes.split_at(coords.bytes.len() / 2);
            array(&mut archive, ROW, &coords, rows)?;
            array(&mut archive, COL, &coords, columns)?;
        }
        let layout = self.layout.as_bytes();
        member(&mut archive, FORMAT, "|S3", &[], layout.len() as u64, |out| {
            Ok(out.write_all(layout)?)
        })?;
        let shape = self.shape.map(i64::to_le_bytes).concat();
        member(&mut archive, SHAPE, SIGNED, &[2], shape.len() as u64, |out| {
            Ok(out.write_all(&shape)?)
        })?;
        let byte_len = self.object.tensor.decoded_len(ROLE)?;
        let progress = job.options.progress;
        member(&mut archive, VALUES, &self.descr, &[self.count], byte_len, |out| {
            self.object.write_role(ROLE, byte_len, out, progress).map(drop)
        })?;
        archive.finish()?.flush()?;
        job.written(self.object.name(), byte_len, None)
    }
}

type Archive<'s, 'w> = ArchiveWriter<'s, Sink<'w>>;

/// Writes indices that have the type of `all`.
fn array(
    archive: &mut Archive<'_, '_>,
    name: &str,
    all: &Elements<'_>,
    indices: &[u8],
) -> Result<()> {
    let dtype = if all.dtype == DType::U64 { DType::I64 } else { all.dtype };
    let what = "indices are integers";
    let descr = descr_of(dtype, None)
        .ok_or_else(|| NpyFault::Unsupported { descr: dtype.to_string(), what })?;
    let byte_len = indices.len() as u64;
    let count = byte_len.strict_div(all.dtype.byte_len() as u64);
    member(archive, name, &descr, &[count], byte_len, |out| Ok(out.write_all(indices)?))
}

#[expect(clippy::expect_used, reason = "no shape here has more than one dimension")]
fn member(
    archive: &mut Archive<'_, '_>,
    name: &str,
    descr: &str,
    shape: &[u64],
    byte_len: u64,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let header = render(descr, shape).expect("a header of one dimension is short");
    let byte_len = byte_len.strict_add(header.len() as u64);
    let mut member = archive.begin(format!("{name}{ENDING}"), byte_len)?;
    member.write_all(&header)?;
    write(&mut member)?;
    member.finish()?;
    Ok(())
}
