//! The program `zt` with a kind of file and an object format of your own. Every command knows them:
//!
//! ```text
//! cargo run -p zt-cli --example own_program -- convert --dense ones.zt ones.raw1
//! cargo run -p zt-cli --example own_program -- show ones.raw1 values
//! ```
//!
//! `own_kind` of the crate `zt-convert` and `block_sparse_rows` of `zt` explain kinds and formats.

use std::io::Write;
use std::process::ExitCode;

use zt::foreign::Kind;
use zt::formats::{Result, element_count};
use zt::manifest::Text;
use zt::{
    Blob, Component, DType, Dense, Object, ObjectFormat, Parts, Registry, Signature, Source, Span,
};
use zt_convert::foreign::{FileWriter, Job, Loss, Merged, Opening, Outgoing, Probe, Sink};
use zt_convert::{FileKind, Input, Kinds};

fn main() -> ExitCode {
    ExitCode::from(zt_cli::main_with(std::env::args_os(), kinds()))
}

fn kinds() -> Kinds {
    Kinds::builtin().with(Raw1).registry(zt::registry().with_format(Repeated))
}

/// An array whose values are all the same: the component `value` has one element.
struct Repeated;

impl ObjectFormat for Repeated {
    fn id(&self) -> &str {
        "example.repeated/1"
    }

    fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        signature.component("value")?.expect_elements(1)
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((signature.get("value")?.dtype?, None))
    }

    fn to_dense(&self, mut parts: Parts<'_>) -> Result<Dense<'static>> {
        self.check(&parts.signature(), &Registry::empty())?;
        let value = parts.take("value")?;
        let count = element_count(&parts.shape).and_then(|count| usize::try_from(count).ok());
        let bytes = value.bytes.repeat(count.unwrap_or(0));
        Dense::from_elements(parts.shape.into_owned(), zt::Elements::new(value.dtype, bytes))
    }
}

/// A vector of f32: the magic `RAW1` and its values, little-endian.
struct Raw1;

impl FileKind for Raw1 {
    fn kind(&self) -> Kind {
        Kind::new("raw1")
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["raw1"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> zt::Result<bool> {
        Ok(probe.head().starts_with(b"RAW1"))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> zt::Result<Input> {
        let mut builder = opening.builder(self.kind());
        let span = Span::between(4, source.byte_len()).unwrap_or_default();
        let data = Component::new(DType::F32, Blob::raw(span));
        let object = Object::new([span.byte_len() / 4], "dense").with_component("data", data);
        let source = builder.source(source);
        builder.object("values", object, source);
        opening.build(builder)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Raw1 {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> zt::Result<()> {
        job.refuse_attributes(merged.attributes.as_ref(), &merged.extra);
        sink.write_all(b"RAW1")?;
        for (at, incoming) in merged.objects.iter().enumerate() {
            let mut object = Outgoing::new(incoming);
            let is_plain = at == 0 && job.make_plain(&mut object);
            let is_f32 = matches!(object.dense_type(), Some((DType::F32, None)));
            let &[count] = &object.object().shape[..] else {
                job.accept(Loss::Shape, Some(object.name()));
                continue;
            };
            if !is_plain || !is_f32 {
                job.accept(Loss::Objects, Some(object.name()));
                continue;
            }
            job.check()?;
            let cast = object.write_values(count.strict_mul(4), sink, job.options.progress)?;
            job.written(object.name(), count.strict_mul(4), cast)?;
        }
        job.check()
    }
}

/// `cargo test -p zt-cli --examples` runs this: a command that needs the format and the kind.
#[test]
fn a_program_of_ones_own_knows_ones_kinds_and_formats() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["ones.zt", "ones.raw1"].map(|name| folder.path().join(name));
    let mut writer = zt::Writer::create(&from).unwrap();
    let value = [("value", zt::Elements::from(vec![1.5f32]))];
    writer.add("ones", &zt::NewObject::new(&[3], "example.repeated/1", None, value)).unwrap();
    writer.finish().unwrap();
    let arguments = ["zt", "convert", "--dense", from.to_str().unwrap(), to.to_str().unwrap()];
    let code = zt_cli::main_with(arguments.into_iter().map(Into::into), kinds());
    assert_eq!(code, 0);
    let values = [1.5f32; 3].map(f32::to_le_bytes).concat();
    assert_eq!(std::fs::read(&to).unwrap(), [&b"RAW1"[..], &values].concat());
}
