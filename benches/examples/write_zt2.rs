//! Writes `conformance/corpus/foreign/zt2`: files of zTensor 2 by its own crate, and what was given
//! to it. `cargo run -p zt-benches --example write_zt2 -- FOLDER`
//!
//! It is here because the benchmarks have that crate already. The truth beside each file is of the
//! arrays that were handed to the writer, and never of what a reader made of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use ztensor2::format::cbor::{Value, map};
use ztensor2::read::shard_identity;
use ztensor2::{DType, DigestAlgorithm, Source, Writer};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const SEEKABLE: &str = "zt.zstd-seekable/1";

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("a folder is missing")?;
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    types(&folder)?;
    shapes(&folder)?;
    attributes(&folder)?;
    names(&folder)?;
    csr(&folder)?;
    coo(&folder)?;
    profiles(&folder)?;
    encoded(&folder)?;
    tied(&folder)?;
    canonical(&folder)?;
    streamed(&folder)?;
    appended(&folder)?;
    sharded(&folder)?;
    empty(&folder)
}

/// What is known of a file.
struct Truth {
    about: &'static str,
    /// Name and JSON of each object.
    objects: Vec<(String, String)>,
    /// Further members, as JSON.
    more: String,
}

impl Truth {
    fn new(about: &'static str) -> Self {
        Truth { about, objects: Vec::new(), more: String::new() }
    }

    /// A plain array.
    fn dense(
        &mut self,
        name: &str,
        shape: &[u64],
        dtype: &str,
        logical: Option<&str>,
        data: &[u8],
    ) {
        let logical = logical.map_or(String::new(), |name| format!(", \"type\": \"{name}\""));
        let sum = sha256(data);
        self.objects.push((
            name.to_owned(),
            format!(
                "{{\"shape\": {shape:?}, \"dtype\": \"{dtype}\"{logical}, \"sha256\": \"{sum}\"}}"
            ),
        ));
    }

    /// An object of an unknown format with these bytes in one component.
    fn opaque(&mut self, name: &str, shape: &[u64], data: &[u8]) {
        let sum = sha256(data);
        self.objects.push((
            name.to_owned(),
            format!("{{\"shape\": {shape:?}, \"format\": \"opaque\", \"sha256\": \"{sum}\"}}"),
        ));
    }

    /// A sparse array and its dense value.
    fn sparse(&mut self, name: &str, format: &str, shape: &[u64], values: &[u8], dense: &[u8]) {
        let (sum, dense) = (sha256(values), sha256(dense));
        self.objects.push((
            name.to_owned(),
            format!(
                "{{\"shape\": {shape:?}, \"format\": \"{format}\", \"sha256\": \"{sum}\", \
                 \"dense\": {{\"sha256\": \"{dense}\"}}}}"
            ),
        ));
    }

    fn write(mut self, path: &Path) -> Result<()> {
        let bytes = fs::read(path)?;
        let mut json = format!(
            "{{\n \"about\": \"{}\",\n \"kind\": \"zt2\",\n \"expect\": \"read\",\n \"objects\": {{",
            self.about
        );
        self.objects.sort();
        for (at, (name, object)) in self.objects.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(json, "{comma}\n  \"{name}\": {object}")?;
        }
        let (len, sum) = (bytes.len(), sha256(&bytes));
        write!(
            json,
            "\n }},\n{} \"file_size\": {len},\n \"file_sha256\": \"{sum}\"\n}}\n",
            self.more
        )?;
        fs::write(path.with_extension("json"), json)?;
        Ok(())
    }
}

fn sha256(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that do not repeat soon.
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

/// A writer of small files.
fn writer(path: &Path) -> Result<Writer> {
    let options = Writer::options().canonical(false).align(4096);
    Ok(options.create(path)?)
}

const DTYPES: [DType; 12] = [
    DType::F64,
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
];

/// Logical type, storage type, and bytes of seven elements.
const LOGICAL: [(&str, DType, usize); 9] = [
    ("bool", DType::U8, 7),
    ("f8_e4m3fn", DType::U8, 7),
    ("f8_e5m2", DType::U8, 7),
    ("f8_e4m3fnuz", DType::U8, 7),
    ("f8_e5m2fnuz", DType::U8, 7),
    ("f8_e8m0", DType::U8, 7),
    ("f4_e2m1", DType::U8, 4),
    ("complex64", DType::F32, 56),
    ("complex128", DType::F64, 112),
];

fn types(folder: &Path) -> Result<()> {
    let path = folder.join("types.zt2");
    let mut truth =
        Truth::new("every storage type and every registered logical type, seven elements");
    let mut file = writer(&path)?;
    for (dtype, seed) in DTYPES.into_iter().zip(0..) {
        let data = noise(7 * usize::try_from(dtype.width())?, seed);
        file.add(dtype.as_str(), [7u64], dtype, &data)?;
        truth.dense(dtype.as_str(), &[7], dtype.as_str(), None, &data);
    }
    for ((name, dtype, len), seed) in LOGICAL.into_iter().zip(100..) {
        let mut data = noise(len, seed);
        match name {
            "bool" => data.iter_mut().for_each(|byte| *byte &= 1),
            // The unused half of the last byte.
            "f4_e2m1" => data.iter_mut().skip(3).for_each(|byte| *byte &= 0x0F),
            _ => {}
        }
        file.object(name, |object| {
            object.shape([7u64]).part("data", |part| part.dtype(dtype).logical(name).bytes(&data))
        })?;
        match name {
            "bool" => truth.dense(name, &[7], "bool", None, &data),
            _ => truth.dense(name, &[7], dtype.as_str(), Some(name), &data),
        }
    }
    file.finish()?;
    truth.write(&path)
}

fn shapes(folder: &Path) -> Result<()> {
    let path = folder.join("shapes.zt2");
    let mut truth = Truth::new("scalars, empty arrays, many dimensions");
    let mut file = writer(&path)?;
    let long = [1u64; 64];
    let shapes: [(&str, &[u64]); 6] = [
        ("scalar", &[]),
        ("empty", &[0]),
        ("empty_inside", &[3, 0, 2]),
        ("one", &[1, 1, 1]),
        ("five", &[2, 3, 1, 2, 2]),
        ("rank_64", &long),
    ];
    for ((name, shape), seed) in shapes.into_iter().zip(200..) {
        let count: u64 = shape.iter().product();
        let data = noise(4 * usize::try_from(count)?, seed);
        file.add(name, shape, DType::F32, &data)?;
        truth.dense(name, shape, "f32", None, &data);
    }
    file.finish()?;
    truth.write(&path)
}

fn attributes(folder: &Path) -> Result<()> {
    let path = folder.join("attributes.zt2");
    let mut truth = Truth::new("attributes of every type, of the file and of an object");
    let all = || {
        let inner = map([("deep", Value::Array(vec![Value::Null, Value::Bool(true)]))]);
        map([
            ("text", Value::Text("caf\u{e9}".into())),
            ("bytes", Value::Bytes(vec![0, 255])),
            ("large", Value::Uint(u64::MAX)),
            ("negative", Value::Nint(41)),
            ("half", Value::Float(1.5)),
            ("single", Value::Float(100_000.0)),
            ("double", Value::Float(1.1)),
            ("nan", Value::Float(f64::NAN)),
            ("yes", Value::Bool(true)),
            ("nothing", Value::Null),
            ("map", inner),
        ])
    };
    let mut file = writer(&path)?;
    file.set_attributes(all());
    let data = noise(24, 300);
    file.object("weight", |object| {
        let object = object.shape([2u64, 3]).attributes(all());
        object.part("data", |part| part.dtype(DType::F32).bytes(&data))
    })?;
    file.finish()?;
    truth.dense("weight", &[2, 3], "f32", None, &data);
    truth.more = " \"attributes\": {\"text\": \"caf\u{e9}\", \"large\": 18446744073709551615, \
                  \"negative\": -42, \"half\": 1.5, \"single\": 100000.0, \"double\": 1.1, \
                  \"yes\": true, \"nothing\": null},\n"
        .into();
    truth.write(&path)
}

fn names(folder: &Path) -> Result<()> {
    let path = folder.join("names.zt2");
    let mut truth = Truth::new("names: dots, slashes, spaces, other scripts, 1024 bytes");
    let mut file = writer(&path)?;
    let long = "n".repeat(1024);
    let names = ["a.b.c", "a/b", " ", "\u{91cd}\u{307f}", "\u{1f9ee}", &*long];
    for (name, seed) in names.into_iter().zip(400..) {
        let data = noise(6, seed);
        file.add(name, [3u64], DType::F16, &data)?;
        truth.dense(name, &[3], "f16", None, &data);
    }
    file.finish()?;
    truth.write(&path)
}

/// Little-endian.
fn bytes_of<const N: usize, T: Copy>(numbers: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| to_bytes(*number)).collect()
}

fn f32s(numbers: &[f32]) -> Vec<u8> {
    bytes_of(numbers, f32::to_le_bytes)
}

/// Indices as u32 or as u64.
fn indices(numbers: &[u32], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::U32 => bytes_of(numbers, u32::to_le_bytes),
        _ => bytes_of(numbers, |number| u64::from(number).to_le_bytes()),
    }
}

fn csr(folder: &Path) -> Result<()> {
    let path = folder.join("csr.zt2");
    let mut truth = Truth::new("CSR with u32 and u64 indices, one encoded, one without values");
    let mut file = writer(&path)?;
    // [[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]]
    let dense = f32s(&[0., 1., 0., 2., 0., 0., 0., 0., 3., 0., 0., 4.]);
    let values = f32s(&[1., 2., 3., 4.]);
    let (columns, pointers) = ([1, 3, 0, 3], [0, 2, 2, 4]);
    let cases =
        [("u32", DType::U32, false), ("u64", DType::U64, false), ("encoded", DType::U32, true)];
    for (name, dtype, is_encoded) in cases {
        let (columns, pointers) = (indices(&columns, dtype), indices(&pointers, dtype));
        file.object(name, |object| {
            let object = object.shape([3u64, 4]).layout("zt.sparse_csr/1");
            let parts = [
                ("values", DType::F32, &values),
                ("indices", dtype, &columns),
                ("indptr", dtype, &pointers),
            ];
            parts.into_iter().fold(object, |object, (role, dtype, data)| {
                object.part(role, |part| match is_encoded {
                    true => part.dtype(dtype).encoding(SEEKABLE).bytes(data),
                    false => part.dtype(dtype).bytes(data),
                })
            })
        })?;
        truth.sparse(name, "sparse_csr", &[3, 4], &values, &dense);
    }
    let pointers = indices(&[0; 3], DType::U64);
    file.object("empty", |object| {
        let object = object.shape([2u64, 5]).layout("zt.sparse_csr/1");
        let object = object.part("values", |part| part.dtype(DType::F32).bytes(&[]));
        let object = object.part("indices", |part| part.dtype(DType::U64).bytes(&[]));
        object.part("indptr", |part| part.dtype(DType::U64).bytes(&pointers))
    })?;
    truth.sparse("empty", "sparse_csr", &[2, 5], &[], &[0; 40]);
    file.finish()?;
    truth.write(&path)
}

fn coo(folder: &Path) -> Result<()> {
    let path = folder.join("coo.zt2");
    let mut truth = Truth::new("COO, which the crate writes and does not check");
    let mut file = writer(&path)?;
    let values = f32s(&[5., 6., 7.]);
    // 5 at (1, 0, 2), 6 at (0, 1, 1), 7 at (1, 1, 0) of 2 x 2 x 3
    let coords = [1, 0, 1, 0, 1, 1, 2, 1, 0];
    let dense = f32s(&[0., 0., 0., 0., 6., 0., 0., 0., 5., 7., 0., 0.]);
    for (name, dtype) in [("u32", DType::U32), ("u64", DType::U64)] {
        let coords = indices(&coords, dtype);
        file.object(name, |object| {
            let object = object.shape([2u64, 2, 3]).layout("zt.sparse_coo/1");
            let object = object.part("values", |part| part.dtype(DType::F32).bytes(&values));
            object.part("coords", |part| part.dtype(dtype).bytes(&coords))
        })?;
        truth.sparse(name, "sparse_coo", &[2, 2, 3], &values, &dense);
    }
    file.finish()?;
    truth.write(&path)
}

fn profiles(folder: &Path) -> Result<()> {
    let path = folder.join("profiles.zt2");
    let mut truth = Truth::new("layouts that are not known, and a type that is not");
    let mut file = writer(&path)?;
    let (codes, scales) = (noise(64, 500), noise(8, 501));
    file.object("quantized", |object| {
        let packing = map([
            ("word", Value::Text("u32".into())),
            ("order", Value::Text("lsb_first".into())),
            ("per_word", Value::Uint(8)),
        ]);
        let zero = map([("form", Value::Text("implied".into())), ("value", Value::Uint(8))]);
        let object = object.shape([4u64, 32]).layout("zt.quant_group/1");
        let object = object.attr("bits", 4u64).attr("group_size", 32u64).attr("axis", 1u64);
        let object = object.attr("packing", packing).attr("scale_form", "f16_factors");
        let object = object.attr("zero_point", zero);
        let object = object.part("data", |part| part.dtype(DType::U32).bytes(&codes));
        object.part("scales", |part| part.dtype(DType::F16).bytes(&scales))
    })?;
    truth.opaque("quantized", &[4, 32], &codes);
    let pages = noise(40, 502);
    file.object("paged", |object| {
        let object = object.shape([5u64]).layout("acme.paged_kv/3");
        object.part("pages", |part| part.dtype(DType::U8).bytes(&pages))
    })?;
    truth.opaque("paged", &[5], &pages);
    let odd = noise(10, 503);
    file.object("logical", |object| {
        let object = object.shape([3u64]);
        object.part("data", |part| part.dtype(DType::U8).logical("acme.fixed_26").bytes(&odd))
    })?;
    truth.dense("logical", &[3], "u8", Some("acme.fixed_26"), &odd);
    file.finish()?;
    truth.write(&path)
}

fn encoded(folder: &Path) -> Result<()> {
    let path = folder.join("encoded.zt2");
    let mut truth = Truth::new("seekable zstd: no frame, one, four of which the last is short");
    let mut file = writer(&path)?;
    // Compresses well, and no frame is like another.
    let long: Vec<u8> = (0u32..800_000).flat_map(|at| (at / 4096).to_le_bytes()).collect();
    let cases: [(&str, &[u8]); 4] =
        [("none", &[]), ("one", &noise(400, 600)), ("exact", &long[..2 << 20]), ("four", &long)];
    for (name, data) in cases {
        let count = data.len() as u64 / 4;
        file.object(name, |object| {
            let object = object.shape([count]);
            object.part("data", |part| part.dtype(DType::U32).encoding(SEEKABLE).bytes(data))
        })?;
        truth.dense(name, &[count], "u32", None, data);
    }
    file.finish()?;
    truth.write(&path)
}

fn tied(folder: &Path) -> Result<()> {
    let path = folder.join("tied.zt2");
    let mut truth = Truth::new("two names of one blob, and another view of it");
    let mut file = writer(&path)?;
    let data = noise(96, 700);
    file.add("embed.weight", [4u64, 6], DType::F32, &data)?;
    file.add("lm_head.weight", [4u64, 6], DType::F32, &data)?;
    file.add("flat", [48u64], DType::BF16, &data)?;
    file.finish()?;
    truth.dense("embed.weight", &[4, 6], "f32", None, &data);
    truth.dense("lm_head.weight", &[4, 6], "f32", None, &data);
    truth.dense("flat", &[48], "bf16", None, &data);
    truth.more =
        " \"shared_storage\": [[\"embed.weight\", \"flat\", \"lm_head.weight\"]],\n".into();
    truth.write(&path)
}

fn canonical(folder: &Path) -> Result<()> {
    let path = folder.join("canonical.zt2");
    let mut truth =
        Truth::new("canonical form: blobs at multiples of 64 KiB, in the order of names");
    let mut file = Writer::create(&path)?;
    for (name, seed) in [("a", 800), ("b", 801)] {
        let data = noise(20, seed);
        file.add(name, [5u64], DType::I32, &data)?;
        truth.dense(name, &[5], "i32", None, &data);
    }
    file.finish()?;
    truth.write(&path)
}

fn streamed(folder: &Path) -> Result<()> {
    let path = folder.join("streamed.zt2");
    let mut truth = Truth::new("an object written piece by piece");
    let mut file = writer(&path)?;
    let data = noise(9000, 900);
    let mut sink = file.stream("w", |object| {
        let object = object.shape([9000u64]);
        object.part("data", |part| part.dtype(DType::U8).length(9000))
    })?;
    for piece in data.chunks(1000) {
        sink.write(&mut file, piece)?;
    }
    sink.close(&mut file)?;
    file.finish()?;
    truth.dense("w", &[9000], "u8", None, &data);
    truth.write(&path)
}

fn appended(folder: &Path) -> Result<()> {
    let path = folder.join("appended.zt2");
    let mut truth = Truth::new("two generations: the first manifest and footer lie between blobs");
    let (first, second) = (noise(12, 1000), noise(16, 1001));
    let mut file = writer(&path)?;
    file.add("first", [3u64], DType::F32, &first)?;
    file.finish()?;
    let mut file = Writer::append(&path)?;
    file.add("second", [2u64], DType::F64, &second)?;
    file.finish()?;
    truth.dense("first", &[3], "f32", None, &first);
    truth.dense("second", &[2], "f64", None, &second);
    truth.write(&path)
}

fn sharded(folder: &Path) -> Result<()> {
    let path = folder.join("sharded.zt2");
    let base = folder.join("sharded-base.zt");
    let mut truth = Truth::new("an overlay: one object of its own, two of a base file beside it");
    let (weight, table, delta) = (noise(24, 1100), noise(4096, 1101), noise(8, 1102));
    let mut file = writer(&base)?;
    file.add("weight", [2u64, 3], DType::F32, &weight)?;
    file.object("table", |object| {
        let object = object.shape([4096u64]);
        object.part("data", |part| part.dtype(DType::U8).encoding(SEEKABLE).bytes(&table))
    })?;
    file.finish()?;
    let source = Source::open(&base)?;
    let mut file = writer(&path)?;
    file.add_shard("base", &shard_identity(&base, DigestAlgorithm::Sha256)?)?;
    let manifest = source.provenance();
    let manifest = manifest.as_root().ok_or("a manifest")?;
    for name in ["weight", "table"] {
        file.link(name, manifest.object(name)?, "base")?;
    }
    file.add("delta", [4u64], DType::BF16, &delta)?;
    file.finish()?;
    truth.dense("weight", &[2, 3], "f32", None, &weight);
    truth.dense("table", &[4096], "u8", None, &table);
    truth.dense("delta", &[4], "bf16", None, &delta);
    let sum = sha256(&fs::read(&base)?);
    truth.more = format!(" \"files\": {{\"sharded-base.zt\": \"{sum}\"}},\n");
    truth.write(&path)
}

fn empty(folder: &Path) -> Result<()> {
    let path = folder.join("empty.zt2");
    writer(&path)?.finish()?;
    Truth::new("no objects").write(&path)
}
