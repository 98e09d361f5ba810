//! The table of kinds, as a value.

use std::path::Path;
use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Error, Registry, Result};
use zt_foreign::{ConvertOptions, Fault, FileKind, FileWriter, InputOptions, Probe, without_query};
use zt_quantized::Dialects;

use crate::native::Zt;
use crate::table::mistakes;

/// The kinds of files that are opened and written.
///
/// [`Kinds::builtin`] has all kinds of this build; [`Kinds::with`] adds one of your own, and
/// [`Kinds::registry`] object formats of your own.
///
/// ```
/// let kinds = zt_convert::Kinds::builtin();
/// assert_eq!(kinds.of_extension("out/Model.ZT".as_ref()), Some(zt_convert::ZT));
/// assert_eq!(kinds.of_extension("model.txt".as_ref()), None);
/// ```
#[derive(Clone)]
pub struct Kinds {
    kinds: Vec<Arc<dyn FileKind>>,
    registry: Registry,
    pub(super) dialects: Dialects,
}

impl Kinds {
    /// The kinds of this build, one for each feature, and `.zt`.
    pub fn builtin() -> Self {
        // In the order in which files are tried: kinds with a magic before those without.
        let kinds: Vec<Arc<dyn FileKind>> = vec![
            Arc::new(Zt),
            #[cfg(feature = "zt2")]
            Arc::new(zt_ztensor2::ZTensor2),
            #[cfg(feature = "gguf")]
            Arc::new(zt_gguf::Gguf),
            // Before PyTorch, which takes any pickle.
            #[cfg(feature = "dcp")]
            Arc::new(zt_dcp::Dcp),
            #[cfg(feature = "pytorch")]
            Arc::new(zt_pytorch::PyTorch),
            #[cfg(feature = "pytorch")]
            Arc::new(zt_pytorch::PlainPickle),
            #[cfg(feature = "npy")]
            Arc::new(zt_npy::Npy),
            #[cfg(feature = "npy")]
            Arc::new(zt_npy::Npz),
            #[cfg(feature = "squizd")]
            Arc::new(zt_squizd::Squizd),
            #[cfg(feature = "slm1")]
            Arc::new(zt_slm1::Slm1),
            #[cfg(feature = "hdf5")]
            Arc::new(zt_hdf5::Hdf5),
            #[cfg(feature = "onnx")]
            Arc::new(zt_onnx::Onnx),
            #[cfg(feature = "safetensors")]
            Arc::new(zt_safetensors::SafeTensors),
        ];
        Kinds { kinds, registry: zt::registry(), dialects: Dialects::builtin() }
    }

    /// Adds a kind, which is tried before all others. It replaces a kind of the same name.
    pub fn with(mut self, kind: impl FileKind + 'static) -> Self {
        self.kinds.retain(|known| known.kind() != kind.kind());
        self.kinds.insert(0, Arc::new(kind));
        self
    }

    /// The object formats and logical types of the files that this table opens and writes, in place of
    /// [`zt::registry`]. Options with a registry of their own keep it.
    ///
    /// ```no_run
    /// # fn kinds(my_format: impl zt::ObjectFormat + 'static) -> zt_convert::Kinds {
    /// zt_convert::Kinds::builtin().registry(zt::registry().with_format(my_format))
    /// # }
    /// ```
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// The ways to store quantized weights that [`InputOptions::logical`] and casts know.
    pub fn dialects(mut self, dialects: Dialects) -> Self {
        self.dialects = dialects;
        self
    }

    /// The registry of this table.
    pub const fn formats(&self) -> &Registry {
        &self.registry
    }

    /// `options` with the registry of this table, unless they have one.
    pub(crate) fn opening(&self, options: impl Into<InputOptions>) -> InputOptions {
        let mut options = options.into();
        options.open = options.open.or_registry(&self.registry);
        options
    }

    /// As [`Kinds::opening`], for a file that is written.
    pub(crate) fn converting<'p>(&self, options: &ConvertOptions<'p>) -> ConvertOptions<'p> {
        let mut options = options.clone();
        options.write = options.write.or_registry(&self.registry);
        options
    }

    /// Every kind, in the order in which files are tried.
    pub fn iter(&self) -> impl Iterator<Item = &dyn FileKind> {
        self.kinds.iter().map(|kind| &**kind)
    }

    /// The kind with this name, if the table has it.
    pub fn get(&self, name: &str) -> Option<&dyn FileKind> {
        self.iter().find(|kind| kind.kind().as_str() == name)
    }

    /// The kind of an output, by the extension of its path in any case: `.zt`, `.safetensors`. For an
    /// existing file, ask [`Kinds::detect`], which reads its bytes. The query of a URL does not count.
    pub fn of_extension(&self, path: &Path) -> Option<Kind> {
        let extension = without_query(path).extension()?.to_str()?.to_ascii_lowercase();
        let known = |kind: &&dyn FileKind| kind.extensions().contains(&extension.as_str());
        self.iter().find(known).map(FileKind::kind)
    }

    /// The extensions of files whose reader begins at the end, for
    /// [`FileKind::read_from_end`](zt_foreign::FileKind::read_from_end).
    pub fn read_from_end(&self) -> impl Iterator<Item = &'static str> {
        self.iter().flat_map(FileKind::read_from_end).copied()
    }

    /// The kind that recognises a file; the index of a set is recognised elsewhere.
    pub(crate) fn recognise(&self, probe: &Probe<'_>) -> Result<Option<&dyn FileKind>> {
        for kind in self.iter() {
            if kind.recognise(probe)? {
                return Ok(Some(kind));
            }
        }
        for kind in self.iter() {
            if kind.recognise_behind(probe)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// The error of a file that no kind recognises.
    pub(crate) fn unknown(&self, probe: &Probe<'_>) -> Error {
        if let Some(mistake) = mistakes::find(probe) {
            return mistake.into();
        }
        let start = probe.head().iter().take(8).copied().collect();
        Fault::UnknownKind { start, known: self.names(|_| true) }.into()
    }

    /// The kind of this name.
    ///
    /// # Errors
    ///
    /// Code `unsupported`.
    pub(crate) fn known(&self, kind: Kind) -> Result<&dyn FileKind> {
        let known = self.get(kind.as_str());
        Ok(known.ok_or_else(|| Fault::NoSuchKind { kind, known: self.names(|_| true) })?)
    }

    /// The writer of files of `kind`.
    pub(crate) fn writer(&self, kind: Kind) -> Result<&dyn FileWriter> {
        let writer = self.known(kind)?.writer();
        Ok(writer.ok_or_else(|| Fault::NotWritable {
            kind,
            writable: self.names(|kind| kind.writer().is_some()),
        })?)
    }

    fn names(&self, wanted: fn(&dyn FileKind) -> bool) -> Vec<Kind> {
        let kinds = self.iter().filter(|kind| wanted(*kind));
        kinds.map(FileKind::kind).collect()
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds::builtin()
    }
}

impl std::fmt::Debug for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.iter().map(|kind| kind.kind().as_str());
        f.debug_list().entries(names).finish()
    }
}
