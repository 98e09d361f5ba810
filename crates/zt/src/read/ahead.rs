//! Tensors that are announced to remote sources before they are read.

use std::sync::Arc;

use zt_container::{Source, Span};

use crate::cores::announce::announce_all;
use crate::file::tensor::Tensor;

/// Announces tensors to remote sources, which fetch them in parallel, in the order in which the caller
/// reads them.
///
/// A remote source holds what it has fetched until it is read. So only the next 192 MiB are announced,
/// but at least one component. Local sources are not asked.
#[derive(Default)]
pub struct ReadAhead<'f> {
    /// The components of remote sources, each with the place of its tensor.
    components: Vec<(usize, Place<'f>, Span)>,
    /// How many of them were announced, and how many were read.
    announced: usize,
    read: usize,
    /// Bytes that were announced and not read yet.
    ahead: u64,
    next: usize,
}

/// Where bytes are fetched.
enum Place<'f> {
    /// In the tensor's source.
    Own(&'f dyn Source),
    /// In another source. The tensor's source computes its bytes from these.
    Other(Arc<dyn Source>),
}

impl<'f> ReadAhead<'f> {
    const MOST: u64 = 192 << 20;
    /// Small tensors are announced together, so that one request fetches many of them.
    const LEAST: u64 = 128 << 20;

    /// Announces nothing yet. `tensors` are in the order in which they will be read.
    pub fn new(tensors: impl IntoIterator<Item = Tensor<'f>>) -> Self {
        let mut components = Vec::new();
        for (place, tensor) in tensors.into_iter().enumerate() {
            let first = components.len();
            for part in tensor.located() {
                let (source, span) = (tensor.source(part), part.component.blob.span);
                if !source.is_remote() {
                    continue;
                }
                match source.made_of(span) {
                    Some(parts) => components.extend(
                        parts.into_iter().map(|(source, span)| (place, Place::Other(source), span)),
                    ),
                    None => components.push((place, Place::Own(source), span)),
                }
            }
            let parts = components.get_mut(first..).unwrap_or_default();
            parts.sort_by_key(|(_, _, span)| span.offset());
        }
        ReadAhead { components, ..ReadAhead::default() }
    }

    /// Call it before each tensor is read.
    pub fn advance(&mut self) {
        while let Some((place, _, span)) = self.components.get(self.read)
            && *place < self.next
        {
            self.ahead = self.ahead.saturating_sub(span.byte_len());
            self.read = self.read.strict_add(1);
        }
        self.next = self.next.strict_add(1);
        if self.ahead >= Self::LEAST {
            return;
        }
        let first = self.announced;
        while let Some((_, _, span)) = self.components.get(self.announced)
            && self.ahead < Self::MOST
        {
            self.ahead = self.ahead.saturating_add(span.byte_len());
            self.announced = self.announced.strict_add(1);
        }
        let next = self.components.get(first..self.announced);
        announce_all(next.unwrap_or_default(), |(_, source, span)| match source {
            Place::Own(source) => (*source, *span),
            Place::Other(source) => (&**source, *span),
        });
    }
}
