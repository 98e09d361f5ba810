//! Adds the objects of other files to an existing `.zt` file.

use std::collections::HashSet;

use zt::{Editor, Error, Result, Tensor};
use zt_foreign::{ConvertOptions, Fault, Incoming, Input, Job, Merged, OnDuplicate, Summary};

use crate::merge::{check_is_no_input, join_slices, merge, replaces, united};
use crate::native::{ZT, write_objects};
use crate::table::Kinds;

impl Kinds {
    /// Adds the objects of all `inputs`, in the order of the inputs and of their data, to a file that is
    /// being edited. The caller commits the edit; dropping it discards what was added.
    ///
    /// Attributes and unknown fields that the file lacks are added; existing ones stay, with a warning
    /// where an input has another value. The options of the edit decide how objects are stored:
    /// [`ConvertOptions::target`] and [`ConvertOptions::write`] are ignored. Space for objects that are
    /// stored unchanged is reserved first. The length in the summary is the file's length before the
    /// edit, because the new one is known after the commit.
    ///
    /// A component whose bytes the file or an earlier input has already is not stored again, however
    /// it would be stored, unless [`ConvertOptions::deduplicate`] is off. Digests tell most components
    /// of one length apart; the bytes of the others are compared, and a hash never decides.
    ///
    /// ```
    /// use zt_convert::{ConvertOptions, Input, Kinds, ZT};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("model.zt");
    /// zt::Writer::create(&path)?.finish()?;
    /// let mut bytes = Vec::new();
    /// let mut writer = zt::Writer::new(&mut bytes)?;
    /// writer.add("bias", &zt::Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    /// writer.finish()?;
    /// let input = Input::from(zt::File::from_bytes(bytes)?);
    ///
    /// let mut edit = zt::File::edit(&path)?;
    /// Kinds::builtin().append(&[input], &mut edit, &ConvertOptions::new(ZT))?;
    /// edit.commit()?;
    /// assert_eq!(zt::File::open(&path)?.names().collect::<Vec<_>>(), ["bias"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The fault of any object of an input or of the file: no object is dropped silently. Code
    /// `duplicate-name` for a name that the file has already, unless [`ConvertOptions::on_duplicate`]
    /// chooses one of the two objects; `overwrite` for an input that is the file
    /// itself; `unsupported` for an object without the requested dense value; [`zt::ErrorKind::Io`], for
    /// a full disk before anything is changed; [`zt::ErrorKind::Interrupted`].
    pub fn append(
        &self,
        inputs: &[Input],
        edit: &mut Editor,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        edit.check()?;
        if let Some(path) = edit.path() {
            check_is_no_input(path, inputs).map_err(|error| error.with_path(path))?;
        }
        let mut job = Job::new(ZT, options);
        job.summary.byte_len = edit.before().byte_len();
        let inputs = &*self.in_dialect(join_slices(inputs)?, options)?;
        let mut merged = merge(self, inputs, &mut job)?;
        settle_names(&mut merged, edit, &mut job)?;
        if let Some(added) = merged.attributes {
            let first = edit.attributes().cloned().unwrap_or_default();
            edit.set_attributes(united([first, added], &mut job)?)?;
        }
        let extra = united([edit.extra().clone(), merged.extra], &mut job)?;
        edit.writer().set_extra(extra)?;
        let before = edit.before().clone();
        let existing = before.entries().into_iter().filter_map(|entry| {
            let tensor = entry.tensor().ok().filter(|it| it.fault().is_none());
            tensor.filter(|_| edit.keeps(entry.name()))
        });
        let existing: Vec<Tensor<'_>> = existing.collect();
        if job.summary.duplicates.is_empty() {
            edit.reserve(certain_len(inputs, &existing, options))?;
        }
        write_objects(&merged.objects, &existing, edit.writer(), &mut job)?;
        Ok(job.summary)
    }
}

/// Settles names that the file has already: drops an object of the inputs, or removes one of the file.
fn settle_names(merged: &mut Merged<'_>, edit: &mut Editor, job: &mut Job<'_>) -> Result<()> {
    let before = edit.before().clone();
    let path = edit.path().map(ToOwned::to_owned);
    let mut kept = Vec::with_capacity(merged.objects.len());
    for second in std::mem::take(&mut merged.objects) {
        let name = second.tensor.name();
        if !edit.contains(name) {
            kept.push(second);
            continue;
        }
        let first = before.get(name).filter(|_| edit.keeps(name)).transpose()?;
        let Some(tensor) = first.filter(|_| job.options.on_duplicate != OnDuplicate::Error) else {
            let by = second.path.map(ToOwned::to_owned);
            let error = Error::from(Fault::Taken { by }).with_object(name);
            return Err(match path {
                Some(path) => error.with_path(&path),
                None => error,
            });
        };
        let of_file = Incoming::new(tensor, before.registry());
        let first = Incoming { path: path.as_deref(), ..of_file };
        if replaces(&first, &second, job)? {
            edit.remove(name)?;
            kept.push(second);
        }
    }
    merged.objects = kept;
    Ok(())
}

/// A lower bound of the bytes that will be written, for data that is stored unchanged. Data that may
/// be shared among the inputs counts once; data that is converted, or that the file may have, does not
/// count.
fn certain_len(inputs: &[Input], existing: &[Tensor<'_>], options: &ConvertOptions<'_>) -> u64 {
    if options.dense || options.casts() {
        return 0;
    }
    let components = existing.iter().flat_map(Tensor::components);
    let lens = components.filter(|_| options.deduplicate);
    let lens: HashSet<u64> = lens.filter_map(|(_, component)| component.blob.decoded_len).collect();
    let mut total = 0u64;
    for input in inputs {
        let mut seen = HashSet::new();
        for entry in input.file().entries() {
            let Ok(object) = entry.object() else { continue };
            for (_, component) in &object.components {
                let byte_len = component.blob.decoded_len.unwrap_or(0);
                let is_new = seen.insert(component.blob.span) && !lens.contains(&byte_len);
                if is_new || !options.deduplicate {
                    total = total.saturating_add(byte_len);
                }
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never more than is written, because the space is reserved first.
    #[test]
    fn unchanged_data_counts_once_and_converted_or_existing_data_does_not() {
        let input = |deduplicate| {
            let mut bytes = Vec::new();
            let writing = zt::WriteOptions::new().deduplicate(deduplicate);
            let mut writer = writing.to_writer(&mut bytes).unwrap();
            for (name, value) in [("a", 1.0f32), ("b", 1.0), ("c", 2.0)] {
                let values = [value; 4];
                let dense = zt::Dense::from_slice(&[4], &values).unwrap();
                writer.add(name, &dense).unwrap();
            }
            writer.finish().unwrap();
            Input::from(zt::File::from_bytes(bytes).unwrap())
        };
        let mut options = ConvertOptions::new(ZT);
        let inputs = [input(true), input(false)];
        let existing = [inputs[0].file().tensor("a").unwrap()];
        assert_eq!(certain_len(&inputs, &[], &options), 32 + 48);
        assert_eq!(certain_len(&inputs, &existing, &options), 0);
        options.deduplicate = false;
        assert_eq!(certain_len(&inputs, &existing, &options), 48 + 48);
        options.dense = true;
        assert_eq!(certain_len(&inputs, &[], &options), 0);
        (options.dense, options.dtype) = (false, Some(zt::FloatType::F16));
        assert_eq!(certain_len(&inputs, &[], &options), 0);
    }
}
