//! Many components in one call: read in the order of the file, on all cores.

use std::io;
use std::ops::ControlFlow;
use std::ptr;

use zt_container::{Source, Span};
use zt_formats::{Buffer, Dense, Elements};

use crate::cores::announce::announce_all;
use crate::cores::forward::forward;
use crate::cores::progress::{Gauge, Progress};
use crate::cores::region::{Region, bundles};
use crate::cores::scratch::Pool;
use crate::error::Result;
use crate::file::File;
use crate::file::tensor::{Located, Tensor, believed_len, elements_in};
use crate::read::tiles::{self, Tiled};

impl File {
    /// The elements of many components, in the order of `wanted`, each as [`Tensor::elements`] gives
    /// them: borrowed if the source lends them, else in memory.
    ///
    /// That memory is one piece for all of them, in large pages where the system has them. It stays until
    /// the last of them is dropped. A buffer that is written to becomes a copy of its own first.
    ///
    /// Components are read in the order of their offsets and on all cores. A large component is read in
    /// pieces. Small ones that lie close together are read at once. A component that cannot be read is
    /// an error in its place, and the others are read. The tensors may belong to several files.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("a", &Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    /// # writer.add("b", &Dense::from_slice(&[1], &[3.0f32])?)?;
    /// # writer.finish()?;
    /// # let file = File::from_bytes(bytes)?;
    /// let wanted = [(file.tensor("b")?, "data"), (file.tensor("a")?, "data")];
    /// for elements in file.read_many(&wanted) {
    ///     println!("{:?}", elements?.as_slice::<f32>()?);
    /// }
    /// # Ok::<(), zt::Error>(())
    /// ```
    #[must_use]
    pub fn read_many<'f>(&'f self, wanted: &[(Tensor<'f>, &str)]) -> Vec<Result<Elements<'f>>> {
        let lens: Vec<Option<usize>> = wanted.iter().map(len_in_arena).collect();
        let mut arena = arena(&lens);
        let mut rest = arena.as_deref_mut().unwrap_or_default();
        let place = |len: &Option<usize>| place(&mut rest, *len);
        let wanted = wanted.iter().zip(lens.iter().map(place));
        let wanted = wanted.map(|((tensor, role), place)| (tensor, *role, place));
        let read = in_order_of_offsets(wanted, |tensor, part, region, place| match place {
            Some(place) => {
                let source = region.unwrap_or_else(|| tensor.source(part));
                tensor.read_from(part, source, place)?;
                Ok(Found::InPlace(part))
            }
            // Lent, or of a length that is not believed before it is decoded.
            None => Ok(Found::Alone(Box::new(tensor.elements_of(part)?))),
        });
        let parts = arena.unwrap_or_default().into_parts(byte_lens(&lens));
        let read = read.into_iter().flatten().zip(parts);
        let elements = read.map(|(found, memory)| match found? {
            Found::InPlace(part) => Ok(elements_in(part, memory)),
            Found::Alone(elements) => Ok(*elements),
        });
        elements.collect()
    }

    /// As [`File::read_many`], into the caller's memory: each component into a slice of exactly its
    /// decoded length, as [`Tensor::read_into`] does it.
    ///
    /// After an error the contents of its slice are unspecified.
    #[must_use]
    pub fn read_many_into<'f>(
        &'f self,
        wanted: Vec<(Tensor<'f>, &str, &mut [u8])>,
    ) -> Vec<Result<()>> {
        self.read_many_into_with(wanted, Progress::new(&|_| ControlFlow::Continue(())))
    }

    /// As [`File::read_many_into`], with a progress function, which gets the stored bytes before they
    /// are read, 1 MiB at a time where components are large. Once it asks to stop, every component that
    /// is not read yet is an error.
    #[must_use]
    pub fn read_many_into_with<'f>(
        &'f self,
        mut wanted: Vec<(Tensor<'f>, &str, &mut [u8])>,
        progress: Progress<'_>,
    ) -> Vec<Result<()>> {
        let gauge = &Gauge::new(Some(progress));
        let wanted = wanted.iter_mut();
        let wanted = wanted.map(|(tensor, role, out)| (&*tensor, *role, &mut **out));
        let read = in_order_of_offsets(wanted, |tensor, part, region, out| {
            let source = region.unwrap_or_else(|| tensor.source(part));
            tensor.read_from(part, &Gauged { source, gauge }, out)
        });
        read.into_iter().flatten().collect()
    }
}

/// A source that reports its reads, and refuses them after a stop.
struct Gauged<'s> {
    source: &'s dyn Source,
    gauge: &'s Gauge<'s>,
}

impl Source for Gauged<'_> {
    forward!(source: byte_len() -> u64, is_sequential() -> bool);
    forward!(source: slice(span: Span) -> Option<&[u8]>, will_read(span: Span));

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.gauge.report(buf.len() as u64)?;
        self.source.read_at(offset, buf)
    }
}

impl File {
    /// The dense values of many objects, in the order of `wanted`, each as [`Tensor::to_dense`] gives it.
    /// Several small objects are decoded at a time, on all cores. An object that cannot be read is an
    /// error in its place.
    ///
    /// The values of byte planes lie in one piece of memory, as [`File::read_many`] says.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("a", &Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    /// # writer.finish()?;
    /// # let file = File::from_bytes(bytes)?;
    /// let tensors: Vec<_> = file.names().map(|name| file.tensor(name)).collect::<Result<_, _>>()?;
    /// for dense in file.to_dense_many(&tensors) {
    ///     println!("{:?}", dense?.shape());
    /// }
    /// # Ok::<(), zt::Error>(())
    /// ```
    #[must_use]
    pub fn to_dense_many<'f>(&'f self, wanted: &[Tensor<'f>]) -> Vec<Result<Dense<'static>>> {
        let value_len = |tensor: &Tensor<'_>| {
            let format = tensor.registry().format(tensor.format())?;
            usize::try_from(tiles::believed_value_len(tensor, format)?).ok()
        };
        let lens: Vec<Option<usize>> = wanted.iter().map(value_len).collect();
        let mut arena = arena(&lens);
        let mut rest = arena.as_deref_mut().unwrap_or_default();
        let places = lens.iter().map(|len| place(&mut rest, *len));
        let made = crate::cores::parallel::map_owned(
            wanted.iter().zip(places).collect(),
            // No work fails: the errors are in the results.
            |(tensor, place)| Ok(make(tensor, place)),
        );
        let parts = arena.unwrap_or_default().into_parts(byte_lens(&lens));
        let made = made.unwrap_or_default().into_iter().zip(parts);
        let dense = made.map(|(made, memory)| match made? {
            Made::Alone(dense) => Ok(dense),
            Made::InPlace(tiled) => tiled.dense(memory),
        });
        dense.collect()
    }
}

/// A value in memory of its own, or in the memory that was given for it.
enum Made<'f> {
    Alone(Dense<'static>),
    InPlace(Tiled<'f>),
}

fn make<'f>(tensor: &Tensor<'f>, place: Option<&mut [u8]>) -> Result<Made<'f>> {
    if let Some(place) = place
        && let Some(tiled) = tensor.tiled()?
        && tiled.byte_len() == place.len() as u64
    {
        tiled.fill(place)?;
        return Ok(Made::InPlace(tiled));
    }
    tensor.to_dense().map(Made::Alone)
}

/// The bytes that a component takes in memory that it shares with others; `None` if it is lent, is not
/// there, or its length is not believed before it is decoded.
fn len_in_arena((tensor, role): &(Tensor<'_>, &str)) -> Option<usize> {
    let part = tensor.locate(role).ok()?;
    if tensor.lent(part).is_some() {
        return None;
    }
    usize::try_from(believed_len(&part.component.blob)?).ok()
}

/// Memory for all of them; `None` if there is not that much. Then some of them may still have memory
/// of their own.
fn arena(lens: &[Option<usize>]) -> Option<Buffer> {
    let mut lens = lens.iter().flatten();
    let end = lens
        .try_fold(0usize, |end, len| end.checked_add(len.checked_next_multiple_of(Buffer::APART)?));
    Buffer::try_zeroed(end? as u64).ok()
}

/// The next place of `len` bytes in that memory; `None` without a length, or without memory.
fn place<'m>(rest: &mut &'m mut [u8], len: Option<usize>) -> Option<&'m mut [u8]> {
    let padded = len?.checked_next_multiple_of(Buffer::APART)?;
    let padded = rest.split_off_mut(..padded)?;
    padded.get_mut(..len?)
}

/// The lengths of those places. What lies elsewhere takes none of that memory.
fn byte_lens(lens: &[Option<usize>]) -> impl Iterator<Item = usize> {
    lens.iter().map(|len| len.unwrap_or(0))
}

/// A component that was read into the common memory, or one of its own.
enum Found<'f> {
    InPlace(Located<'f>),
    Alone(Box<Elements<'f>>),
}

/// A component to read, and the place of the result.
struct Item<'f, 'r, T, R> {
    tensor: &'r Tensor<'f>,
    part: Located<'f>,
    /// Where its bytes are stored.
    stored: (&'f dyn Source, Span),
    target: T,
    result: &'r mut Option<Result<R>>,
}

/// `read` for every component, with the region of its source that is in memory already, if there is
/// one. The results in the order of `wanted`.
fn in_order_of_offsets<'f: 'r, 'r, T: Send, R: Send>(
    wanted: impl ExactSizeIterator<Item = (&'r Tensor<'f>, &'r str, T)>,
    read: impl Fn(&Tensor<'f>, Located<'f>, Option<&dyn Source>, &mut T) -> Result<R> + Sync + Send,
) -> Vec<Option<Result<R>>> {
    let mut results: Vec<Option<Result<R>>> = Vec::new();
    results.resize_with(wanted.len(), || None);
    let mut items = Vec::with_capacity(wanted.len());
    for ((tensor, role, target), result) in wanted.zip(&mut results) {
        match tensor.locate(role) {
            Ok(part) => items.push(Item {
                tensor,
                part,
                stored: (tensor.source(part), part.component.blob.span),
                target,
                result,
            }),
            Err(error) => *result = Some(Err(error)),
        }
    }
    items.sort_by_key(|item| {
        let (source, span) = item.stored;
        (ptr::from_ref(source).addr(), span.offset())
    });
    announce_all(&items, |item| item.stored);
    let bundles = bundles(&items, |item| item.stored).into_iter();
    let counts: Vec<usize> = bundles.map(<[_]>::len).collect();
    let mut rest = &mut items[..];
    let counts = counts.into_iter();
    let bundles = counts.filter_map(|count| rest.split_off_mut(..count));
    let pool = Pool::default();
    let read_bundle = |bundle: &mut [Item<'f, '_, T, R>]| {
        let memory = &mut pool.take();
        let region = match &*bundle {
            // What is lent is not copied, and one blob by itself is read where it belongs.
            [first, _, ..] if first.stored.0.slice(first.stored.1).is_none() => {
                let spans = bundle.iter().map(|item| item.stored.1);
                Region::around(first.stored.0, spans, &mut memory.stored)
            }
            _ => None,
        };
        let region = region.as_ref().map(|region| region as &dyn Source);
        for item in bundle {
            let target = &mut item.target;
            *item.result = Some(read(item.tensor, item.part, region, target));
        }
        pool.give(std::mem::take(memory));
        Ok(())
    };
    // No bundle fails: the errors are in the results.
    let _ = crate::cores::parallel::map_owned(bundles.collect(), read_bundle);
    results
}
