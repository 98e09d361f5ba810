//! Writes an archive that `numpy.load` opens.

use std::collections::HashSet;
use std::io::Write;

use zt::Result;
use zt::foreign::ReadAhead;
use zt_foreign::{FileWriter, Job, Loss, Merged, Sink};
use zt_zip::ArchiveWriter;

use super::scipy::Matrix;
use super::{ENDING, Npz};
use crate::write::Array;

/// An array with the name and the length of its member. `None` if losses are allowed and no member
/// can have the name, or NumPy would find another array by it. `taken` has the arrays' names.
fn member<'i>(
    job: &mut Job<'_>,
    array: Array<'i>,
    taken: &mut HashSet<&'i str>,
) -> Result<Option<(String, u64, Array<'i>)>> {
    let name = format!("{}{ENDING}", array.name());
    // NumPy looks for a member with the name itself, then with `.npy` added.
    let short = array.name().strip_suffix(ENDING);
    let is_own = !taken.contains(&*name) && !short.is_some_and(|short| taken.contains(short));
    match array.byte_len() {
        Some(byte_len) if is_own && ArchiveWriter::<Sink<'_>>::takes(&name) => {
            taken.insert(array.name());
            Ok(Some((name, byte_len, array)))
        }
        _ => {
            job.accept(Loss::Name, Some(array.name()));
            Ok(None)
        }
    }
}

impl FileWriter for Npz {
    /// Writes every object as a stored member in the order of the inputs. Elements begin at a multiple of
    /// 64. The same objects give the same bytes.
    ///
    /// A single sparse matrix is written as SciPy saves it, and a reader takes the name of the file.
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        job.refuse_attributes(merged.attributes.as_ref(), &merged.extra);
        if let [incoming] = &*merged.objects
            && !job.options.dense
            && let Some(matrix) = Matrix::new(incoming)
        {
            return matrix.write(sink, job);
        }
        let mut arrays = Vec::with_capacity(merged.objects.len());
        let mut taken = HashSet::new();
        for incoming in &merged.objects {
            let array = Array::new(incoming, job)?;
            let member = array.map(|array| member(job, array, &mut taken));
            let member = member.transpose()?;
            arrays.extend(job.kept(incoming, member.flatten()));
        }
        job.check()?;
        let mut archive = ArchiveWriter::new(sink);
        let mut ahead = ReadAhead::new(arrays.iter().map(|(.., array)| array.tensor()));
        for (name, byte_len, array) in arrays {
            ahead.advance();
            let mut member = archive.begin(name, byte_len)?;
            array.write(&mut member, job)?;
            member.finish()?;
        }
        archive.finish()?.flush()?;
        Ok(())
    }
}
