//! The tensors that are written and read: six workloads, seeded, the same on every machine.

use rayon::prelude::*;
use zt::{Buffer, Csr, DType, Dense, Elements};

use crate::Result;
use crate::random::Random;

/// How large workloads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As the tables of `docs/benchmarks.md` have them: from 16 MB to 1.1 GB.
    Full,
    /// About a sixteenth of that: for criterion, and to see that all of it still runs.
    Quick,
}

impl Size {
    /// `full` at full size, a sixteenth of it otherwise.
    #[must_use]
    pub const fn of(self, full: u64) -> u64 {
        match self {
            Size::Full => full,
            Size::Quick => full / 16,
        }
    }
}

/// A dense tensor in memory.
pub struct Tensor {
    /// Its name, as a checkpoint has it.
    pub name: String,
    /// Its dimensions, slowest first.
    pub shape: Vec<u64>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its elements, little-endian.
    pub bytes: Buffer,
}

impl Tensor {
    /// What our writer takes. Borrows the elements.
    ///
    /// # Errors
    ///
    /// Where shape and bytes do not fit, which would be a mistake of this crate.
    pub fn dense(&self) -> zt::Result<Dense<'_>> {
        let elements =
            Elements { dtype: self.dtype, logical_type: None, bytes: (&*self.bytes).into() };
        Ok(Dense::from_elements(self.shape.clone(), elements)?)
    }
}

/// Named tensors that are written to one file.
pub struct Workload {
    /// A short name: `W1` to `W5`; `W2` is `W2a` and `W2b`.
    pub id: &'static str,
    /// What it stands for.
    pub title: String,
    /// Its dense tensors.
    pub tensors: Vec<Tensor>,
    /// Its sparse one; only `W4` has one.
    pub matrix: Option<Sparse>,
}

impl Workload {
    /// Bytes of all elements.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        let dense: u64 = self.tensors.iter().map(|t| t.bytes.len() as u64).sum();
        dense + self.matrix.as_ref().map_or(0, Sparse::byte_len)
    }

    /// The tensor with the most bytes.
    #[must_use]
    pub fn largest(&self) -> Option<&Tensor> {
        self.tensors.iter().max_by_key(|tensor| tensor.bytes.len())
    }

    /// `W1`: one large tensor of f32, normally distributed.
    ///
    /// # Errors
    ///
    /// Where there is no memory for it; so for the others.
    pub fn one_large(size: Size) -> Result<Self> {
        let shape = vec![size.of(16384), 8192];
        let bytes = filled(shape.iter().product::<u64>() * 4, 1, gaussian_f32)?;
        let tensor = Tensor { name: "weight".into(), shape, dtype: DType::F32, bytes };
        Ok(Workload::new("W1", "one large tensor of f32, normally distributed", vec![tensor]))
    }

    /// `W2a`: a checkpoint of bf16 weights, shaped like a language model of hidden size 1024, whose
    /// matrices have 1.6 to 3.7 MB.
    ///
    /// # Errors
    ///
    /// As [`Workload::one_large`].
    pub fn small_checkpoint(size: Size) -> Result<Self> {
        let title = "checkpoint of a small language model in bf16, matrices of 1.6 and 3.7 MB";
        Model {
            layers: if size == Size::Full { 30 } else { 2 },
            hidden: 1024,
            queries: 768,
            keys: 768,
            inner: 1792,
            vocabulary: size.of(6144),
        }
        .workload("W2a", title)
    }

    /// `W2b`: the same of hidden size 4096, matrices of 8 to 131 MiB.
    ///
    /// # Errors
    ///
    /// As [`Workload::one_large`].
    pub fn checkpoint(size: Size) -> Result<Self> {
        let title = "checkpoint of a language model in bf16, matrices of 8 to 131 MiB";
        let [layers, hidden, inner, vocabulary] = match size {
            Size::Full => [2, 4096, 11008, 16_768],
            // Still with matrices of more than one frame of zstd.
            Size::Quick => [1, 2048, 2816, 4192],
        };
        Model { layers, hidden, queries: hidden, keys: hidden / 4, inner, vocabulary }
            .workload("W2b", title)
    }

    /// `W3`: very many tiny tensors of f32, 160 bytes each.
    ///
    /// # Errors
    ///
    /// As [`Workload::one_large`].
    pub fn tiny(count: u64) -> Result<Self> {
        const VALUES: u64 = 40;
        let tensors = (0..count).map(|at| {
            Ok(Tensor {
                name: format!("model.layers.{}.experts.{}.weight", at / 1000, at % 1000),
                shape: vec![VALUES],
                dtype: DType::F32,
                bytes: filled(VALUES * 4, at, gaussian_f32)?,
            })
        });
        let tensors = tensors.collect::<Result<_>>()?;
        Ok(Workload::new("W3", "tiny tensors of f32, 160 bytes each", tensors))
    }

    /// `W5`: integers that compress: tokens of a text, few of them frequent, and sorted offsets.
    ///
    /// # Errors
    ///
    /// As [`Workload::one_large`].
    pub fn integers(size: Size) -> Result<Self> {
        let count = size.of(24 << 20);
        let tensor = |name: &str, dtype: DType, bytes| Tensor {
            name: name.into(),
            shape: vec![count],
            dtype,
            bytes,
        };
        let tensors = vec![
            tensor("tokens", DType::I32, filled(count * 4, 3, tokens)?),
            tensor("offsets", DType::I64, filled(count * 8, 4, offsets)?),
        ];
        Ok(Workload::new("W5", "integers: tokens of i32, sorted offsets of i64", tensors))
    }

    /// `W4`: a sparse matrix of f32.
    #[must_use]
    pub fn sparse(size: Size) -> Self {
        let matrix = Sparse::random(size);
        let [rows, columns] = matrix.shape;
        let what = format!(
            "sparse matrix (CSR) of f32, {rows} x {columns}, {} stored",
            matrix.values.len()
        );
        let mut workload = Workload::new("W4", &what, Vec::new());
        workload.matrix = Some(matrix);
        workload
    }

    fn new(id: &'static str, title: &str, tensors: Vec<Tensor>) -> Self {
        Workload { id, title: title.to_owned(), tensors, matrix: None }
    }
}

/// The shape of a language model: two embeddings, layers of seven matrices, and the small vectors
/// between them.
struct Model {
    layers: u64,
    hidden: u64,
    /// Rows of the projection of queries, and of the projections of keys and values.
    queries: u64,
    keys: u64,
    inner: u64,
    vocabulary: u64,
}

impl Model {
    fn workload(&self, id: &'static str, title: &str) -> Result<Workload> {
        let hidden = self.hidden;
        let mut shapes =
            vec![("model.embed_tokens.weight".to_owned(), vec![self.vocabulary, hidden])];
        for layer in 0..self.layers {
            let matrices = [
                ("self_attn.q_proj", self.queries, hidden),
                ("self_attn.k_proj", self.keys, hidden),
                ("self_attn.v_proj", self.keys, hidden),
                ("self_attn.o_proj", hidden, self.queries),
                ("mlp.gate_proj", self.inner, hidden),
                ("mlp.up_proj", self.inner, hidden),
                ("mlp.down_proj", hidden, self.inner),
            ];
            for (name, rows, columns) in matrices {
                let name = format!("model.layers.{layer}.{name}.weight");
                shapes.push((name, vec![rows, columns]));
            }
            for name in ["input", "post_attention", "post_mlp"] {
                let name = format!("model.layers.{layer}.{name}_layernorm.weight");
                shapes.push((name, vec![hidden]));
            }
        }
        shapes.push(("model.norm.weight".to_owned(), vec![hidden]));
        shapes.push(("lm_head.weight".to_owned(), vec![self.vocabulary, hidden]));
        let tensors = (2..).zip(shapes).map(|(seed, (name, shape))| {
            let bytes = filled(shape.iter().product::<u64>() * 2, seed, gaussian_bf16)?;
            Ok(Tensor { name, shape, dtype: DType::BF16, bytes })
        });
        Ok(Workload::new(id, title, tensors.collect::<Result<_>>()?))
    }
}

/// A sparse matrix of f32 by rows, its columns sorted within each row.
pub struct Sparse {
    /// Rows and columns.
    pub shape: [u64; 2],
    /// The stored values.
    pub values: Vec<f32>,
    /// Their columns.
    pub indices: Vec<u64>,
    /// Where each row begins, and the end.
    pub indptr: Vec<u64>,
}

impl Sparse {
    /// About one column in a hundred of each row, between half and twice that.
    #[must_use]
    pub fn random(size: Size) -> Self {
        let shape = [size.of(1 << 16), 1 << 14];
        let [rows, columns] = shape;
        let mut random = Random::new(5, 0);
        let mut matrix = Sparse { shape, values: Vec::new(), indices: Vec::new(), indptr: vec![0] };
        for _ in 0..rows {
            // Gaps that are uniform make columns that are sorted.
            let gap = 50 + random.below(150);
            let mut column = random.below(2 * gap);
            while column < columns {
                matrix.indices.push(column);
                matrix.values.push(random.normal()[0]);
                column += 1 + random.below(2 * gap);
            }
            matrix.indptr.push(matrix.indices.len() as u64);
        }
        matrix
    }

    /// Bytes of all components.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        (self.values.len() * 4 + (self.indices.len() + self.indptr.len()) * 8) as u64
    }

    /// What our writer takes. Borrows all components.
    ///
    /// # Errors
    ///
    /// Where they do not fit each other, which would be a mistake of this crate.
    pub fn csr(&self) -> zt::Result<Csr<'_>> {
        let (values, indices, indptr) = (&self.values[..], &self.indices[..], &self.indptr[..]);
        Ok(Csr::new(self.shape, values, indices, indptr)?)
    }
}

/// Bytes that are made at a time, each such piece from its own stream of numbers: so the bytes do
/// not depend on the number of threads.
const PIECE: usize = 1 << 20;

fn filled(byte_len: u64, seed: u64, fill: fn(&mut [u8], Random, u64)) -> Result<Buffer> {
    let mut bytes = Buffer::try_zeroed(byte_len)?;
    if bytes.len() <= PIECE {
        fill(&mut bytes, Random::new(seed, 0), 0);
        return Ok(bytes);
    }
    (0..)
        .zip(bytes.chunks_mut(PIECE))
        .par_bridge()
        .for_each(|(at, piece)| fill(piece, Random::new(seed, at), at));
    Ok(bytes)
}

fn gaussian_f32(out: &mut [u8], mut random: Random, _: u64) {
    for pair in out.chunks_mut(8) {
        let values = random.normal();
        for (bytes, value) in pair.chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// Fills with weights of bf16. Real ones have standard deviations near 0.02; so have these. Rounded
/// to nearest, ties to even.
pub fn gaussian_bf16(out: &mut [u8], mut random: Random, _: u64) {
    for pair in out.chunks_mut(4) {
        let values = random.normal();
        for (bytes, value) in pair.chunks_exact_mut(2).zip(values) {
            let bits = (value * 0.02).to_bits();
            let rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
            bytes.copy_from_slice(&(rounded as u16).to_le_bytes());
        }
    }
}

/// Tokens of a vocabulary of 32,000, the n-th about as frequent as 1/n.
fn tokens(out: &mut [u8], mut random: Random, _: u64) {
    let steps = 32_000f32.ln();
    for bytes in out.chunks_exact_mut(4) {
        let token = (random.unit() * steps).exp() as i32 - 1;
        bytes.copy_from_slice(&token.to_le_bytes());
    }
}

/// Offsets of records of 200 to 2,247 bytes.
fn offsets(out: &mut [u8], mut random: Random, at: u64) {
    let mut offset = at << 28;
    for bytes in out.chunks_exact_mut(8) {
        offset += 200 + random.below(2048);
        bytes.copy_from_slice(&offset.to_le_bytes());
    }
}
