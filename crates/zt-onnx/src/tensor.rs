//! A `TensorProto`: its metadata, and how its values are stored.

use zt::{Attributes, Limits, Result, Span};

use crate::attributes::{DOC_STRING, Pairs, pair_of};
use crate::element::{STRING, Values};
use crate::fault::OnnxFault;
use crate::typed::{RUNS_MAX, Runs};
use crate::wire::{Field, Fields, Window, Wire};

/// The numbers of its fields.
mod field {
    pub(super) const DIMS: u32 = 1;
    pub(super) const DATA_TYPE: u32 = 2;
    pub(super) const SEGMENT: u32 = 3;
    pub(super) const FLOAT_DATA: u32 = 4;
    pub(super) const INT32_DATA: u32 = 5;
    pub(super) const INT64_DATA: u32 = 7;
    pub(super) const NAME: u32 = 8;
    pub(super) const RAW_DATA: u32 = 9;
    pub(super) const DOUBLE_DATA: u32 = 10;
    pub(super) const UINT64_DATA: u32 = 11;
    pub(super) const DOC_STRING: u32 = 12;
    pub(super) const EXTERNAL_DATA: u32 = 13;
    pub(super) const DATA_LOCATION: u32 = 14;
    pub(super) const METADATA_PROPS: u32 = 16;
}

/// The most bytes of a location, and of the numbers beside it.
const LOCATION_MAX: u64 = 4096;

/// A tensor without its values.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// The valid dimensions.
    pub(super) shape: Vec<u64>,
    /// Its `TensorProto.DataType`.
    pub(super) data_type: i64,
    pub(super) stored: Stored,
    pub(super) attributes: Option<Attributes>,
    /// A duplicate key of the metadata.
    pub(super) repeated: Option<String>,
    /// The span of the message.
    pub(super) span: Span,
    /// The tensor's own fault.
    pub(super) fault: Option<OnnxFault>,
}

/// Where and how the values are stored.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    /// Plain elements in the model; an empty span if there are no values.
    Raw(Span),
    /// The field of their type, in the model.
    Typed(Runs),
    /// Plain elements in another file.
    External(External),
    /// One value, 0, which is omitted.
    Zero,
}

/// The strings of `external_data`.
#[derive(Debug, Clone, Default)]
pub(super) struct External {
    pub(super) location: String,
    pub(super) offset: Option<String>,
    pub(super) length: Option<String>,
    pub(super) checksum: Option<String>,
}

impl Tensor {
    /// Whether it is sound and has texts in place of numbers.
    pub(super) fn is_text(&self) -> bool {
        self.fault.is_none() && self.data_type == STRING
    }

    pub(super) fn read(window: &mut Window<'_>, span: Span, limits: &Limits) -> Result<Self> {
        let mut reader = Reader {
            limits,
            name: String::new(),
            shape: Shape::new(limits),
            data_type: 0,
            raw: None,
            typed: None,
            external: External::default(),
            is_external: false,
            attributes: Pairs::new(limits.attributes_len as u64),
            fault: None,
        };
        let mut fields = Fields::of(span);
        while let Some(field) = fields.next(window)? {
            reader.take(window, &field)?;
        }
        Ok(reader.finish(span))
    }
}

/// Dimensions that are being collected.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) dimensions: Vec<u64>,
    pub(super) fault: Option<OnnxFault>,
    limit: usize,
}

impl Shape {
    pub(super) const fn new(limits: &Limits) -> Self {
        Shape { dimensions: Vec::new(), fault: None, limit: limits.rank }
    }

    /// Adds a field of dimensions: packed, or one.
    pub(super) fn take(&mut self, window: &mut Window<'_>, field: &Field) -> Result<()> {
        if field.wire == Wire::Varint {
            self.add(field.integer()?);
            return Ok(());
        }
        let packed = field.bytes()?;
        let mut at = packed.offset();
        while at < packed.end() {
            let dimension = window.varint(&mut at, packed.end())?;
            self.add(dimension.cast_signed());
        }
        Ok(())
    }

    fn add(&mut self, value: i64) {
        let limit = self.limit;
        let fault = match u64::try_from(value) {
            Ok(_) if self.dimensions.len() >= limit => OnnxFault::Rank { limit },
            Ok(dimension) => return self.dimensions.push(dimension),
            Err(_) => OnnxFault::Dimension { value },
        };
        self.fault.get_or_insert(fault);
    }
}

/// A tensor whose fields are being read. The last of several equal fields counts.
struct Reader<'l> {
    limits: &'l Limits,
    name: String,
    shape: Shape,
    data_type: i64,
    raw: Option<Span>,
    typed: Option<Runs>,
    external: External,
    is_external: bool,
    attributes: Pairs,
    fault: Option<OnnxFault>,
}

impl Reader<'_> {
    fn take(&mut self, window: &mut Window<'_>, field: &Field) -> Result<()> {
        match field.number {
            field::DIMS => self.shape.take(window, field)?,
            field::DATA_TYPE => self.data_type = field.integer()?,
            field::SEGMENT => self.blame(OnnxFault::Segment),
            field::NAME => {
                let limit = self.limits.name_len as u64;
                self.name = window.text(field.bytes()?, "a name", limit)?;
            }
            field::RAW_DATA => self.raw = Some(field.bytes()?),
            field::FLOAT_DATA => self.values(Values::Float, field)?,
            field::INT32_DATA => self.values(Values::Int32, field)?,
            field::INT64_DATA => self.values(Values::Int64, field)?,
            field::DOUBLE_DATA => self.values(Values::Double, field)?,
            field::UINT64_DATA => self.values(Values::Uint64, field)?,
            field::DOC_STRING => {
                let span = field.bytes()?;
                self.attributes.text(window, DOC_STRING, span)?;
            }
            field::METADATA_PROPS => self.attributes.pair(window, field.bytes()?)?,
            field::EXTERNAL_DATA => self.external(window, field.bytes()?)?,
            field::DATA_LOCATION => self.is_external = field.integer()? == 1,
            // `string_data` is skipped too: strings are no tensors.
            _ => {}
        }
        Ok(())
    }

    fn values(&mut self, values: Values, field: &Field) -> Result<()> {
        // An empty field is ignored.
        if field.wire == Wire::Bytes && field.span.is_empty() {
            return Ok(());
        }
        let typed = self.typed.get_or_insert_with(|| Runs::new(values));
        if typed.values() != values {
            self.blame(OnnxFault::Fields);
        } else if !typed.push(field)? {
            let limit = RUNS_MAX;
            self.blame(OnnxFault::Scattered { limit });
        }
        Ok(())
    }

    /// A pair of `external_data`. Unknown keys are ignored, as the ONNX library does.
    fn external(&mut self, window: &mut Window<'_>, pair: Span) -> Result<()> {
        let (key, value) = pair_of(window, pair)?;
        if key.byte_len() > LOCATION_MAX {
            return Ok(());
        }
        let key = window.text(key, "a key", LOCATION_MAX)?;
        let mut value = |what| window.text(value, what, LOCATION_MAX);
        let external = &mut self.external;
        match &*key {
            "location" => external.location = value("a location")?,
            "offset" => external.offset = Some(value("an offset")?),
            "length" => external.length = Some(value("a length")?),
            "checksum" => external.checksum = Some(value("a checksum")?),
            _ => {}
        }
        Ok(())
    }

    /// Keeps the first fault.
    fn blame(&mut self, fault: OnnxFault) {
        self.fault.get_or_insert(fault);
    }

    fn finish(mut self, span: Span) -> Tensor {
        let stored = match (self.is_external, self.raw, self.typed.take()) {
            // The ONNX library ignores all other values then.
            (true, ..) => Stored::External(std::mem::take(&mut self.external)),
            (false, Some(_), Some(_)) => {
                self.blame(OnnxFault::Fields);
                Stored::Raw(Span::default())
            }
            (false, None, Some(typed)) => Stored::Typed(typed),
            (false, raw, None) => Stored::Raw(raw.unwrap_or_default()),
        };
        if let Some(fault) = self.shape.fault.take() {
            self.blame(fault);
        }
        let repeated = self.attributes.repeated().map(ToOwned::to_owned);
        let attributes = self.attributes.finish().unwrap_or_else(|fault| {
            self.fault.get_or_insert(fault);
            None
        });
        Tensor {
            name: self.name,
            shape: self.shape.dimensions,
            data_type: self.data_type,
            stored,
            attributes,
            repeated,
            span,
            fault: self.fault,
        }
    }
}
