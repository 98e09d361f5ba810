//! A kind of file of your own, in one file: recognised, opened with `zt`'s calls, and written.
//!
//! ```text
//! "VEC1" | for each vector: name length u32, name in UTF-8, value count u64, values f32
//! ```
//!
//! Everything is little-endian. `cargo run -p zt-convert --example own_kind`

use std::io::Write;

use zt::foreign::Kind;
use zt::{
    Blob, Component, DType, Error, ErrorKind, Memory, Object, Result, Source, Span, Writer, codes,
};
use zt_convert::foreign::{
    FileKind, FileWriter, Job, Loss, Merged, Opening, Outgoing, Probe, Sink,
};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, ZT};

const VEC1: Kind = Kind::new("vec1");
const MAGIC: &[u8] = b"VEC1";

/// The kind.
struct Vec1;

impl FileKind for Vec1 {
    fn kind(&self) -> Kind {
        VEC1
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["vec1"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let mut builder = opening.builder(VEC1);
        let vectors = vectors(&source, builder.limits().name_len)?;
        // Components are ranges of the source: nothing is copied.
        let source = builder.source(source);
        for (name, span) in vectors {
            let data = Component::new(DType::F32, Blob::raw(span));
            let object = Object::new([span.byte_len() / 4], "dense").with_component("data", data);
            builder.object(name, object, source);
        }
        opening.build(builder)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

/// The names of the vectors and where their values are. Lengths are compared with the file before
/// anything is read or reserved.
fn vectors(source: &dyn Source, name_len_max: usize) -> Result<Vec<(String, Span)>> {
    let cut = || Error::new(ErrorKind::Malformed, codes::TRUNCATED, "the file is truncated");
    let len = source.byte_len();
    let mut at = MAGIC.len() as u64;
    let mut take = |byte_len: u64| {
        let span = Span::new(at, byte_len).filter(|span| span.end() <= len);
        let span = span.ok_or_else(cut)?;
        at = span.end();
        Ok::<Span, Error>(span)
    };
    let mut vectors = Vec::new();
    loop {
        let mut name_len = [0; 4];
        source.read_at(take(4)?.offset(), &mut name_len)?;
        let name_len = u32::from_le_bytes(name_len) as usize;
        if name_len > name_len_max {
            return Err(Error::new(ErrorKind::Limit, "vec1-name", "a name is too long"));
        }
        let mut name = vec![0; name_len];
        source.read_at(take(name_len as u64)?.offset(), &mut name)?;
        let name = String::from_utf8(name)
            .map_err(|error| Error::new(ErrorKind::Malformed, "vec1-name", error))?;
        let mut count = [0; 8];
        source.read_at(take(8)?.offset(), &mut count)?;
        let byte_len = u64::from_le_bytes(count).checked_mul(4).ok_or_else(cut)?;
        let span = take(byte_len)?;
        vectors.push((name, span));
        if span.end() == len {
            return Ok(vectors);
        }
    }
}

impl FileWriter for Vec1 {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        job.refuse_attributes(merged.attributes.as_ref(), &merged.extra);
        sink.write_all(MAGIC)?;
        for incoming in &merged.objects {
            let mut object = Outgoing::new(incoming);
            // What the kind cannot represent is an error, or a warning if losses are allowed.
            if !job.make_plain(&mut object) {
                job.kept::<()>(incoming, None);
                continue;
            }
            let name = object.name();
            let is_f32 = matches!(object.dense_type(), Some((DType::F32, None)));
            let (&[count], Ok(name_len), true) =
                (&object.object().shape[..], u32::try_from(name.len()), is_f32)
            else {
                job.accept(Loss::Shape, Some(name));
                job.kept::<()>(incoming, None);
                continue;
            };
            job.rest(&object, &[]);
            sink.write_all(&name_len.to_le_bytes())?;
            sink.write_all(name.as_bytes())?;
            sink.write_all(&count.to_le_bytes())?;
            let cast = object.write_values(count * 4, sink, job.options.progress)?;
            job.written(name, count * 4, cast)?;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let kinds = Kinds::builtin().with(Vec1);

    // A `.zt` file of two vectors ...
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes)?;
    writer.add("bias", &zt::Dense::from_slice(&[3], &[1.0f32, 2.0, 3.0])?)?;
    writer.add("scale", &zt::Dense::from_slice(&[2], &[0.5f32, 0.25])?)?;
    writer.finish()?;
    let input = kinds.open_source(Memory::new(bytes), InputOptions::new())?;

    // ... becomes a file of our kind,
    let mut ours = Vec::new();
    let summary = kinds.convert(&[input], &mut ours, &ConvertOptions::new(VEC1))?;
    println!("wrote {} objects, {} bytes", summary.objects, summary.bytes);

    // which opens by its bytes, reads with `zt`'s calls,
    let input = kinds.open_source(Memory::new(ours.clone()), InputOptions::new())?;
    assert_eq!(input.file().kind(), VEC1);
    let bias = input.file().tensor("bias")?;
    println!("bias = {:?}", bias.values::<f32>()?);

    // and converts back.
    let mut back = Vec::new();
    kinds.convert(&[input], &mut back, &ConvertOptions::new(ZT))?;
    let file = zt::File::from_bytes(back)?;
    assert_eq!(*file.tensor("scale")?.values::<f32>()?, [0.5, 0.25]);

    // A truncated file is an error, never a panic.
    let cut = Memory::new(ours[..ours.len() - 1].to_vec());
    if let Err(error) = kinds.open_source(cut, InputOptions::new()) {
        println!("truncated: {error}");
    }
    Ok(())
}

/// `cargo test -p zt-convert --examples` runs this.
#[test]
fn a_kind_of_ones_own_is_opened_and_written() {
    main().unwrap();
}

/// All that a test of your kind needs: the kit finds what a damaged file can do to it.
#[test]
fn a_kind_of_ones_own_passes_the_kit() {
    let sample = b"VEC1\x04\0\0\0bias\x02\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40";
    zt_convert::foreign::test_kit::check_kind(&Vec1, &[sample]);
}
