//! Deltas applied to a file in its place.

use std::collections::HashSet;

use zt::{Editor, Progress, Result};
use zt_foreign::Input;

use crate::delta::patch::{IS_RESULT, Patch};

/// Makes the result of `deltas` of the file that is being edited, which is their base. Objects that changed are
/// written behind its end, and the others stay where they are; renamed ones are written again. The caller
/// commits. Returns the number of objects that were written; `None` if the file is the result
/// already, and the edit is as it was.
///
/// Everything is checked before, as [`Patch`] does it, so an error leaves the edit as it was. `progress`
/// counts as there, and then the bytes that are written.
///
/// # Errors
///
/// As [`Patch::open`]; as [`Editor::remove`] and [`zt::Writer::copy`].
///
/// ```
/// use zt::{Dense, File, Writer};
/// use zt_convert::Input;
/// use zt_model::{delta, patch_in_place};
///
/// let folder = tempfile::tempdir()?;
/// let paths = ["old.zt", "new.zt"].map(|name| folder.path().join(name));
/// for (path, value) in paths.iter().zip([1.0f32, 2.0]) {
///     let mut writer = Writer::create(path)?;
///     writer.add("w", &Dense::from_slice(&[1], &[value])?)?;
///     writer.finish()?;
/// }
/// let mut bytes = Vec::new();
/// let [old, new] = [File::open(&paths[0])?, File::open(&paths[1])?];
/// delta(&old.into(), &new.into(), &mut bytes, None)?;
/// let mut edit = File::edit(&paths[0])?;
/// patch_in_place(&mut edit, &[File::from_bytes(bytes)?.into()], None)?;
/// edit.commit()?;
/// assert_eq!(*File::open(&paths[0])?.tensor("w")?.values::<f32>()?, [2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn patch_in_place(
    edit: &mut Editor,
    deltas: &[Input],
    progress: Option<Progress<'_>>,
) -> Result<Option<u64>> {
    let before = edit.before().clone();
    let path = edit.path().map(ToOwned::to_owned);
    let base = Input::new(before.clone(), path.into_iter().collect());
    let result = Patch::new(&base, deltas).progress(progress).open()?;
    if result.file().warnings().iter().any(|warning| warning.code == IS_RESULT) {
        return Ok(None);
    }
    // An object that no delta has is the object of the base.
    let names = deltas.iter().flat_map(|delta| delta.file().names());
    let changed: HashSet<&str> = names.collect();
    for name in before.names() {
        if changed.contains(name) || result.file().get(name).is_none() {
            edit.remove(name)?;
        }
    }
    let mut written = 0u64;
    for tensor in result.file().tensors() {
        let tensor = tensor?;
        if !changed.contains(tensor.name()) {
            continue;
        }
        edit.writer().copy(tensor.name(), &tensor)?;
        written = written.strict_add(1);
        if let Some(progress) = progress {
            let lens = tensor.components().map(|(role, _)| tensor.decoded_len(role));
            progress.report(lens.sum::<Result<u64>>()?)?;
        }
    }
    edit.writer().check_copied()?;
    edit.set_attributes(result.file().attributes()?)?;
    Ok(Some(written))
}
