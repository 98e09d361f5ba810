//! The objects of two files by their names.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasher, RandomState};

use super::{Change, DiffOptions, Side, object, unreadable};
use crate::cores::parallel;
use crate::cores::progress::Gauge;
use crate::error::Result;
use crate::file::batches::{Batch, Batches};
use crate::file::overlap::Allowance;
use crate::file::tensor::Tensor;
use crate::file::{Entry, File};
use crate::read::ahead::ReadAhead;
use crate::read::contents::{Key, key};

/// Gives `take` the name of each object that both files have, in the order of the first one's data, and what
/// `one` finds of the pair, or its faults. Returns the names that only one file has.
///
/// Pairs of the same bytes are compared once, however many objects a manifest gives them to. Ranges may
/// overlap up to the limits of both files. Of `.zt` files, some thousand objects are in memory at a time.
#[expect(clippy::indexing_slicing, reason = "places in these lists")]
pub(super) fn each<T: Clone + Send>(
    a: &File,
    b: &File,
    options: &DiffOptions<'_>,
    gauge: &Gauge<'_>,
    one: impl Fn(&Tensor<'_>, &Tensor<'_>) -> Result<T> + Sync,
    mut take: impl FnMut(&str, Result<T, Vec<Change>>),
) -> Result<[Vec<String>; 2]> {
    let is_nameless = options.nameless && a.len() == 1 && b.len() == 1;
    let mut distinct = Distinct::new(allowance(a, b));
    let mut compared: Vec<T> = Vec::new();
    let mut only_a = Vec::new();
    let mut is_in_a = vec![false; b.len()];
    for batch in Batches::of(a) {
        let (mut both, mut places) = (Vec::new(), Vec::new());
        for entry in Batches::entries(a, &batch) {
            let found = b.inner.catalog.find(entry.name());
            let Some(place) = found.or(is_nameless.then_some(0)) else {
                only_a.push(entry.name().to_owned());
                continue;
            };
            is_in_a[place] = true;
            both.push(entry);
            places.push(u32::try_from(place).unwrap_or(u32::MAX));
        }
        let mut others = Batch::new();
        b.decode(&places, &mut others);
        let others = Batches::entries(b, &others);

        let (mut new, mut found) = (Vec::new(), Vec::with_capacity(both.len()));
        for pair in both.iter().zip(&others) {
            found.push(distinct.place_of(pair)?.map(|(place, is_new)| {
                new.extend(is_new.then_some(pair));
                place
            }));
        }
        compared.extend(compare(&new, options, gauge, &one)?);
        for (entry, found) in both.iter().zip(found) {
            take(entry.name(), found.map(|place| compared[place].clone()));
        }
    }
    let only_b = b.data_order().iter().map(|place| *place as usize);
    let only_b = only_b.filter(|place| !is_in_a[*place]);
    let only_b = only_b.map(|place| b.inner.catalog.name(place).to_owned());
    Ok([only_a, only_b.collect()])
}

/// The bytes that may be read of both files where ranges overlap.
fn allowance(a: &File, b: &File) -> Allowance {
    let sources = a.inner.sources.iter().chain(&b.inner.sources);
    let present = sources.fold(0u64, |all, source| all.saturating_add(source.byte_len()));
    let limits = &a.inner.limits;
    let limits = limits.with_overlap(limits.overlap.min(b.inner.limits.overlap));
    Allowance::of(present, &limits)
}

/// Pairs that were seen, by their values.
struct Distinct {
    /// Two keyed hashes stand for the identities of a pair, because the identities of a million pairs take 700 MiB.
    places: HashMap<[u64; 2], usize>,
    hashers: [RandomState; 2],
    allowance: Allowance,
}

type Pair<'e, 'f> = (&'e Entry<'f>, &'e Entry<'f>);

impl Distinct {
    fn new(allowance: Allowance) -> Self {
        Distinct {
            places: HashMap::new(),
            hashers: [RandomState::new(), RandomState::new()],
            allowance,
        }
    }

    /// The place of the pair among the distinct ones, and whether it is the first of them. Or why its objects
    /// cannot be read.
    fn place_of(&mut self, (a, b): Pair<'_, '_>) -> Result<Result<(usize, bool), Vec<Change>>> {
        let (of_a, of_b) = match (sound(a), sound(b)) {
            (Ok(of_a), Ok(of_b)) => (of_a, of_b),
            (of_a, of_b) => {
                let faults = [(Side::A, of_a.err()), (Side::B, of_b.err())].into_iter();
                let faults = faults.filter_map(|(side, error)| Some(unreadable(side, error?)));
                return Ok(Err(faults.collect()));
            }
        };
        let identities = (identity(&of_a)?, identity(&of_b)?);
        let hashes = self.hashers.each_ref();
        let hashes = hashes.map(|hasher| hasher.hash_one(&identities));
        let place = self.places.len();
        Ok(match self.places.entry(hashes) {
            Slot::Occupied(place) => Ok((*place.get(), false)),
            Slot::Vacant(vacant) => match spend(&mut self.allowance, &of_a, &of_b) {
                Ok(()) => Ok((*vacant.insert(place), true)),
                Err(error) => Err(vec![unreadable(Side::A, error.with_object(a.name()))]),
            },
        })
    }
}

fn sound<'f>(entry: &Entry<'f>) -> Result<Tensor<'f>> {
    match entry.fault() {
        Some(fault) => Err(fault.clone()),
        None => entry.tensor(),
    }
}

/// The values of an object, and the lengths and digests that reading them checks.
type Identity<'f> = (Key<'f>, Vec<(Option<u64>, Option<String>)>);

fn identity<'f>(tensor: &Tensor<'f>) -> Result<Identity<'f>> {
    let blobs = tensor.components().map(|(_, component)| &component.blob);
    let claims = blobs.map(|blob| {
        let digest = blob.digest.as_ref().map(ToString::to_string);
        (blob.decoded_len, digest)
    });
    Ok((key(tensor)?, claims.collect()))
}

/// Takes the cost of reading both. The sources of each file are numbered from 0.
fn spend(allowance: &mut Allowance, a: &Tensor<'_>, b: &Tensor<'_>) -> Result<()> {
    for (tensor, side) in [(a, 0), (b, 1)] {
        for part in tensor.located() {
            let source = tensor.source_index(part).saturating_mul(2) | side;
            allowance.spend_on(source, &part.component.blob)?;
        }
    }
    Ok(())
}

/// What `one` finds of every pair of sound objects. Small objects are compared in parallel, and each
/// large one on all cores, so that only one of them takes memory.
fn compare<T: Send>(
    pairs: &[Pair<'_, '_>],
    options: &DiffOptions<'_>,
    gauge: &Gauge<'_>,
    one: impl Fn(&Tensor<'_>, &Tensor<'_>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let one = |(a, b): &Pair<'_, '_>| -> Result<T> {
        gauge.report(0)?;
        one(&a.tensor()?, &b.tensor()?)
    };
    let mut compared = Vec::with_capacity(pairs.len());
    let both = pairs.iter().flat_map(|(a, b)| [a, b]);
    let mut ahead = ReadAhead::new(both.filter_map(|entry| entry.tensor().ok()));
    let mut rest = pairs;
    while let Some((first, behind)) = rest.split_first() {
        if is_large(first, options) {
            ahead.advance();
            ahead.advance();
            compared.push(one(first)?);
            rest = behind;
            continue;
        }
        let is_small = |pair: &&_| !is_large(pair, options);
        let count = rest.iter().take_while(is_small).count();
        let (small, behind) = rest.split_at(count);
        (0..count.strict_mul(2)).for_each(|_| ahead.advance());
        compared.extend(parallel::map(small, one)?);
        rest = behind;
    }
    Ok(compared)
}

fn is_large((a, b): &Pair<'_, '_>, options: &DiffOptions<'_>) -> bool {
    /// The number of bytes in both files.
    ///
    /// Pays: no time: `zt diff` of 75 MB takes as long with 0 and without end. It bounds the memory.
    const LARGE: u64 = 4 << 20;
    let byte_len = |entry: &Entry<'_>| {
        let tensor = entry.tensor().ok();
        tensor.map_or(0, |tensor| object::byte_len(&tensor, options))
    };
    byte_len(a).saturating_add(byte_len(b)) >= LARGE
}
