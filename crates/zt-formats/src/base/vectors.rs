//! Loops compiled for several sets of vector instructions. The processor decides which one runs.

use multiversion::multiversion;

/// A loop over values, for [`on_vectors`].
///
/// Its code must be inlined: `run` and what it calls are `#[inline(always)]` or small.
pub trait Vectors {
    /// What the loop gives.
    type Output;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop with the widest vectors that the processor has: AVX-512, AVX2, or what every processor of its
/// architecture has. The compiler fuses no multiplication with an addition, so the results are equal to the last bit.
#[multiversion(targets("x86_64+avx512bw+avx512dq+avx512vl+bmi2", "x86_64+avx2+bmi2"))]
pub fn on_vectors<V: Vectors>(work: V) -> V::Output {
    work.run()
}
