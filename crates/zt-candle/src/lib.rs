//! Weights of candle's models out of every tensor file that zt opens.
//!
//! Place in the graph: beside it, above `zt`. A workspace of its own, because candle takes minutes
//! to build.
//!
//! [`var_builder`] is what a model of candle takes; [`tensor`] gives one tensor by its name.
//!
//! ```
//! use candle_core::{DType, Device};
//! use candle_nn::Module;
//!
//! let mut bytes = Vec::new();
//! let mut writer = zt::Writer::new(&mut bytes)?;
//! writer.add("proj.weight", &zt::Dense::from_slice(&[1, 2], &[2.0f32, 3.0])?)?;
//! writer.finish()?;
//!
//! let weights = zt_candle::var_builder(zt::File::from_bytes(bytes)?, DType::F32, &Device::Cpu);
//! let layer = candle_nn::linear_no_bias(2, 1, weights.pp("proj"))?;
//! let input = candle_core::Tensor::new(&[[1f32, 10.0]], &Device::Cpu)?;
//! assert_eq!(layer.forward(&input)?.to_vec2::<f32>()?, [[32.0]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use zt::{Dense, Elements, File};

/// The weights in `file`, as a model of candle takes them: each is read when the model asks for it,
/// and arrives in `dtype` on `device`.
#[must_use]
pub fn var_builder(file: File, dtype: DType, device: &Device) -> VarBuilder<'static> {
    VarBuilder::from_backend(Box::new(Weights::new(file)), dtype, device.clone())
}

/// The tensor `name` of `file` on `device`: a dense one as it is stored, a sparse one filled in, a
/// quantized one dequantized to f32. The values are copied. README.md lists what becomes of dtypes
/// that candle lacks.
///
/// # Errors
///
/// candle's `CannotFindTensor` where there is none of that name; a message where candle has no
/// dtype for the values, as for u64 and complex ones; else the error of zt, wrapped.
pub fn tensor(file: &File, name: &str, device: &Device) -> Result<Tensor> {
    let found = found(file, name)?;
    // Borrowed from a map or from memory where the file lends it: candle's copy is the only one.
    let elements = if found.format() == "dense" {
        found.view::<Dense<'_>>().map(Dense::into_elements)
    } else {
        found.to_dense().map(Dense::into_elements)
    };
    let (_, elements) = elements.map_err(Error::wrap)?;
    let shape = found.usize_shape().map_err(Error::wrap)?;
    of_elements(&elements, &shape, device)
}

fn found<'f>(file: &'f File, name: &str) -> Result<zt::Tensor<'f>> {
    match file.get(name) {
        Some(found) => found.map_err(Error::wrap),
        None => {
            let path = name.to_owned();
            Err(Error::CannotFindTensor { path }.bt())
        }
    }
}

fn of_elements(elements: &Elements<'_>, shape: &[usize], device: &Device) -> Result<Tensor> {
    use zt::DType as Stored;

    let raw = |dtype| Tensor::from_raw_buffer(&elements.bytes, dtype, shape, device);
    match (elements.dtype, elements.logical_type()) {
        (Stored::U8, Some("f8_e4m3fn")) => raw(DType::F8E4M3),
        (Stored::U8, Some("f8_e5m2" | "f8_e4m3fnuz" | "f8_e5m2fnuz" | "f8_e8m0fnu")) => {
            let wide = elements.to_dtype(Stored::F32, &zt::registry());
            of_elements(&wide.map_err(Error::wrap)?, shape, device)
        }
        (stored, Some(name)) => {
            Err(Error::msg(format!("candle has no dtype for {name} over {stored}")))
        }
        (Stored::U8 | Stored::Bool, None) => raw(DType::U8),
        (Stored::U32, None) => raw(DType::U32),
        (Stored::I16, None) => raw(DType::I16),
        (Stored::I32, None) => raw(DType::I32),
        (Stored::I64, None) => raw(DType::I64),
        (Stored::BF16, None) => raw(DType::BF16),
        (Stored::F16, None) => raw(DType::F16),
        (Stored::F32, None) => raw(DType::F32),
        (Stored::F64, None) => raw(DType::F64),
        (Stored::U16, None) => {
            let values = elements.as_slice::<u16>().map_err(Error::wrap)?;
            let wide: Vec<u32> = values.iter().copied().map(u32::from).collect();
            Tensor::from_vec(wide, shape, device)
        }
        (Stored::I8, None) => {
            let values = elements.as_slice::<i8>().map_err(Error::wrap)?;
            let wide: Vec<i16> = values.iter().copied().map(i16::from).collect();
            Tensor::from_vec(wide, shape, device)
        }
        (stored, None) => Err(Error::msg(format!("candle has no dtype for {stored}"))),
    }
}

/// A file as candle's source of weights.
#[derive(Debug)]
pub struct Weights {
    file: File,
}

impl Weights {
    /// The weights in `file`.
    #[must_use]
    pub fn new(file: File) -> Self {
        Weights { file }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl SimpleBackend for Weights {
    fn get(
        &self,
        expected: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let got = found(&self.file, name)?.usize_shape();
        let got = got.map_err(Error::wrap)?;
        // Compared before anything is read.
        if got != expected.dims() {
            return Err(Error::UnexpectedShape {
                msg: format!("shape mismatch for {name}"),
                expected,
                got: got.into(),
            }
            .bt());
        }
        self.get_unchecked(name, dtype, device)
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        tensor(&self.file, name, device)?.to_dtype(dtype)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.file.get(name).is_some()
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
