//! Objects of another file, copied with their storage.

use zt_container::Limits;
use zt_manifest::check_attributes_len;

use crate::cores::progress::Progress;
use crate::error::{Error, Result};
use crate::file::tensor::Tensor;
use crate::write::options::ObjectOptions;
use crate::write::writer::Writer;

impl Writer<'_> {
    /// Adds an object of another file under `name`, in bounded memory. Format, attributes, unknown
    /// fields and values are kept. So are encodings and digest algorithms, unless the options of this
    /// writer choose others: see [`ComponentWriter::copy`](crate::ComponentWriter::copy). Components are written in the order of
    /// their data.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`], except faults of contents; as [`ComponentWriter::copy`](crate::ComponentWriter::copy).
    pub fn copy(&mut self, name: &str, tensor: &Tensor<'_>) -> Result<()> {
        self.copy_object(name, tensor, None, None)
    }

    /// As [`Writer::copy`], stored with `options`, with a progress function.
    ///
    /// # Errors
    ///
    /// As [`Writer::copy`]; [`crate::ErrorKind::Interrupted`].
    pub fn copy_with(
        &mut self,
        name: &str,
        tensor: &Tensor<'_>,
        options: &ObjectOptions,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        self.copy_object(name, tensor, Some(options), progress)
    }

    fn copy_object(
        &mut self,
        name: &str,
        tensor: &Tensor<'_>,
        options: Option<&ObjectOptions>,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        let source = tensor.object();
        check_attributes_len(source.attributes_len(), &Limits::default())
            .map_err(|error| Error::from(error).with_object(name))?;
        let mut object = self.begin(name, &source.shape, source.format.clone())?;
        if let Some(options) = options {
            object = object.options(options.clone());
        }
        object.is_unchecked = tensor.fault().is_some();
        object.object.attributes.clone_from(&source.attributes);
        object.set_extra(source.extra.clone());
        let mut parts: Vec<_> = tensor.located().collect();
        parts.sort_by_key(|part| part.component.blob.span.offset());
        for part in parts {
            let component = part.component;
            let dtype = tensor.dtype_to_write_of(part)?;
            let logical_type = component.logical_type.clone();
            let mut out = object.component(part.role.clone(), dtype, logical_type)?;
            out.set_extra(component.extra.clone());
            out.copy_part(tensor, part, progress)?;
        }
        object.finish()
    }
}
