//! SLM1 files put together from parts, by code that shares nothing with the reader.

use crate::squizd::fnv1a;

/// A file in parts. Numbers are those of the smallest model that strict readers take.
#[derive(Debug, Clone, Default)]
pub struct Slm1 {
    /// Tensors in the order of the directory.
    pub tensors: Vec<Tensor>,
    /// Bytes of the header after its fields.
    pub extension: Vec<u8>,
}

/// A tensor.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Only its hash is stored.
    pub name: String,
    /// 1 f32, 2 q8_0, 3 q4_0.
    pub dtype: u32,
    /// At most four.
    pub dims: Vec<u32>,
    /// The values.
    pub payload: Vec<u8>,
    /// The scales; none for f32.
    pub scales: Vec<f32>,
    /// 0 for f32.
    pub block_size: u32,
}

impl Slm1 {
    /// The file: header, tokenizer, directory, values and scales, on a grid of 64.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header_len = 108 + self.extension.len();
        let mut out = vec![0; header_len];
        let numbers: [u32; 7] = [0x4254_4F4B_u32.swap_bytes(), 1, 260, 256, 257, 258, 259];
        let tokenizer = (out.len() as u64, 28u64);
        out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        pad(&mut out);
        let directory = out.len();
        out.resize(directory + 64 * self.tensors.len(), 0);
        let data = out.len() as u64;
        for (place, tensor) in self.tensors.iter().enumerate() {
            let payload = (out.len() as u64, tensor.payload.len() as u64);
            out.extend(&tensor.payload);
            pad(&mut out);
            let scales = if tensor.scales.is_empty() { 0 } else { out.len() as u64 };
            out.extend(tensor.scales.iter().flat_map(|scale| scale.to_le_bytes()));
            pad(&mut out);
            let entry = tensor.entry(payload, scales);
            let at = directory + 64 * place;
            out[at..at + 64].copy_from_slice(&entry);
        }
        let mut header = b"SLM1".to_vec();
        // Version, header length, model, flags, vocabulary, special tokens, hidden width, layers,
        // heads, key-value heads, head width, feed-forward width, context.
        let numbers = [1, header_len as u32, 1, 0, 260, 4, 8, 1, 2, 2, 4, 16, 32];
        header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header.extend(10_000f32.to_le_bytes());
        header.extend(1e-5f32.to_le_bytes());
        for number in [tokenizer.0, tokenizer.1, directory as u64] {
            header.extend(number.to_le_bytes());
        }
        header.extend((self.tensors.len() as u32).to_le_bytes());
        header.extend(data.to_le_bytes());
        header.extend(0x1234_5678_u64.to_le_bytes());
        header.extend(&self.extension);
        out[..header_len].copy_from_slice(&header);
        out
    }
}

impl Tensor {
    fn entry(&self, payload: (u64, u64), scales: u64) -> Vec<u8> {
        let mut entry = fnv1a(self.name.as_bytes()).to_le_bytes().to_vec();
        entry.extend(self.dtype.to_le_bytes());
        entry.extend((self.dims.len() as u32).to_le_bytes());
        entry.extend(self.dims.iter().flat_map(|dim| dim.to_le_bytes()));
        entry.resize(32, 0);
        for number in [payload.0, payload.1, scales] {
            entry.extend(number.to_le_bytes());
        }
        entry.extend(self.block_size.to_le_bytes());
        entry.resize(64, 0);
        entry
    }
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(64), 0);
}
