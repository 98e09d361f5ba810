//! The distance of the values of two arrays, as of two vectors.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts of values that exist, and lanes of arrays"
)]

use zt_formats::{Elements, Reals, Registry, Scalar, Vectors, on_vectors};

use super::Side;
use super::number::Values;
use super::stream::Joined;
use crate::error::Error;

/// Values that are compared at a time: as many as are decoded together.
const BLOCK: usize = 1024;

/// How far the values of an object are from its values in the first file, in f64.
///
/// A complex number is two numbers, its parts, except in [`Distance::max_abs`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Distance {
    /// The number of pairs.
    pub count: u64,
    /// The number of pairs of different numbers. A NaN equals a NaN, and -0 equals 0.
    pub different: u64,
    /// The number of different pairs with a NaN or an infinity. Such pairs count in `count` and `different`,
    /// and in no other figure.
    pub not_finite: u64,
    /// The largest `|b - a|`.
    pub max_abs: f64,
    sums: Products,
}

/// Sums over pairs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Products {
    /// Of `a * a`, `b * b` and `a * b`.
    aa: f64,
    bb: f64,
    ab: f64,
    /// Of `(b - a)^2`.
    apart: f64,
}

impl Distance {
    /// The norm of the difference over the norm of the first values, `|b - a| / |a|`: 0 without a difference,
    /// infinite if only the first values are all 0.
    pub fn relative(&self) -> f64 {
        let Products { aa, apart, .. } = self.sums;
        if apart == 0.0 {
            return 0.0;
        }
        apart.sqrt() / aa.sqrt()
    }

    /// The cosine of the angle between the first and the second values; `None` if the values of one side are all 0.
    pub fn cosine(&self) -> Option<f64> {
        let norms = self.sums.aa.sqrt() * self.sums.bb.sqrt();
        (norms > 0.0).then(|| (self.sums.ab / norms).clamp(-1.0, 1.0))
    }

    /// Adds the distance of more values.
    pub fn append(&mut self, more: &Distance) {
        self.count = self.count.strict_add(more.count);
        self.different = self.different.strict_add(more.different);
        self.not_finite = self.not_finite.strict_add(more.not_finite);
        self.max_abs = self.max_abs.max(more.max_abs);
        self.sums.aa += more.sums.aa;
        self.sums.bb += more.sums.bb;
        self.sums.ab += more.sums.ab;
        self.sums.apart += more.sums.apart;
    }

    /// Of values of two arrays of one length. An error comes with the side of the invalid value.
    pub(super) fn of(a: &Values<'_>, b: &Values<'_>) -> Result<Self, (Side, Error)> {
        let mut distance = Distance::default();
        let count = a.count().min(b.count());
        for start in (0..count).step_by(BLOCK) {
            let (a, b) = (a.part(start, BLOCK), b.part(start, BLOCK));
            distance.append(&Self::of_block(&a, &b)?);
        }
        Ok(distance)
    }

    fn of_block(a: &Values<'_>, b: &Values<'_>) -> Result<Self, (Side, Error)> {
        let mut block = None;
        // Nearly all weights are floats. A type that is none is left to `scalars`.
        let _ = a.elements.for_each_real(a.registry, |x| {
            let _ = b.elements.for_each_real(b.registry, |y| {
                block = Some(match (x, y) {
                    (Reals::F32(x), Reals::F32(y)) => on_vectors(OfReals(x, y)),
                    (Reals::F32(x), Reals::F64(y)) => on_vectors(OfReals(x, y)),
                    (Reals::F64(x), Reals::F32(y)) => on_vectors(OfReals(x, y)),
                    (Reals::F64(x), Reals::F64(y)) => on_vectors(OfReals(x, y)),
                });
            });
        });
        // NaN and infinities are sought only in blocks that have one.
        if let Some(block) = block.filter(Self::is_finite) {
            return Ok(block);
        }
        let parts = |elements: &Elements<'_>, registry: &Registry| -> zt_formats::Result<Vec<_>> {
            Ok(elements.scalars(registry)?.map(parts).collect())
        };
        let of_a = parts(&a.elements, a.registry).map_err(|error| (Side::A, error.into()))?;
        let of_b = parts(&b.elements, b.registry).map_err(|error| (Side::B, error.into()))?;
        let mut distance = Distance::default();
        of_a.into_iter().zip(of_b).for_each(|(x, y)| distance.add(x, y));
        Ok(distance)
    }

    fn is_finite(&self) -> bool {
        let Products { aa, bb, ab, apart } = self.sums;
        [aa, bb, ab, apart].iter().all(|sum| sum.is_finite())
    }

    fn add(&mut self, a: [f64; 2], b: [f64; 2]) {
        let is_nan = |parts: [f64; 2]| parts.iter().any(|part| part.is_nan());
        let is_finite = |parts: [f64; 2]| parts.iter().all(|part| part.is_finite());
        let is_different = a != b && !(is_nan(a) && is_nan(b));
        self.count += 1;
        self.different += u64::from(is_different);
        if !is_finite(a) || !is_finite(b) {
            self.not_finite += u64::from(is_different);
            return;
        }
        let [re, im] = [b[0] - a[0], b[1] - a[1]];
        self.max_abs = self.max_abs.max(re.hypot(im));
        self.sums.aa += a[0] * a[0] + a[1] * a[1];
        self.sums.bb += b[0] * b[0] + b[1] * b[1];
        self.sums.ab += a[0] * b[0] + a[1] * b[1];
        self.sums.apart += re * re + im * im;
    }
}

/// The distance of two slices. It is wrong, and not finite, if one of the values is not.
struct OfReals<'v, A, B>(&'v [A], &'v [B]);

impl<A: Copy + Into<f64>, B: Copy + Into<f64>> Vectors for OfReals<'_, A, B> {
    type Output = Distance;

    #[inline(always)]
    fn run(self) -> Distance {
        let OfReals(a, b) = self;
        /// The compiler makes vectors of 16 sums, and of no fewer.
        const LANES: usize = 16;
        let (mut aa, mut bb, mut ab) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let (mut apart, mut max, mut different) = ([0.0; LANES], [0.0; LANES], [0u32; LANES]);
        let (lanes_a, rest_a) = a.as_chunks::<LANES>();
        let (lanes_b, rest_b) = b.as_chunks::<LANES>();
        for (lane_a, lane_b) in lanes_a.iter().zip(lanes_b) {
            for at in 0..LANES {
                let (x, y): (f64, f64) = (lane_a[at].into(), lane_b[at].into());
                let gap = y - x;
                aa[at] += x * x;
                bb[at] += y * y;
                ab[at] += x * y;
                apart[at] += gap * gap;
                let gap = gap.abs();
                max[at] = if gap > max[at] { gap } else { max[at] };
                different[at] = different[at].wrapping_add((x != y).into());
            }
        }
        let mut rest = Distance::default();
        for (x, y) in rest_a.iter().zip(rest_b) {
            rest.add([(*x).into(), 0.0], [(*y).into(), 0.0]);
        }
        rest.append(&Distance {
            count: (LANES * lanes_a.len()) as u64,
            different: different.into_iter().map(u64::from).sum(),
            not_finite: 0,
            max_abs: max.into_iter().fold(0.0, f64::max),
            sums: Products {
                aa: aa.into_iter().sum(),
                bb: bb.into_iter().sum(),
                ab: ab.into_iter().sum(),
                apart: apart.into_iter().sum(),
            },
        });
        rest
    }
}

impl Joined for Distance {
    fn join(&mut self, next: Self) {
        self.append(&next);
    }
}

/// The real and the imaginary part.
fn parts(value: Scalar) -> [f64; 2] {
    match value {
        Scalar::Complex64(value) => [value.re.into(), value.im.into()],
        Scalar::Complex128(value) => [value.re, value.im],
        value => [value.as_f64().unwrap_or(f64::NAN), 0.0],
    }
}
