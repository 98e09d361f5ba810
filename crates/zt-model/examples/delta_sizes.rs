//! The sizes of deltas beside general tools, as a table in Markdown: `docs/deltas.md` has it.
//!
//! ```sh
//! cargo run --release -p zt-model --example delta_sizes
//! ```
//!
//! `zstd` and `xdelta3` must be on the path. Arguments: the MiB of values of a model, 64 by default; a part of
//! the names of cases; the rows of a matrix, of 1024 values each, 1024 by default.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "an example"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use zt::{Compression, DType, Dense, Elements, File, HashOptions, WriteOptions};
use zt_convert::Input;
use zt_model::{Patch, delta};

const COLUMNS: usize = 1024;

/// xorshift64*, and numbers of the normal distribution.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Matrices of bf16 or f32, as bits.
type Model = Vec<Vec<u32>>;

fn to_bits(value: f64, is_wide: bool) -> u32 {
    let bits = (value as f32).to_bits();
    if is_wide {
        return bits;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

fn value(bits: u32, is_wide: bool) -> f64 {
    f64::from(f32::from_bits(if is_wide { bits } else { bits << 16 }))
}

fn bytes(matrix: &[u32], is_wide: bool) -> Vec<u8> {
    let bytes = matrix.iter().map(|bits| bits.to_le_bytes());
    bytes.flat_map(|bytes| bytes.into_iter().take(if is_wide { 4 } else { 2 })).collect()
}

fn store(model: &Model, is_wide: bool, path: &Path, options: WriteOptions) -> u64 {
    let mut writer = options.create(path).unwrap();
    for (at, matrix) in model.iter().enumerate() {
        let dtype = if is_wide { DType::F32 } else { DType::BF16 };
        let bytes = bytes(matrix, is_wide);
        let elements = Elements::new(dtype, &bytes[..]);
        let dense =
            Dense::from_elements([(matrix.len() / COLUMNS) as u64, COLUMNS as u64], elements)
                .unwrap();
        writer.add(&format!("layers.{at}.weight"), &dense).unwrap();
    }
    writer.finish().unwrap();
    fs::metadata(path).unwrap().len()
}

/// The bytes that a program writes to stdout.
fn piped(program: &str, arguments: &[&str], input: Option<&[u8]>) -> usize {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.unwrap_or_default().to_vec();
    let feeder = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output.stdout.len()
}

/// One change of a model.
struct Case {
    name: &'static str,
    is_wide: bool,
    change: fn(&mut Random, usize, usize, u32) -> u32,
}

fn by_a_unit(random: &mut Random, bits: u32) -> u32 {
    let step = if random.next() & 1 << 40 == 0 { 1 } else { 0xffff };
    (bits + step) & 0xffff
}

fn noisy(random: &mut Random, bits: u32, deviation: f64, is_wide: bool) -> u32 {
    to_bits(value(bits, is_wide) + 0.02 * deviation * random.normal(), is_wide)
}

/// An element of a factor of a low-rank matrix, between -1 and 1.
fn factor(side: usize, at: usize, rank: usize) -> f64 {
    let seed = (side << 40 | at << 8 | rank) as u64;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    random.next();
    2.0 * random.uniform() - 1.0
}

const CASES: [Case; 12] = [
    Case {
        name: "bf16, 1 % by a unit, at random",
        is_wide: false,
        change: |random, _, _, bits| {
            if random.uniform() < 0.01 { by_a_unit(random, bits) } else { bits }
        },
    },
    Case {
        name: "bf16, 3 % by a unit, at random",
        is_wide: false,
        change: |random, _, _, bits| {
            if random.uniform() < 0.03 { by_a_unit(random, bits) } else { bits }
        },
    },
    Case {
        name: "bf16, 1 % by a unit, in rows",
        is_wide: false,
        change: |random, _, at, bits| {
            if (at >> 10) * 7919 % 100 < 1 { by_a_unit(random, bits) } else { bits }
        },
    },
    Case {
        name: "bf16, 3 % by a unit, in rows",
        is_wide: false,
        change: |random, _, at, bits| {
            if (at >> 10) * 7919 % 100 < 3 { by_a_unit(random, bits) } else { bits }
        },
    },
    Case {
        name: "bf16, steps of 1e-6 as Adam takes them",
        is_wide: false,
        change: |random, _, _, bits| {
            to_bits(
                value(bits, false) + if random.next() & 1 << 40 == 0 { 1e-6 } else { -1e-6 },
                false,
            )
        },
    },
    Case {
        name: "bf16, noise of 1e-4",
        is_wide: false,
        change: |random, _, _, bits| noisy(random, bits, 1e-4, false),
    },
    Case {
        name: "bf16, noise of 1e-3",
        is_wide: false,
        change: |random, _, _, bits| noisy(random, bits, 1e-3, false),
    },
    Case {
        name: "bf16, 3 of 4 layers frozen, the others noise of 1e-3",
        is_wide: false,
        change: |random, layer, _, bits| {
            if layer % 4 == 3 { noisy(random, bits, 1e-3, false) } else { bits }
        },
    },
    Case {
        name: "bf16, a LoRA of rank 8 in half of the matrices",
        is_wide: false,
        change: |_, layer, at, bits| {
            if layer % 2 == 1 {
                return bits;
            }
            let of_rank = |rank| factor(layer, at >> 10, rank) * factor(!layer, at & 1023, rank);
            let product: f64 = (0..8).map(of_rank).sum();
            to_bits(value(bits, false) + 2e-4 * product, false)
        },
    },
    Case {
        name: "f32, noise of 1e-4",
        is_wide: true,
        change: |random, _, _, bits| noisy(random, bits, 1e-4, true),
    },
    Case {
        name: "f32, noise of 1e-3",
        is_wide: true,
        change: |random, _, _, bits| noisy(random, bits, 1e-3, true),
    },
    Case {
        name: "f32, weights and both moments, a step of AdamW",
        is_wide: true,
        change: |random, layer, _, bits| {
            let (old, gradient) = (value(bits, true), 0.02 * random.normal());
            let new = match layer % 3 {
                0 => old - 1e-5 * (2.0 * random.uniform() - 1.0),
                1 => 0.9 * old + 0.1 * gradient,
                _ => 0.999 * old + 0.001 * gradient * gradient,
            };
            to_bits(new, true)
        },
    },
];

fn main() {
    let number = |at, default| {
        let argument = std::env::args().nth(at);
        argument.map_or(default, |number| number.parse().unwrap())
    };
    let (mib, matrix) = (number(1, 64), number(3, 1024) * COLUMNS);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    println!(
        "| change | changed | bound | zt delta | zstd --patch-from | xdelta3 | 6 bytes each | XOR, zstd | planes, whole | zt delta / bound |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut speeds = Vec::new();
    let only = std::env::args().nth(2).unwrap_or_default();
    let cases = CASES.into_iter().filter(|case| case.name.contains(&only));
    for Case { name, is_wide, change } in cases {
        let mut random = Random(88_172_645_463_325_252);
        let width = if is_wide { 4 } else { 2 };
        let count = mib * (1 << 20) / width / matrix;
        let mut old: Model = Vec::new();
        for _ in 0..count {
            old.push((0..matrix).map(|_| to_bits(0.02 * random.normal(), is_wide)).collect());
        }
        let layers = old.iter().enumerate();
        let new: Model = layers
            .map(|(layer, matrix)| {
                let places = matrix.iter().enumerate();
                places.map(|(place, bits)| change(&mut random, layer, place, *bits)).collect()
            })
            .collect();
        let pairs = old.iter().flatten().zip(new.iter().flatten());
        let changed = pairs.filter(|(a, b)| a != b).count() as f64;
        let all = (count * matrix) as f64;
        let share = changed / all;
        let entropy = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
        let bound = (all * (entropy(share) + entropy(1.0 - share)) + 2.0 * changed) / 8.0;
        let (a, b) = (at("a.zt"), at("b.zt"));
        store(&old, is_wide, &a, WriteOptions::new());
        store(&new, is_wide, &b, WriteOptions::new());
        let planes = WriteOptions::new().planes().compression(Compression::Auto);
        let planes = store(&new, is_wide, &at("planes.zt"), planes);
        let [base, next] = [&a, &b].map(|path| Input::from(File::open(path).unwrap()));
        let mut written = Vec::new();
        let start = Instant::now();
        delta(&base, &next, &mut written, None).unwrap();
        let making = start.elapsed().as_secs_f64();
        let ours = written.len();
        let start = Instant::now();
        let result =
            Patch::new(&base, &[Input::from(File::from_bytes(written).unwrap())]).open().unwrap();
        let checking = start.elapsed().as_secs_f64();
        let hash = |input: &Input| input.file().hash(&HashOptions::new()).unwrap().content;
        assert_eq!(hash(&result), hash(&next));
        speeds.push((name, making, checking));
        let xor: Vec<u8> = old
            .iter()
            .flatten()
            .zip(new.iter().flatten())
            .flat_map(|(a, b)| bytes(&[a ^ b], is_wide))
            .collect();
        let xor = piped("zstd", &["-3", "-c"], Some(&xor));
        let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
        let from = format!("--patch-from={a}");
        let patch_from = piped("zstd", &[&from, "--long=31", "-c", b], None);
        let xdelta = piped("xdelta3", &["-e", "-c", "-B", "2147483648", "-s", a, b], None);
        let mb = |len: f64| format!("{:.0}", len / 1e3);
        let lens = [
            bound,
            ours as f64,
            patch_from as f64,
            xdelta as f64,
            6.0 * changed,
            xor as f64,
            planes as f64,
        ]
        .map(mb);
        println!(
            "| {name} | {:.1} % | {} | {:.3} |",
            share * 100.0,
            lens.join(" | "),
            ours as f64 / bound
        );
    }
    println!();
    println!("| change | make, MB/s of the new model | check base and result, MB/s |");
    println!("| --- | --- | --- |");
    let model = (mib << 20) as f64 / 1e6;
    for (name, making, checking) in speeds {
        println!("| {name} | {:.0} | {:.0} |", model / making, model / checking);
    }
}
