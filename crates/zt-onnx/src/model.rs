//! A `ModelProto`: all of its tensors and its metadata.
//!
//! Weights are the initializers of the graph. Other tensors are in attributes of nodes (`Constant`),
//! in nested graphs (the branches of an `If`), in functions and in training information. A tensor
//! without a name of its own gets one from its place.

use zt::{Attributes, Error, Limits, Result, Span};

use crate::attributes::{DOC_STRING, Pairs};
use crate::constant::Constant;
use crate::fault::OnnxFault;
use crate::tensor::{Shape, Tensor};
use crate::wire::{Field, Fields, Window};

/// The most levels of nested graphs. Protocol Buffers read 100 levels of messages, and a nested graph
/// takes three.
const GRAPHS_MAX: usize = 32;

/// The most tensors of a model. The largest published models have some ten thousand.
const TENSORS_MAX: u64 = 1 << 20;

/// The least bytes of the file per tensor, and the tensors that any file may have. A listed tensor
/// takes some 0.7 KiB of memory, and up to 1.9 KiB with the error that reading it gives, but an empty
/// one has two bytes in the file. Large models have weights beside their scalars; small ones have at
/// most some ten thousand scalars, each with a node.
const PER_TENSOR: u64 = 128;
const TENSORS_MIN: u64 = 16_384;

/// The most bytes of all derived names per byte of the file, and for any file.
const NAMES: u64 = 16;
const NAMES_MIN: u64 = 64 << 10;

/// The attribute of a model with the versions of its operator sets, by domain.
const OPSET_IMPORT: &str = "onnx.opset_import";

/// Numbers of the fields of a `ModelProto`.
pub(super) mod field {
    pub(in super::super) const IR_VERSION: u32 = 1;
    pub(in super::super) const PRODUCER_NAME: u32 = 2;
    pub(in super::super) const PRODUCER_VERSION: u32 = 3;
    pub(in super::super) const DOMAIN: u32 = 4;
    pub(in super::super) const MODEL_VERSION: u32 = 5;
    pub(in super::super) const DOC_STRING: u32 = 6;
    pub(in super::super) const GRAPH: u32 = 7;
    pub(in super::super) const OPSET_IMPORT: u32 = 8;
    pub(in super::super) const METADATA_PROPS: u32 = 14;
    pub(in super::super) const TRAINING_INFO: u32 = 20;
    pub(in super::super) const FUNCTIONS: u32 = 25;
    pub(in super::super) const CONFIGURATION: u32 = 26;
}

/// A model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) tensors: Vec<Found>,
    pub(super) attributes: Option<Attributes>,
    /// Duplicate keys of the metadata.
    pub(super) repeated: Vec<String>,
}

/// A tensor of a model.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: Name,
    pub(super) content: Content,
}

/// The name of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// The name of an initializer, which is unique in the model.
    Own(String),
    /// A name that is derived from the tensor's place, and may not be unique.
    Derived(String),
}

/// A dense or a sparse tensor.
#[derive(Debug)]
pub(super) enum Content {
    Dense(Box<Tensor>),
    Sparse(Box<Sparse>),
}

/// A `SparseTensorProto`.
#[derive(Debug)]
pub(super) struct Sparse {
    pub(super) values: Tensor,
    pub(super) indices: Tensor,
    pub(super) shape: Vec<u64>,
    pub(super) fault: Option<OnnxFault>,
}

impl Model {
    /// Reads all of a file except the values.
    pub(super) fn read(window: &mut Window<'_>, file: Span, limits: &Limits) -> Result<Self> {
        let tensors_max = (file.byte_len() / PER_TENSOR).clamp(TENSORS_MIN, TENSORS_MAX);
        let mut walk = Walk {
            window,
            limits,
            found: Vec::new(),
            tensors_left: tensors_max,
            tensors_max,
            // Saturates on purpose: it is only a limit.
            names: file.byte_len().saturating_mul(NAMES).max(NAMES_MIN),
            pairs: Pairs::new(limits.manifest_len),
        };
        let mut imports = Pairs::new(limits.manifest_len);
        let (mut has_graph, mut trainings) = (false, 0u64);
        let mut fields = Fields::of(file);
        while let Some(field) = fields.next(walk.window)? {
            match field.number {
                field::GRAPH => {
                    has_graph = true;
                    walk.graph(field.bytes()?, "", GRAPHS_MAX)?;
                }
                field::OPSET_IMPORT => walk.import(field.bytes()?, &mut imports)?,
                field::METADATA_PROPS => walk.pairs.pair(walk.window, field.bytes()?)?,
                field::TRAINING_INFO => {
                    walk.training(field.bytes()?, trainings)?;
                    trainings = trainings.strict_add(1);
                }
                field::FUNCTIONS => walk.function(field.bytes()?)?,
                _ => walk.about_model(&field)?,
            }
        }
        if !has_graph {
            return Err(OnnxFault::NoGraph.into());
        }
        let import = imports.repeated();
        let import = import.map(|key| format!("{OPSET_IMPORT}.{key}"));
        if let Some(imports) = imports.finish()? {
            walk.pairs.add(OPSET_IMPORT, imports.into());
        }
        let key = walk.pairs.repeated().map(ToOwned::to_owned);
        Ok(Model {
            tensors: walk.found,
            attributes: walk.pairs.finish()?,
            repeated: import.into_iter().chain(key).collect(),
        })
    }
}

struct Walk<'w, 's> {
    window: &'w mut Window<'s>,
    limits: &'w Limits,
    found: Vec<Found>,
    /// The number of further tensors, where a sparse one counts as two, and of all tensors.
    tensors_left: u64,
    tensors_max: u64,
    /// Bytes that derived names may still take.
    names: u64,
    pairs: Pairs,
}

impl Walk<'_, '_> {
    /// The fields of a model with one value.
    fn about_model(&mut self, field: &Field) -> Result<()> {
        let key = match field.number {
            field::IR_VERSION => "onnx.ir_version",
            field::PRODUCER_NAME => "onnx.producer_name",
            field::PRODUCER_VERSION => "onnx.producer_version",
            field::DOMAIN => "onnx.domain",
            field::MODEL_VERSION => "onnx.model_version",
            field::DOC_STRING => DOC_STRING,
            _ => return Ok(()),
        };
        match field.number {
            field::IR_VERSION | field::MODEL_VERSION => {
                self.pairs.add(key, field.integer()?.into());
                Ok(())
            }
            _ => self.pairs.text(self.window, key, field.bytes()?),
        }
    }

    /// An `OperatorSetIdProto`: a domain, which is empty for ONNX itself, and a version.
    fn import(&mut self, import: Span, imports: &mut Pairs) -> Result<()> {
        const DOMAIN: u32 = 1;
        const VERSION: u32 = 2;
        let (mut domain, mut version) = (Span::default(), 0);
        let mut fields = Fields::of(import);
        while let Some(field) = fields.next(self.window)? {
            match field.number {
                DOMAIN => domain = field.bytes()?,
                VERSION => version = field.integer()?,
                _ => {}
            }
        }
        if self.pairs.has_room(domain.byte_len()) {
            let limit = self.limits.name_len as u64;
            let domain = self.window.text(domain, "a name", limit)?;
            imports.add(&domain, version.into());
        }
        Ok(())
    }

    /// A `TrainingInfoProto`.
    fn training(&mut self, training: Span, number: u64) -> Result<()> {
        let mut fields = Fields::of(training);
        while let Some(field) = fields.next(self.window)? {
            let step = match field.number {
                1 => "initialization",
                2 => "algorithm",
                _ => continue,
            };
            let scope = format!("training_info.{number}.{step}.");
            self.graph(field.bytes()?, &scope, GRAPHS_MAX)?;
        }
        Ok(())
    }

    /// A `FunctionProto`, which has nodes and default values of attributes.
    fn function(&mut self, function: Span) -> Result<()> {
        const NAME: u32 = 1;
        const NODE: u32 = 7;
        const ATTRIBUTE_PROTO: u32 = 11;
        let scope = format!("{}.", self.name(function, NAME)?);
        let mut fields = Fields::of(function);
        while let Some(field) = fields.next(self.window)? {
            match field.number {
                NODE => self.node(field.bytes()?, &scope, GRAPHS_MAX)?,
                ATTRIBUTE_PROTO => self.default(field.bytes()?, &scope)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The default value of a function's attribute.
    fn default(&mut self, attribute: Span, scope: &str) -> Result<()> {
        if !self.has_tensors(attribute)? {
            return Ok(());
        }
        let key = self.name(attribute, attribute::NAME)?;
        let name = self.derived(format!("{scope}{key}"))?;
        self.attribute(attribute, &name, GRAPHS_MAX)
    }

    /// A `GraphProto`. The names of its tensors begin with `scope`, which is empty for the main
    /// graph.
    fn graph(&mut self, graph: Span, scope: &str, levels: usize) -> Result<()> {
        let Some(levels) = levels.checked_sub(1) else {
            let limit = GRAPHS_MAX;
            return Err(Error::from(OnnxFault::Nested { limit }).with_span(graph));
        };
        let mut fields = Fields::of(graph);
        let mut unnamed = 0u64;
        while let Some(field) = fields.next(self.window)? {
            let mut content = match field.number {
                graph::NODE => {
                    self.node(field.bytes()?, scope, levels)?;
                    continue;
                }
                graph::INITIALIZER => self.dense(field.bytes()?)?,
                graph::SPARSE_INITIALIZER => self.sparse(field.bytes()?)?,
                _ if scope.is_empty() => {
                    self.about_graph(&field)?;
                    continue;
                }
                _ => continue,
            };
            let name = content.take_name();
            let name = if name.is_empty() {
                let name = format!("{scope}initializer.{unnamed}");
                unnamed = unnamed.strict_add(1);
                Name::Derived(self.derived(name)?)
            } else if scope.is_empty() {
                Name::Own(name)
            } else {
                Name::Derived(self.derived(format!("{scope}{name}"))?)
            };
            self.add(name, content)?;
        }
        Ok(())
    }

    fn about_graph(&mut self, field: &Field) -> Result<()> {
        match field.number {
            graph::NAME => self.pairs.text(self.window, "onnx.graph", field.bytes()?),
            graph::DOC_STRING => {
                let key = "onnx.graph.doc_string";
                self.pairs.text(self.window, key, field.bytes()?)
            }
            graph::METADATA_PROPS => self.pairs.pair(self.window, field.bytes()?),
            _ => Ok(()),
        }
    }

    /// A `NodeProto`.
    fn node(&mut self, node: Span, scope: &str, levels: usize) -> Result<()> {
        let mut attributes = Fields::of(node);
        let (mut label, mut gives_numbers) = (None, None);
        while let Some(field) = attributes.next(self.window)? {
            if field.number != node::ATTRIBUTE {
                continue;
            }
            let attribute = field.bytes()?;
            let number = if self.has_tensors(attribute)? {
                None
            } else {
                match self.number(node, &mut gives_numbers, attribute)? {
                    Some(number) => Some(Content::Dense(Box::new(number))),
                    None => continue,
                }
            };
            let (name, is_constant) = match &label {
                Some(known) => known,
                None => label.insert(self.label(node)?),
            };
            let key = self.name(attribute, attribute::NAME)?;
            let name = self.derived(if *is_constant {
                format!("{scope}{name}")
            } else {
                format!("{scope}{name}.{key}")
            })?;
            match number {
                Some(number) => self.add(Name::Derived(name), number)?,
                None => self.attribute(attribute, &name, levels)?,
            }
        }
        Ok(())
    }

    /// The name of a node in the names of its tensors, and whether it is a `Constant` of any domain.
    fn label(&mut self, node: Span) -> Result<(String, bool)> {
        let operator = self.name(node, node::OP_TYPE)?;
        let output = self.name(node, node::OUTPUT)?;
        let is_constant = operator == "Constant";
        let name = match self.name(node, node::NAME)? {
            // Other nodes know a Constant by its output.
            _ if is_constant && !output.is_empty() => output,
            name if !name.is_empty() => name,
            _ if !output.is_empty() => output,
            _ => operator,
        };
        Ok((name, is_constant))
    }

    /// The value of a `Constant` in an attribute without tensors. `is_constant` is kept for all
    /// attributes of a node, because finding it reads all of them.
    fn number(
        &mut self,
        node: Span,
        is_constant: &mut Option<bool>,
        attribute: Span,
    ) -> Result<Option<Tensor>> {
        let is_constant = match *is_constant {
            Some(known) => known,
            None => *is_constant.insert(self.is_constant(node)?),
        };
        if !is_constant {
            return Ok(None);
        }
        match Constant::of(&self.name(attribute, attribute::NAME)?) {
            Some(constant) => constant.read(self.window, attribute, self.limits),
            None => Ok(None),
        }
    }

    /// Whether a node is a `Constant` of ONNX itself.
    fn is_constant(&mut self, node: Span) -> Result<bool> {
        let operator = self.string(node, node::OP_TYPE)?;
        let domain = self.string(node, node::DOMAIN)?;
        let is_own = domain.is_empty() || self.window.is(domain, "ai.onnx")?;
        Ok(is_own && self.window.is(operator, "Constant")?)
    }

    /// Whether an `AttributeProto` has tensors, or graphs that may have tensors.
    fn has_tensors(&mut self, attribute: Span) -> Result<bool> {
        let mut fields = Fields::of(attribute);
        while let Some(field) = fields.next(self.window)? {
            if attribute::has_tensors(field.number) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tensors of an `AttributeProto`, named `name`, or `name.0`, `name.1`, ... in a list.
    fn attribute(&mut self, attribute: Span, name: &str, levels: usize) -> Result<()> {
        let mut fields = Fields::of(attribute);
        let mut number = 0u64;
        while let Some(field) = fields.next(self.window)? {
            let is_one_of_many = match field.number {
                attribute::TENSORS | attribute::GRAPHS | attribute::SPARSE_TENSORS => true,
                attribute::TENSOR | attribute::GRAPH | attribute::SPARSE_TENSOR => false,
                _ => continue,
            };
            let mut name = name.to_owned();
            if is_one_of_many {
                name = format!("{name}.{number}");
                number = number.strict_add(1);
            }
            let mut name = self.derived(name)?;
            let content = match field.number {
                attribute::TENSOR | attribute::TENSORS => self.dense(field.bytes()?)?,
                attribute::SPARSE_TENSOR | attribute::SPARSE_TENSORS => {
                    self.sparse(field.bytes()?)?
                }
                _ => {
                    name.push('.');
                    self.graph(field.bytes()?, &name, levels)?;
                    continue;
                }
            };
            self.add(Name::Derived(name), content)?;
        }
        Ok(())
    }

    /// Counts a derived name. The bytes of all derived names are limited by the length of the file.
    fn derived(&mut self, name: String) -> Result<String> {
        let byte_len = name.len() as u64;
        let too_long =
            || OnnxFault::TooLong { what: "a derived name", byte_len, limit: self.names };
        self.names = self.names.checked_sub(byte_len).ok_or_else(too_long)?;
        Ok(name)
    }

    fn add(&mut self, name: Name, content: Content) -> Result<()> {
        let tensors = match &content {
            Content::Dense(_) => 1,
            Content::Sparse(_) => 2,
        };
        let limit = self.tensors_max;
        let left = self.tensors_left.checked_sub(tensors);
        self.tensors_left = left.ok_or(OnnxFault::TooMany { limit })?;
        self.found.push(Found { name, content });
        Ok(())
    }

    fn dense(&mut self, tensor: Span) -> Result<Content> {
        let tensor = Tensor::read(self.window, tensor, self.limits)?;
        Ok(Content::Dense(Box::new(tensor)))
    }

    fn sparse(&mut self, sparse: Span) -> Result<Content> {
        const VALUES: u32 = 1;
        const INDICES: u32 = 2;
        const DIMS: u32 = 3;
        let (mut values, mut indices) = (Span::default(), Span::default());
        let mut shape = Shape::new(self.limits);
        let mut fields = Fields::of(sparse);
        while let Some(field) = fields.next(self.window)? {
            match field.number {
                VALUES => values = field.bytes()?,
                INDICES => indices = field.bytes()?,
                DIMS => shape.take(self.window, &field)?,
                _ => {}
            }
        }
        Ok(Content::Sparse(Box::new(Sparse {
            values: Tensor::read(self.window, values, self.limits)?,
            indices: Tensor::read(self.window, indices, self.limits)?,
            shape: shape.dimensions,
            fault: shape.fault,
        })))
    }

    /// The first string of a message in a field; empty if there is none.
    fn name(&mut self, message: Span, number: u32) -> Result<String> {
        let string = self.string(message, number)?;
        let limit = self.limits.name_len as u64;
        self.window.text(string, "a name", limit)
    }

    /// The span of that string.
    fn string(&mut self, message: Span, number: u32) -> Result<Span> {
        let mut fields = Fields::of(message);
        while let Some(field) = fields.next(self.window)? {
            if field.number == number {
                return field.bytes();
            }
        }
        Ok(Span::default())
    }
}

impl Content {
    /// Takes the name in the model.
    fn take_name(&mut self) -> String {
        std::mem::take(match self {
            Content::Dense(tensor) => &mut tensor.name,
            Content::Sparse(sparse) => &mut sparse.values.name,
        })
    }
}

/// Numbers of the fields of a `GraphProto`.
mod graph {
    pub(super) const NODE: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const INITIALIZER: u32 = 5;
    pub(super) const DOC_STRING: u32 = 10;
    pub(super) const SPARSE_INITIALIZER: u32 = 15;
    pub(super) const METADATA_PROPS: u32 = 16;
}

/// Numbers of the fields of a `NodeProto`.
mod node {
    pub(super) const OUTPUT: u32 = 2;
    pub(super) const NAME: u32 = 3;
    pub(super) const OP_TYPE: u32 = 4;
    pub(super) const ATTRIBUTE: u32 = 5;
    pub(super) const DOMAIN: u32 = 7;
}

/// Numbers of the fields of an `AttributeProto`.
mod attribute {
    pub(super) const NAME: u32 = 1;
    pub(super) const TENSOR: u32 = 5;
    pub(super) const GRAPH: u32 = 6;
    pub(super) const TENSORS: u32 = 10;
    pub(super) const GRAPHS: u32 = 11;
    pub(super) const SPARSE_TENSOR: u32 = 22;
    pub(super) const SPARSE_TENSORS: u32 = 23;

    pub(super) const fn has_tensors(number: u32) -> bool {
        matches!(number, TENSOR | GRAPH | TENSORS | GRAPHS | SPARSE_TENSOR | SPARSE_TENSORS)
    }
}
