//! A matrix of codes or numbers in a stored tensor.

use std::ops::Range;

use zt::container::memory::in_memory;
use zt::formats::Buffer;
use zt::{Dense, Elements, FloatType, OwnedTensor, Result, Slice};

use crate::fault::Fault;
use crate::find::byte_values;
use crate::values::packing::{Along, Decoder, Packing, decode_pairs, short_unit_of, unit_of};

/// Equal matrices of codes or numbers, one after the other in a stored tensor, in row-major order.
#[derive(Debug, Clone)]
pub struct Codes {
    tensor: OwnedTensor,
    /// `None`: the elements of the tensor are numbers, and stand for themselves.
    decoder: Option<Decoder>,
    count: u64,
    rows: u64,
    columns: u64,
    /// Whether the numbers lie in the tiles that cuBLAS takes for block scales.
    is_tiled: bool,
}

impl Codes {
    /// `count` matrices of `rows` and `columns` whose codes lie in `tensor` as `packing` says. `values` has the value of
    /// each code.
    ///
    /// # Errors
    ///
    /// Code `quantization` if the tensor has another length than these codes need, or fewer values than codes.
    pub fn packed(
        tensor: OwnedTensor,
        packing: Packing,
        values: Vec<f32>,
        [count, rows, columns]: [u64; 3],
    ) -> Result<Self> {
        let (found, bits) = (values.len(), packing.bits_of_code());
        let decoder = Decoder::new(packing, values).ok_or(Fault::Values { found, bits })?;
        let decoder = Some(decoder);
        Codes { tensor, decoder, count, rows, columns, is_tiled: false }.checked()
    }

    /// As [`Codes::packed`], for a tensor of real numbers.
    ///
    /// # Errors
    ///
    /// As [`Codes::packed`].
    pub fn numbers(tensor: OwnedTensor, [count, rows, columns]: [u64; 3]) -> Result<Self> {
        Codes { tensor, decoder: None, count, rows, columns, is_tiled: false }.checked()
    }

    /// The same numbers in tiles of 128 rows and 4 columns, each stored as 32 rows of 16: the order in which cuBLAS
    /// takes the scales of blocks. The tensor has whole tiles.
    ///
    /// # Errors
    ///
    /// As [`Codes::packed`].
    pub fn tiled(tensor: OwnedTensor, [count, rows, columns]: [u64; 3]) -> Result<Self> {
        Codes { tensor, decoder: None, count, rows, columns, is_tiled: true }.checked()
    }

    /// As [`Codes::tiled`], for codes of a byte.
    ///
    /// # Errors
    ///
    /// As [`Codes::packed`].
    pub(crate) fn tiled_bytes(
        tensor: OwnedTensor,
        values: Vec<f32>,
        grid: [u64; 3],
    ) -> Result<Self> {
        let found = values.len();
        let decoder = Decoder::new(Packing::bytes(), values);
        let decoder = decoder.ok_or(Fault::Values { found, bits: 8 })?;
        Codes { decoder: Some(decoder), ..Codes::tiled(tensor, grid)? }.checked()
    }

    fn checked(self) -> Result<Self> {
        let expected = || {
            let [rows, byte_len] = self.stored()?;
            self.count.checked_mul(rows)?.checked_mul(byte_len)
        };
        let found = byte_len(&self.tensor)?;
        // Flattened matrices of codes may end within their last row.
        let is_flat = self.decoder.is_some()
            && self.count == 1
            && self.is_by_rows()
            && self.row_len().is_some();
        let fits = match expected() {
            Some(expected) if is_flat => {
                let row = self.row_len().unwrap_or(1);
                found <= expected && expected.strict_sub(found) < row.max(1)
            }
            Some(expected) => found == expected,
            None => false,
        };
        if !fits {
            let shape = self.tensor.tensor().shape().to_vec();
            let name = self.tensor.tensor().name().to_owned();
            let (rows, columns, count) = (self.rows, self.columns, self.count);
            return Err(Fault::Shape { name, shape, count, rows, columns }.into());
        }
        Ok(self)
    }

    fn is_by_rows(&self) -> bool {
        self.decoder.as_ref().is_none_or(|it| it.packing.along() == Along::Row)
    }

    fn row_len(&self) -> Option<u64> {
        Some(self.stored()?[1])
    }

    /// Stored rows of one matrix, and the bytes of each.
    fn stored(&self) -> Option<[u64; 2]> {
        match &self.decoder {
            Some(Decoder { packing, .. }) if !self.is_tiled => {
                packing.stored(self.rows, self.columns)
            }
            _ => {
                let width = element_len(&self.tensor);
                let [rows, columns] = if self.is_tiled {
                    [
                        self.rows.checked_next_multiple_of(128)?,
                        self.columns.checked_next_multiple_of(4)?,
                    ]
                } else {
                    [self.rows, self.columns]
                };
                Some([rows, columns.checked_mul(width)?])
            }
        }
    }

    /// The tensor that has them.
    pub const fn tensor(&self) -> &OwnedTensor {
        &self.tensor
    }

    /// How codes are decoded; `None` for numbers.
    pub(crate) const fn decoder(&self) -> Option<&Decoder> {
        self.decoder.as_ref()
    }

    pub(crate) const fn is_tiled(&self) -> bool {
        self.is_tiled
    }

    /// Rows and columns of each matrix.
    pub(crate) const fn shape(&self) -> [u64; 2] {
        [self.rows, self.columns]
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Reads what a part of one matrix needs.
    pub(crate) fn load(&self, matrix: u64, rows: Range<u64>, columns: Range<u64>) -> Result<Tile> {
        let [stored_rows, row_len] = self.stored().ok_or(Fault::TooLong)?;
        let units = |range: &Range<u64>, codes: u64, len: u64| {
            let first = range.start.strict_div(codes);
            [
                first.strict_mul(codes),
                first.strict_mul(len),
                range.end.div_ceil(codes).strict_mul(len),
            ]
        };
        // The first row and column that are loaded, and the stored rows and bytes of a row.
        let (row, column, lines, bytes) = match &self.decoder {
            _ if self.is_tiled => (0, 0, 0..stored_rows, 0..row_len),
            None => {
                let width = element_len(&self.tensor);
                let bytes = columns.start.strict_mul(width)..columns.end.strict_mul(width);
                (rows.start, columns.start, rows, bytes)
            }
            Some(Decoder { packing, .. }) => match packing.along() {
                Along::Row => {
                    let [first, start, end] = units(&columns, packing.codes(), packing.byte_len());
                    (rows.start, first, rows, start..end.min(row_len))
                }
                Along::Column { word } => {
                    let words = packing.byte_len().strict_div(word as u64);
                    let [first, start, end] = units(&rows, packing.codes(), words);
                    let word = word as u64;
                    let bytes = columns.start.strict_mul(word)..columns.end.strict_mul(word);
                    (first, columns.start, start..end.min(stored_rows), bytes)
                }
                // All parts of the rows lie in the same bytes.
                Along::Parts => (0, 0, 0..stored_rows, 0..row_len),
            },
        };
        let read = Lines { first: matrix.strict_mul(stored_rows), lines, bytes, row_len };
        let (bytes, stride, before) = read.read(&self.tensor, self.count, stored_rows)?;
        let numbers = match &self.decoder {
            Some(decoder) if self.is_tiled => {
                Some(bytes.iter().map(|code| decoder.value((*code).into(), 0)).collect())
            }
            Some(_) => None,
            None => Some(numbers(&self.tensor, &bytes)?),
        };
        let stride = match numbers {
            Some(_) => stride.strict_div(in_memory(element_len(&self.tensor))),
            None => stride,
        };
        let before = match numbers {
            Some(_) => before.strict_div(in_memory(element_len(&self.tensor))),
            None => before,
        };
        Ok(Tile { row, column, bytes, numbers, stride, before, stored_rows })
    }
}

/// A part of a matrix, in memory.
pub(crate) struct Tile {
    row: u64,
    column: u64,
    bytes: Buffer,
    numbers: Option<Vec<f32>>,
    /// Bytes, or numbers, of a stored row, and those before the first column.
    stride: usize,
    before: usize,
    stored_rows: u64,
}

impl Tile {
    /// The value at a row and a column of the matrix, which were loaded.
    #[inline]
    pub(crate) fn at(&self, codes: &Codes, row: u64, column: u64) -> f32 {
        let (r, c) =
            (in_memory(row.strict_sub(self.row)), in_memory(column.strict_sub(self.column)));
        if let Some(numbers) = &self.numbers {
            let at = if codes.is_tiled {
                tiled(r, c, self.stride)
            } else {
                r.strict_mul(self.stride).strict_add(self.before).strict_add(c)
            };
            return numbers.get(at).copied().unwrap_or(f32::NAN);
        }
        let Some(decoder) = &codes.decoder else {
            return f32::NAN;
        };
        let packing = &decoder.packing;
        let (each, len) = (in_memory(packing.codes()), in_memory(packing.byte_len()));
        let (unit, at) = match packing.along() {
            Along::Row => {
                let start = r.strict_mul(self.stride).strict_add(self.before);
                let start = start.strict_add(c.strict_div(each).strict_mul(len));
                let unit = self.bytes.get(start..).unwrap_or_default();
                (unit_of(unit.get(..len).unwrap_or(unit)), c.strict_rem(each))
            }
            Along::Column { word } => {
                let unit = self.unit_down(r.strict_div(each), c, word, len.strict_div(word));
                (unit, r.strict_rem(each))
            }
            Along::Parts => {
                let part = in_memory(self.stored_rows);
                let line = r.strict_rem(part).strict_mul(self.stride);
                let start = line.strict_add(c.strict_mul(len));
                let unit = self.bytes.get(start..start.strict_add(len)).unwrap_or_default();
                (unit_of(unit), r.strict_div(part))
            }
        };
        decoder.value(unit, at)
    }

    /// The unit whose words lie one below the other.
    #[inline]
    fn unit_down(&self, unit: usize, column: usize, word: usize, words: usize) -> u128 {
        let mut value = 0;
        let column = column.strict_mul(word).strict_add(self.before);
        for at in (0..words).rev() {
            let line = unit.strict_mul(words).strict_add(at);
            let start = line.strict_mul(self.stride).strict_add(column);
            let bytes = self.bytes.get(start..start.strict_add(word)).unwrap_or_default();
            value = (value << word.strict_mul(8)) | unit_of(bytes);
        }
        value
    }

    /// Fills `out` with the values of a row, from `column` on, and of the rows after it where rows follow each other
    /// without a gap.
    pub(crate) fn fill_row(&self, codes: &Codes, row: u64, column: u64, out: &mut [f32]) {
        let is_by_rows = codes.is_by_rows() && !codes.is_tiled;
        if let (Some(decoder), true) = (&codes.decoder, is_by_rows)
            && column.is_multiple_of(decoder.packing.codes())
        {
            let packing = &decoder.packing;
            let (each, len) = (packing.codes(), in_memory(packing.byte_len()));
            let start = in_memory(row.strict_sub(self.row)).strict_mul(self.stride);
            let first = in_memory(column.strict_sub(self.column).strict_div(each)).strict_mul(len);
            let start = start.strict_add(self.before).strict_add(first);
            return decoder.decode(self.bytes.get(start..).unwrap_or_default(), out);
        }
        if let (Some(numbers), false) = (&self.numbers, codes.is_tiled) {
            let start = in_memory(row.strict_sub(self.row)).strict_mul(self.stride);
            let start = start.strict_add(self.before);
            let start = start.strict_add(in_memory(column.strict_sub(self.column)));
            let numbers = numbers.get(start..).unwrap_or_default();
            out.iter_mut().zip(numbers).for_each(|(place, number)| *place = *number);
            return;
        }
        for (column, place) in (column..).zip(out) {
            *place = self.at(codes, row, column);
        }
    }

    /// The numbers, if they are rows of so many without a gap; or else this tile.
    pub(crate) fn into_numbers(self, codes: &Codes, row_len: usize) -> Result<Vec<f32>, Self> {
        match self.numbers {
            Some(numbers) if self.before == 0 && self.stride == row_len && !codes.is_tiled => {
                Ok(numbers)
            }
            numbers => Err(Tile { numbers, ..self }),
        }
    }

    /// Whether whole rows of codes follow each other without a gap.
    pub(crate) fn is_contiguous(&self, codes: &Codes) -> bool {
        let Some(Decoder { packing, .. }) = &codes.decoder else {
            return false;
        };
        let is_by_rows = codes.is_by_rows() && !codes.is_tiled;
        let is_whole =
            self.before == 0 && self.column == 0 && codes.columns.is_multiple_of(packing.codes());
        is_by_rows && is_whole && codes.row_len() == Some(self.stride as u64)
    }

    /// Moves the stored rows apart, for [`Tile::fill_columns`]. The rows of a column would have few places in the
    /// processor's cache, if their addresses are apart by a power of two.
    pub(crate) fn spread(&mut self) -> Result<()> {
        const LINE: usize = 64;
        if self.numbers.is_some() || self.stride == 0 || !self.stride.is_multiple_of(8 * LINE) {
            return Ok(());
        }
        let apart = self.stride.strict_add(LINE);
        let rows = self.bytes.len().div_ceil(self.stride);
        let mut spread = Buffer::try_zeroed(rows.strict_mul(apart) as u64)?;
        for (place, row) in spread.chunks_mut(apart).zip(self.bytes.chunks(self.stride)) {
            place.iter_mut().zip(row).for_each(|(place, byte)| *place = *byte);
        }
        (self.bytes, self.stride) = (spread, apart);
        Ok(())
    }

    /// Fills lines of `len` values with the columns from `column` on, each from `row` on.
    pub(crate) fn fill_columns(
        &self,
        codes: &Codes,
        column: u64,
        row: u64,
        len: usize,
        out: &mut [f32],
    ) {
        let lines = (column..).zip(out.chunks_mut(len.max(1)));
        match codes.decoder.as_ref().map(|decoder| (decoder, decoder.packing.along())) {
            Some((decoder, Along::Column { word }))
                if row.is_multiple_of(decoder.packing.codes()) =>
            {
                for (column, line) in lines {
                    self.fill_column(decoder, word, column, row, line);
                }
            }
            Some((decoder, Along::Row)) if !codes.is_tiled && decoder.packing.byte_len() <= 4 => {
                self.turn(decoder, column, row, len, out);
            }
            _ => {
                for (column, line) in lines {
                    for (row, place) in (row..).zip(line) {
                        *place = self.at(codes, row, column);
                    }
                }
            }
        }
    }

    /// Fills `line` with a column whose units lie along it, from `row` on.
    fn fill_column(&self, decoder: &Decoder, word: usize, column: u64, row: u64, line: &mut [f32]) {
        let packing = &decoder.packing;
        let (each, words) =
            (in_memory(packing.codes()), in_memory(packing.byte_len()).strict_div(word));
        let first = in_memory(row.strict_sub(self.row)).strict_div(each);
        let column = in_memory(column.strict_sub(self.column));
        let (4, 1, Some(pairs)) = (word, words, decoder.pairs()) else {
            for (unit, places) in (first..).zip(line.chunks_mut(each)) {
                decoder.decode_unit(self.unit_down(unit, column, word, words), places);
            }
            return;
        };
        let start = first.strict_mul(self.stride).strict_add(self.before);
        let bytes = self.bytes.get(start.strict_add(column.strict_mul(4))..).unwrap_or_default();
        for (row, places) in bytes.chunks(self.stride.max(1)).zip(line.chunks_mut(each)) {
            decode_pairs(pairs, row.get(..4).unwrap_or_default(), places);
        }
    }

    /// As [`Tile::fill_columns`], for units of at most 4 bytes that have codes of several columns. Words of as many whole
    /// units as fit, of some rows, are kept for all their columns.
    fn turn(&self, decoder: &Decoder, column: u64, row: u64, len: usize, out: &mut [f32]) {
        const ROWS: usize = 64;
        let shifts = decoder.packing.shifts();
        let (each, byte_len) = (shifts.len(), in_memory(decoder.packing.byte_len()));
        let units = 4usize.strict_div(byte_len);
        let (each_word, word_len) = (each.strict_mul(units), byte_len.strict_mul(units));
        let first = in_memory(row.strict_sub(self.row)).strict_mul(self.stride);
        let column = in_memory(column.strict_sub(self.column));
        let mut words = [0u32; ROWS];
        let mut done = 0;
        while done < len {
            let end = done.strict_add(ROWS).min(len);
            let start = first.strict_add(done.strict_mul(self.stride)).strict_add(self.before);
            let mut known = None;
            for (column, line) in (column..).zip(out.chunks_mut(len)) {
                let (word, at) = (column.strict_div(each_word), column.strict_rem(each_word));
                if known.replace(word) != Some(word) {
                    let bytes = self.bytes.get(start.strict_add(word.strict_mul(word_len))..);
                    let rows = bytes.unwrap_or_default().chunks(self.stride.max(1));
                    for (word, row) in words.iter_mut().zip(rows) {
                        *word = short_unit_of(row.get(..word_len).unwrap_or(row));
                    }
                }
                let (unit, at) = (at.strict_div(each), at.strict_rem(each));
                let before = unit.strict_mul(byte_len).strict_mul(8);
                let shift = before.strict_add(shifts.get(at).map_or(0, |shift| *shift as usize));
                decoder.decode_at(&words, shift, line.get_mut(done..end).unwrap_or_default());
            }
            done = end;
        }
    }
}

/// The place of a number in tiles of 128 rows and 4 columns, of a matrix whose rows have `columns`.
fn tiled(row: usize, column: usize, columns: usize) -> usize {
    let tiles = columns.strict_div(4);
    let tile = row.strict_div(128).strict_mul(tiles).strict_add(column.strict_div(4));
    let (row, column) = (row.strict_rem(128), column.strict_rem(4));
    let line = row.strict_rem(32).strict_mul(16);
    let within = line.strict_add(row.strict_div(32).strict_mul(4)).strict_add(column);
    tile.strict_mul(512).strict_add(within)
}

/// Stored rows that are read, and the bytes of each of them.
struct Lines {
    /// The first stored row of the matrix.
    first: u64,
    lines: Range<u64>,
    bytes: Range<u64>,
    row_len: u64,
}

impl Lines {
    /// The bytes, their number in each row, and those in front of the ones that were asked for.
    fn read(&self, tensor: &OwnedTensor, count: u64, rows: u64) -> Result<(Buffer, usize, usize)> {
        let width = element_len(tensor);
        let of = tensor.tensor();
        verify(tensor)?;
        let is_whole_row = self.bytes == (0..self.row_len);
        let lines = self.first.strict_add(self.lines.start)..self.first.strict_add(self.lines.end);
        if !is_whole_row && self.lines.end.strict_sub(self.lines.start) > 1 {
            // A part of several rows: by the dimensions of the tensor, if they are those of the rows.
            let inner =
                |dimensions: &[u64]| dimensions.iter().try_fold(width, |a, b| a.checked_mul(*b));
            let shape = of.shape();
            let found = (1..shape.len()).find(|at| {
                let (outer, row) = shape.split_at(*at);
                let is_row = inner(row) == Some(self.row_len);
                is_row && (outer == [count, rows] || outer == [count.strict_mul(rows)])
            });
            if let Some((outer, [_, rest @ ..])) = found.map(|at| shape.split_at(at)) {
                let step = inner(rest).filter(|step| *step > 0).ok_or(Fault::TooLong)?;
                let part = self.bytes.start.strict_div(step)..self.bytes.end.div_ceil(step);
                let mut slices = match outer {
                    [_] => vec![Slice::from(lines)],
                    _ => vec![
                        Slice::from(
                            self.first.strict_div(rows.max(1))
                                ..self.first.strict_div(rows.max(1)).strict_add(1),
                        ),
                        Slice::from(self.lines.clone()),
                    ],
                };
                slices.push(Slice::from(part.clone()));
                let stride = part.end.strict_sub(part.start).strict_mul(step);
                let before = self.bytes.start.strict_sub(part.start.strict_mul(step));
                let (_, elements) = of.slice(&slices)?.into_elements();
                return Ok((elements.bytes.into_owned()?, in_memory(stride), in_memory(before)));
            }
        }
        let (first, last) = (lines.start, lines.end.saturating_sub(1));
        let start = first.strict_mul(self.row_len);
        let (start, end, stride, before) = if lines.end.strict_sub(lines.start) == 1 {
            let end = start.strict_add(self.bytes.end);
            let start = start.strict_add(self.bytes.start);
            (start, end, self.bytes.end.strict_sub(self.bytes.start), 0)
        } else {
            let end = last.strict_add(1).strict_mul(self.row_len);
            (start, end, self.row_len, self.bytes.start)
        };
        let end = end.min(byte_len(tensor)?);
        let elements = start.strict_div(width)..end.div_ceil(width);
        let before = before.strict_add(start.strict_sub(elements.start.strict_mul(width)));
        let role = data(tensor)?;
        let part: Dense<'_> = of.slice_component(role, &[Slice::from(elements)])?;
        let (_, elements) = part.into_elements();
        Ok((elements.bytes.into_owned()?, in_memory(stride), in_memory(before)))
    }
}

/// Compares the digest of a tensor of which only parts are read, the first time, unless its chunks have their own. Of a
/// long one that comes over a network the parts are worth more than the digest, as in [`zt::Tensor::slice`].
fn verify(tensor: &OwnedTensor) -> Result<()> {
    const LONG: u64 = 1 << 20;
    let (role, of) = (data(tensor)?, tensor.tensor());
    let blob = &of.component(role)?.blob;
    let is_far = of.is_remote() && blob.span.byte_len() > LONG;
    if blob.chunks.is_some() || is_far || of.is_verified(role)? {
        return Ok(());
    }
    of.verify(role)
}

/// The role of the only component of a plain array.
fn data(tensor: &OwnedTensor) -> Result<&'static str> {
    match tensor.tensor().format() {
        "dense" => Ok("data"),
        format => Err(Fault::Format {
            name: tensor.tensor().name().to_owned(),
            format: format.to_owned(),
        }
        .into()),
    }
}

/// Bytes of the values of a plain array.
fn byte_len(tensor: &OwnedTensor) -> Result<u64> {
    tensor.tensor().decoded_len(data(tensor)?)
}

/// Bytes of an element of a plain array.
fn element_len(tensor: &OwnedTensor) -> u64 {
    tensor.tensor().dtype().map_or(1, |dtype| dtype.byte_len()) as u64
}

/// Elements as numbers: floats of any type, and integers.
pub(crate) fn numbers(tensor: &OwnedTensor, bytes: &[u8]) -> Result<Vec<f32>> {
    let of = tensor.tensor();
    let mut elements =
        Elements::new(of.component(data(tensor)?)?.dtype.unwrap_or(zt::DType::U8), bytes);
    elements.logical_type = of.component(data(tensor)?)?.logical_type.clone();
    if let Some(fp8) = elements.logical_type().filter(|it| it.starts_with("f8_")) {
        let values = byte_values(fp8)?;
        let value = |byte: &u8| values.get(usize::from(*byte)).copied().unwrap_or(f32::NAN);
        return Ok(bytes.iter().map(value).collect());
    }
    let registry = tensor.file().registry();
    let wide = match FloatType::from_name(elements.logical_type().unwrap_or_default()) {
        Some(_) => elements.cast(FloatType::F32, registry)?,
        None => elements.to_f32(registry)?,
    };
    Ok(wide.as_slice::<f32>()?.into_vec())
}

/// All numbers of a small tensor.
pub(crate) fn all_numbers(tensor: &OwnedTensor) -> Result<Vec<f32>> {
    let (role, of) = (data(tensor)?, tensor.tensor());
    let elements = of.elements(role)?;
    numbers(tensor, &elements.bytes)
}
