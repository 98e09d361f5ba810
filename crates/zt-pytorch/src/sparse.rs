//! Sparse tensors: their parts as the components of `sparse_coo` and `sparse_csr`.

use zt::foreign::SourceId;
use zt::{Blob, Component, DType, Result, Source, Span};
use zt_foreign::sparse::{Compressed, Coords, Indices};

use crate::assemble::{Assembled, Assembler, Elements};
use crate::element::{ElementType, Meaning};
use crate::fault::TensorFault;
use crate::view::View;

/// The layout of a sparse tensor, as its pickle describes it.
#[derive(Debug)]
pub(super) enum Sparse {
    /// Values and, for each, a coordinate in every dimension. The values may be arrays, of the last
    /// dimensions.
    Coo { shape: Vec<u64>, coords: View, values: View, is_coalesced: Option<bool> },
    /// The rows of a matrix.
    Csr { shape: Vec<u64>, indptr: View, indices: View, values: View },
    /// The columns of a matrix, or its rows or columns in blocks.
    Compressed {
        by: Compressed,
        shape: [u64; 2],
        /// The rows and columns of a block: 1 and 1 without blocks.
        block: [u64; 2],
        pointers: View,
        indices: View,
        values: View,
    },
}

impl Sparse {
    pub(super) fn shape(&self) -> &[u64] {
        match self {
            Sparse::Coo { shape, .. } | Sparse::Csr { shape, .. } => shape,
            Sparse::Compressed { shape, .. } => shape,
        }
    }

    /// The type of the values.
    pub(super) const fn element(&self) -> &'static ElementType {
        match self {
            Sparse::Coo { values, .. }
            | Sparse::Csr { values, .. }
            | Sparse::Compressed { values, .. } => values.element,
        }
    }
}

impl Assembler<'_> {
    pub(super) fn sparse(&mut self, layout: Sparse) -> Result<Assembled> {
        Ok(match layout {
            Sparse::Coo { shape, coords, values, is_coalesced } => {
                // The shapes of the parts were compared when the pickle was read.
                let inner = values.shape.split_at(1).1.to_vec();
                let rows = shape.len().strict_sub(inner.len()) as u64;
                let mut parts = Assembled::new(shape, "sparse_coo");
                parts.push("values", self.component(values)?);
                let coords = if inner.is_empty() {
                    self.indices(coords)?
                } else {
                    self.hybrid(&coords, rows, &inner)?
                };
                parts.push("coords", coords);
                if let Some(is_coalesced) = is_coalesced {
                    parts.attribute("is_coalesced", is_coalesced.into());
                }
                parts
            }
            Sparse::Csr { shape, indptr, indices, values } => {
                let mut parts = Assembled::new(shape, "sparse_csr");
                parts.push("values", self.component(values)?);
                parts.push("indices", self.indices(indices)?);
                parts.push("indptr", self.indices(indptr)?);
                parts
            }
            Sparse::Compressed { by, shape, block, pointers, indices, values } => {
                let (pointers, indices) = (self.integers(&pointers)?, self.integers(&indices)?);
                let coords = Coords::compressed(by, shape, block, pointers, indices)?;
                let mut parts = Assembled::new(shape.to_vec(), "sparse_coo");
                parts.push("values", self.component(values)?);
                parts.push("coords", self.coords(coords)?);
                parts
            }
        })
    }

    /// Indices of a sparse tensor, which are u64 (decision D10). torch's i64 are read as u64: a
    /// negative index is out of range of every shape. The i32 of a CSR matrix stay i32.
    fn indices(&mut self, view: View) -> Result<(Component, SourceId)> {
        let (mut component, id) = self.component(view)?;
        if component.dtype == Some(DType::I64) {
            component.dtype = Some(DType::U64);
        }
        Ok((component, id))
    }

    /// The coordinates of all values of a hybrid tensor, whose stored values are arrays of the dimensions
    /// `inner`. `indices` has `rows`, one for each of the first dimensions.
    fn hybrid(
        &mut self,
        indices: &View,
        rows: u64,
        inner: &[u64],
    ) -> Result<(Component, SourceId)> {
        let row = |row| self.integers(&indices.row(row)?);
        let rows: Vec<Indices> = (0..rows).map(row).collect::<Result<_>>()?;
        let coords = Coords::hybrid(rows, inner)?;
        self.coords(coords)
    }

    /// Coordinates that are made when they are read.
    fn coords(&mut self, coords: Coords) -> Result<(Component, SourceId)> {
        let span = Span::new(0, coords.byte_len()).ok_or(TensorFault::Overflow)?;
        let id = self.builder.derived(coords);
        Ok((Component::new(DType::U64, Blob::raw(span)), id))
    }

    /// Indices of a layout that `.zt` does not have.
    fn integers(&mut self, view: &View) -> Result<Indices> {
        let Meaning::Values(dtype, None) = view.element.meaning else {
            let name = view.element.name;
            return Err(TensorFault::Element { name }.into());
        };
        let Elements { source, span, .. } = self.elements(view)?;
        let order = self.order_of(dtype);
        Ok(Indices::new(source, Blob::raw(span), dtype, order)?)
    }
}
