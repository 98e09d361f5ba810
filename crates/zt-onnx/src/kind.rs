//! The kind `onnx`.

use zt::foreign::Kind;
use zt::{Result, Source, Span};
use zt_foreign::{FileKind, Input, Opening, Probe};

use crate::model::field;
use crate::read;
use crate::wire::{Fields, Window, Wire};

/// Models of ONNX.
pub const ONNX: Kind = Kind::new("onnx");

/// The kind `onnx`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Onnx;

impl FileKind for Onnx {
    fn kind(&self) -> Kind {
        ONNX
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["onnx"]
    }

    /// Whether a file is a message with a graph and only fields of a model. In a truncated file, the
    /// fields up to the graph decide, and the version must come first, as every writer puts it.
    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        let Some(file) = Span::new(0, probe.byte_len()) else {
            return Ok(false);
        };
        let mut window = Window::new(probe.source());
        let mut fields = Fields::of(file);
        let (mut has_version, mut has_graph) = (false, false);
        for _ in 0..FIELDS_MAX {
            let begins_graph = fields.offset();
            let field = match fields.next(&mut window) {
                Ok(Some(field)) => field,
                Ok(None) => return Ok(has_graph),
                Err(error) if error.kind() == zt::ErrorKind::Io => return Err(error),
                // Truncated within the graph, as an incomplete download is.
                Err(_) => {
                    let mut at = begins_graph;
                    let tag = window.varint(&mut at, file.end()).ok();
                    return Ok(has_version && tag == Some(GRAPH_TAG));
                }
            };
            let wire = match field.number {
                field::IR_VERSION | field::MODEL_VERSION => Wire::Varint,
                field::PRODUCER_NAME..=field::DOC_STRING
                | field::GRAPH
                | field::OPSET_IMPORT
                | field::METADATA_PROPS
                | field::TRAINING_INFO
                | field::FUNCTIONS
                | field::CONFIGURATION => Wire::Bytes,
                _ => return Ok(false),
            };
            if field.wire != wire {
                return Ok(false);
            }
            has_version |= field.number == field::IR_VERSION;
            has_graph |= field.number == field::GRAPH;
            if has_version && has_graph {
                return Ok(true);
            }
        }
        Ok(has_graph)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening.builder(ONNX), opening)
    }
}

/// The most fields that are read to recognise a model. A model has some dozens.
const FIELDS_MAX: usize = 4096;

/// The tag of a graph: its number, and the wire type of bytes.
const GRAPH_TAG: u64 = (field::GRAPH as u64) << 3 | 2;
