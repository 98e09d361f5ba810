//! A formula as a value that an object of `zt.quantized/1` carries. Spec: formats/zt.quantized.

use serde::{Deserialize, Serialize};
use zt::formats::{Packing as Words, Quantization, ZeroKind};
use zt::{DType, OwnedTensor, Result, Value};

use crate::fault::Fault;
use crate::find::byte_values;
use crate::values::codes::Codes;
use crate::values::packing::{Along, Packing};
use crate::values::weight::{Formula, Global, Groups, Scale};

/// What errors name.
const FORMAT: &str = zt::formats::QuantizedWeightFormat::ID;

/// How the values of a weight are made of parts, which are named by their roles.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    codes: Matrix,
    #[serde(default, skip_serializing_if = "is_false")]
    transposed: bool,
    /// Rows and columns that share a scale; 0 for all.
    block: [u64; 2],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scales: Option<Matrix>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absmax: Option<Nested>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zeros: Option<Matrix>,
    #[serde(default, skip_serializing_if = "is_zero")]
    zero_shift: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    biases: Option<Matrix>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    global: Option<Factor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    divisor: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<String>,
}

/// Equal matrices of codes or numbers in a part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    part: String,
    /// Matrices, rows and columns.
    shape: [u64; 3],
    #[serde(default, skip_serializing_if = "is_false")]
    tiled: bool,
    /// `None`: the elements are numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packing: Option<DescribedPacking>,
    /// The value of each code. Without it, and without `first`, the values of the part's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<f32>>,
    /// The value of the code 0, where codes are integers that follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<f32>,
}

/// How codes lie in units of bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedPacking {
    bits: u32,
    /// Bytes of a unit.
    unit: u64,
    /// The bit at which each code of a unit begins.
    shifts: Vec<u32>,
    /// Bytes of the words that a line consists of, if it may end within a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    along: Option<Direction>,
}

/// Where codes of a unit do not follow each other along a row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    /// Down a column, in units of words of so many bytes.
    Columns(usize),
    /// Each code of a unit is of another part of the rows.
    Parts,
}

/// Scales that are codes themselves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested {
    part: String,
    block: u64,
    offset: f32,
}

/// One number for a matrix.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Factor {
    part: String,
    #[serde(default, skip_serializing_if = "is_false")]
    divides: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &f32) -> bool {
    value.to_bits() == 0
}

impl Formula {
    /// The formula as a value. `role` gives each tensor its role.
    ///
    /// # Errors
    ///
    /// As `role`.
    pub(crate) fn describe(&self, role: impl Fn(&OwnedTensor) -> Result<String>) -> Result<Value> {
        let matrix = |codes: &Codes| Matrix::of(codes, role(codes.tensor())?);
        let (scales, absmax) = match &self.scale {
            None => (None, None),
            Some(Scale::Plain(codes)) => (Some(matrix(codes)?), None),
            Some(Scale::Nested { codes, absmax, block, offset, .. }) => {
                let (part, block, offset) = (role(absmax)?, *block, *offset);
                (Some(matrix(codes)?), Some(Nested { part, block, offset }))
            }
        };
        let global = self.global.as_ref().map(|Global { tensor, divides, .. }| {
            Ok::<_, zt::Error>(Factor { part: role(tensor)?, divides: *divides })
        });
        let described = Described {
            codes: matrix(&self.codes)?,
            transposed: self.is_transposed(),
            block: self.block.map(|len| if len == u64::MAX { 0 } else { len }),
            scales,
            absmax,
            zeros: self.zero.as_ref().map(matrix).transpose()?,
            zero_shift: self.zero_shift,
            biases: self.bias.as_ref().map(matrix).transpose()?,
            global: global.transpose()?,
            divisor: self.divisor,
            groups: self.groups.as_ref().map(|Groups { tensor, .. }| role(tensor)).transpose()?,
        };
        Ok(Value::serialized(&described)?)
    }

    /// The formula of values of this shape that a value describes. `part` gives the tensor of a role.
    ///
    /// # Errors
    ///
    /// Code `quantization` if it describes none; as the methods that build a formula; as `part`.
    pub(crate) fn described(
        shape: &[u64],
        value: &Value,
        part: impl Fn(&str) -> Result<OwnedTensor>,
    ) -> Result<Self> {
        let described: Described = value.deserialized().map_err(|error| rule(error.to_string()))?;
        let codes = |matrix: &Matrix| matrix.codes(part(&matrix.part)?);
        let [rows, columns] = described.block.map(|len| if len == 0 { u64::MAX } else { len });
        let mut formula = Formula::new(shape, codes(&described.codes)?)?.block(rows, columns);
        if described.transposed {
            formula = formula.transposed();
        }
        formula = match (&described.scales, &described.absmax) {
            (Some(scales), Some(Nested { part: absmax, block, offset })) => {
                formula.nested_scale(codes(scales)?, part(absmax)?, *block, *offset)?
            }
            (Some(scales), None) => formula.scale(codes(scales)?)?,
            (None, None) => formula,
            (None, Some(_)) => return Err(rule("absmax without scales".to_owned())),
        };
        if let Some(zeros) = &described.zeros {
            formula = formula.zero(codes(zeros)?, described.zero_shift)?;
        }
        if let Some(biases) = &described.biases {
            formula = formula.bias(codes(biases)?)?;
        }
        if let Some(Factor { part: global, divides }) = &described.global {
            formula = formula.global(part(global)?, *divides)?;
        }
        if let Some(groups) = &described.groups {
            formula = formula.groups(part(groups)?)?;
        }
        if let Some(divisor) = described.divisor {
            formula = formula.divided_by(divisor);
        }
        Ok(formula)
    }
}

impl Formula {
    /// The attributes of a `quantized_group` object with the same values, bit for bit, if there are such.
    pub(crate) fn as_group(&self) -> Option<Quantization> {
        let (codes, decoder) = (&self.codes, self.codes.decoder()?);
        let Some(Scale::Plain(scale)) = &self.scale else {
            return None;
        };
        let [rows, columns] = codes.shape();
        let [1, group] = self.block else { return None };
        let group = group.min(columns);
        let (bits, dtype) = (decoder.packing.bits_of_code(), codes.tensor().tensor().dtype()?);
        let per_word = u32::try_from(dtype.byte_len()).ok()?.checked_mul(8)?.checked_div(bits)?;
        let signed = dtype == DType::I8 && bits == 8 && decoder.values().last() == Some(&-1.0);
        let in_order = (0u32..)
            .zip(decoder.packing.shifts())
            .all(|(at, shift)| Some(*shift) == at.checked_mul(bits));
        let integer = |code: u8| if signed { code.cast_signed().into() } else { f32::from(code) };
        let integers = (0..=255).zip(decoder.values()).all(|(code, value)| integer(code) == *value);
        let wide = u64::from(per_word).max(1);
        let is_whole = [wide, group.max(1)].iter().all(|len| columns.is_multiple_of(*len));
        let is_plain = !self.is_transposed()
            && !codes.is_tiled()
            && decoder.packing.along() == Along::Row
            && self.zero.is_none()
            && self.global.is_none()
            && self.divisor.is_none()
            && self.groups.is_none();
        let is_exact = [Some(scale), self.bias.as_ref()].into_iter().flatten().all(|numbers| {
            let name = numbers.tensor().tensor().value_type();
            let is_narrow = name.is_some_and(|name| ["f16", "bf16"].contains(&&*name));
            // Of 8 bits and 16 the product is exact. A sum is rounded once more.
            numbers.decoder().is_none() && !numbers.is_tiled() && (is_narrow || self.bias.is_none())
        });
        let is_word = [DType::U8, DType::I8, DType::U32, DType::I32].contains(&dtype);
        let is_all = zt::formats::element_count(self.shape())
            == codes.count().checked_mul(rows)?.checked_mul(columns);
        if !(in_order && integers && is_whole && is_plain && is_exact && is_word && is_all) {
            return None;
        }
        let mut quantization = Quantization::new(bits, group, Words { per_word, dtype });
        quantization.signed = signed;
        if self.bias.is_some() {
            quantization.zero_kind = ZeroKind::Additive;
        }
        quantization.check(zt::formats::element_count(self.shape())?).ok()?;
        Some(quantization)
    }
}

impl Matrix {
    fn of(codes: &Codes, part: String) -> Result<Self> {
        let [rows, columns] = codes.shape();
        let (shape, tiled) = ([codes.count(), rows, columns], codes.is_tiled());
        let (mut packing, mut values, mut first) = (None, None, None);
        if let Some(decoder) = codes.decoder() {
            packing = Some(DescribedPacking::of(&decoder.packing));
            let of_type = codes.tensor().tensor().value_type();
            let of_type = of_type.and_then(|name| byte_values(&name).ok()).unwrap_or_default();
            let table = decoder.values();
            let from = table.first().copied().unwrap_or_default();
            let is_row = |(at, value): (usize, &f32)| *value == from + at as f32;
            let is_of_type =
                table.iter().map(|it| it.to_bits()).eq(of_type.iter().map(|it| it.to_bits()));
            if table.iter().enumerate().all(is_row) {
                first = Some(from);
            } else if !is_of_type {
                values = Some(table.to_vec());
            }
        }
        Ok(Matrix { part, shape, tiled, packing, values, first })
    }

    fn codes(&self, tensor: OwnedTensor) -> Result<Codes> {
        let Some(packed) = &self.packing else {
            return if self.tiled {
                Codes::tiled(tensor, self.shape)
            } else {
                Codes::numbers(tensor, self.shape)
            };
        };
        let packing = packed.packing()?;
        let values = match (&self.values, self.first) {
            (Some(values), None) => values.clone(),
            (None, Some(first)) => {
                (0..1u16 << packing.bits_of_code()).map(|code| first + f32::from(code)).collect()
            }
            (None, None) => byte_values(&tensor.tensor().value_type().unwrap_or_default())?,
            (Some(_), Some(_)) => return Err(rule("both values and first".to_owned())),
        };
        if self.tiled {
            return Codes::tiled_bytes(tensor, values, self.shape);
        }
        Codes::packed(tensor, packing, values, self.shape)
    }
}

impl DescribedPacking {
    fn of(packing: &Packing) -> Self {
        DescribedPacking {
            bits: packing.bits_of_code(),
            unit: packing.byte_len(),
            shifts: packing.shifts().to_vec(),
            line: packing.word(),
            along: match packing.along() {
                Along::Row => None,
                Along::Column { word } => Some(Direction::Columns(word)),
                Along::Parts => Some(Direction::Parts),
            },
        }
    }

    fn packing(&self) -> Result<Packing> {
        let along = match self.along {
            None => Along::Row,
            Some(Direction::Columns(word)) => Along::Column { word },
            Some(Direction::Parts) => Along::Parts,
        };
        let packing = Packing::described(self.bits, self.unit, &self.shifts, self.line, along);
        packing.ok_or_else(|| rule("a packing whose codes do not lie in its units".to_owned()))
    }
}

fn rule(what: String) -> zt::Error {
    Fault::Rule { dialect: FORMAT, what }.into()
}
