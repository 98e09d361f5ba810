//! The kinds of files that this build knows, one row each.

use std::path::Path;

use zt::{Kind, Result, Source};

use crate::convert::Sink;
use crate::detect::Probe;
use crate::input::{Input, Origin};
use crate::merge::Merged;
use crate::{ConvertOptions, Summary};

/// `.zt` files.
pub const ZT: Kind = Kind::ZT;

/// safetensors files, and sharded sets of them.
pub const SAFETENSORS: Kind = Kind::new("safetensors");

/// GGUF files, of llama.cpp and others that use ggml.
pub const GGUF: Kind = Kind::new("gguf");

/// What `torch.save` writes: `.pt`, `.pth`, `.bin`.
pub const PYTORCH: Kind = Kind::new("pytorch");

/// Arrays of NumPy in a zip archive.
pub const NPZ: Kind = Kind::new("npz");

/// Models of ONNX.
pub const ONNX: Kind = Kind::new("onnx");

/// One array of NumPy.
pub const NPY: Kind = Kind::new("npy");

/// SQUIZD files, version 1.0.
pub const SQUIZD: Kind = Kind::new("squizd");

/// SLM1 files, of TinyRustLM.
pub const SLM1: Kind = Kind::new("slm1");

/// HDF5 files: of Keras, h5py, PyTables.
pub const HDF5: Kind = Kind::new("hdf5");

/// Files of zTensor 2. Their ending is `.zt` too.
pub const ZT2: Kind = Kind::new("zt2");

/// One kind of file: how it is recognised, opened and written.
///
/// A new kind is a module that fills in one of these, and a line in the table below.
pub struct Member {
    pub(crate) kind: Kind,
    pub(crate) extensions: &'static [&'static str],
    /// Whether a file is meant to be of this kind, sound or not: what is recognised and broken is
    /// refused by its own reader, which can say why.
    pub(crate) recognises: fn(&Probe<'_>) -> Result<bool>,
    pub(crate) open: fn(Box<dyn Source>, Origin<'_>) -> Result<Input>,
    pub(crate) write: Option<Write>,
}

/// Writes the merged inputs to a sink, and says in the summary what was lost on the way.
pub(crate) type Write =
    fn(Merged<'_>, &mut Sink<'_>, &ConvertOptions<'_>, &mut Summary) -> Result<()>;

/// In the order in which files are tried: the kinds with a magic before those without.
static MEMBERS: &[Member] = &[
    crate::native::MEMBER,
    #[cfg(feature = "zt2")]
    crate::zt2::MEMBER,
    #[cfg(feature = "gguf")]
    crate::gguf::MEMBER,
    #[cfg(feature = "pytorch")]
    crate::pytorch::MEMBER,
    #[cfg(feature = "npy")]
    crate::npy::MEMBER,
    #[cfg(feature = "npz")]
    crate::npz::MEMBER,
    #[cfg(feature = "squizd")]
    crate::squizd::MEMBER,
    #[cfg(feature = "slm1")]
    crate::slm1::MEMBER,
    #[cfg(feature = "hdf5")]
    crate::hdf5::MEMBER,
    #[cfg(feature = "onnx")]
    crate::onnx::MEMBER,
    #[cfg(feature = "safetensors")]
    crate::safetensors::MEMBER,
];

impl Member {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The extensions of its files in lower case, without the dot; the usual one first.
    #[must_use]
    pub const fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    /// Whether files of this kind can be written.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Member");
        debug
            .field("kind", &self.kind)
            .field("extensions", &self.extensions);
        debug.field("writable", &self.is_writable()).finish()
    }
}

/// Every kind that this build opens.
#[must_use]
pub fn members() -> &'static [Member] {
    MEMBERS
}

/// The kind of that name; `None` where there is none, or where it was left out of this build.
#[must_use]
pub fn member(name: &str) -> Option<&'static Member> {
    MEMBERS.iter().find(|member| member.kind.as_str() == name)
}

/// The kind that a file to be written is meant to be of, by its extension in any case: `.zt`,
/// `.safetensors`. What a file that exists *is*, only [`crate::detect()`] can tell.
///
/// ```
/// assert_eq!(zt_convert::kind_of_extension("out/Model.ZT".as_ref()), Some(zt_convert::ZT));
/// assert_eq!(zt_convert::kind_of_extension("model.txt".as_ref()), None);
/// ```
#[must_use]
pub fn kind_of_extension(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let known = |member: &&Member| member.extensions.contains(&extension.as_str());
    MEMBERS.iter().find(known).map(Member::kind)
}
