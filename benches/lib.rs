//! The workloads that the benchmarks beside this file share.
//!
//! Each benchmark runs us, the peers and a bare baseline over the same tensors in one process, in
//! turn, so that ratios hold on a noisy machine.

use std::path::{Path, PathBuf};

/// Objects of the workload "many tiny tensors".
pub const TINY_COUNT: usize = 100_000;

/// Values of each tiny tensor: 160 bytes of f32.
pub const TINY_VALUES: usize = 40;

/// A name as checkpoints have them, and the tensor's values.
pub fn tiny(at: usize) -> (String, [f32; TINY_VALUES]) {
    let name = format!("model.layers.{}.experts.{}.weight", at / 1000, at % 1000);
    let mut values = [0.0; TINY_VALUES];
    for (value, step) in values.iter_mut().zip(0u16..) {
        *value = f32::from(step) + (at % 97) as f32;
    }
    (name, values)
}

/// The workload "many tiny tensors" as a `.zt` file of ours, without digests, as the peers write.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write_tiny(folder: &Path) -> zt::Result<PathBuf> {
    let path = folder.join("tiny.zt");
    let mut writer = zt::WriteOptions::new().digest(None).create(&path)?;
    for at in 0..TINY_COUNT {
        let (name, values) = tiny(at);
        writer.add(
            &name,
            &zt::Dense::from_slice(&[TINY_VALUES as u64], &values)?,
        )?;
    }
    writer.finish()?;
    Ok(path)
}
