//! How many bytes of bf16 values a second are made of codes that lie in memory: `cargo run --release --example speed`.
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::time::Instant;

use zt::{DType, Dense, Elements, File, FloatType, Result, Writer};
use zt_quantized::{Dialects, Settings, find};

const ROWS: u64 = 4096;
const COLUMNS: u64 = 4096;

/// A tensor of pseudorandom bytes, or of ones.
fn add(writer: &mut Writer<'_>, name: &str, dtype: DType, kind: &str, shape: &[u64]) -> Result<()> {
    let count = shape.iter().product::<u64>() as usize;
    let mut state = 1u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8 & 0x3f
    };
    let bytes: Vec<u8> = match dtype {
        DType::F32 => 1f32.to_le_bytes().repeat(count),
        DType::F16 => [0, 0x3c].repeat(count),
        DType::BF16 => [0x80, 0x3f].repeat(count),
        _ => (0..count * dtype.byte_len()).map(|_| byte()).collect(),
    };
    let mut elements = Elements::new(dtype, bytes);
    if !kind.is_empty() {
        elements = elements.with_logical_type(kind.to_owned());
    }
    writer.add(name, &Dense::from_elements(shape, elements)?)
}

/// Seconds of CPU time of this process, where Linux tells them.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.split(' ').skip(13).take(2).filter_map(|it| it.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn main() -> Result<()> {
    let (r, c) = (ROWS, COLUMNS);
    type Part = (&'static str, DType, &'static str, Vec<u64>);
    let cases: Vec<(&str, Vec<Part>)> = vec![
        (
            "fp8",
            vec![
                ("w.weight", DType::U8, "f8_e4m3fn", vec![r, c]),
                ("w.weight_scale_inv", DType::F32, "", vec![r / 128, c / 128]),
            ],
        ),
        (
            "nvfp4",
            vec![
                ("w.weight", DType::U8, "", vec![r, c / 2]),
                ("w.weight_scale", DType::U8, "f8_e4m3fn", vec![r, c / 16]),
                ("w.weight_scale_2", DType::F32, "", vec![1]),
            ],
        ),
        (
            "mxfp4",
            vec![
                ("w.weight_packed", DType::U8, "", vec![r, c / 2]),
                ("w.weight_scale", DType::U8, "f8_e8m0fnu", vec![r, c / 32]),
            ],
        ),
        (
            "gpt-oss",
            vec![
                ("w_blocks", DType::U8, "", vec![1, r, c / 32, 16]),
                ("w_scales", DType::U8, "", vec![1, r, c / 32]),
            ],
        ),
        (
            "gptq",
            vec![
                ("w.qweight", DType::I32, "", vec![c / 8, r]),
                ("w.qzeros", DType::I32, "", vec![c / 128, r / 8]),
                ("w.scales", DType::F16, "", vec![c / 128, r]),
            ],
        ),
        (
            "awq",
            vec![
                ("w.qweight", DType::I32, "", vec![c, r / 8]),
                ("w.qzeros", DType::I32, "", vec![c / 128, r / 8]),
                ("w.scales", DType::F16, "", vec![c / 128, r]),
            ],
        ),
        (
            "bitsandbytes",
            vec![
                ("w.weight", DType::U8, "", vec![r * c / 2, 1]),
                ("w.weight.absmax", DType::F32, "", vec![r * c / 64]),
                ("w.weight.quant_map", DType::F32, "", vec![16]),
            ],
        ),
        (
            "int8",
            vec![
                ("w.weight", DType::I8, "", vec![r, c]),
                ("w.weight_scale", DType::BF16, "", vec![r, 1]),
            ],
        ),
    ];
    let only = std::env::args().nth(1);
    for (name, parts) in cases {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes)?;
        for (name, dtype, kind, shape) in &parts {
            add(&mut writer, name, *dtype, kind, shape)?;
        }
        if name == "bitsandbytes" {
            let state = format!("{{\"blocksize\":64,\"shape\":[{r},{c}],\"dtype\":\"bfloat16\"}}");
            let state = Dense::from_slice(&[state.len() as u64], state.as_bytes())?;
            writer.add("w.weight.quant_state.bitsandbytes__nf4", &state)?;
        }
        writer.finish()?;
        let file = File::from_bytes(bytes)?;
        let found = find(&file, &Settings::default(), &Dialects::builtin())?;
        let logical = found.logical(Some(FloatType::BF16))?;
        let tensor = logical.tensors().next().into_iter().flatten().next();
        let Some(tensor) = tensor else { continue };
        let mut out = vec![0; tensor.decoded_len("data")? as usize];
        let mut best = f64::INFINITY;
        let before = cpu();
        for _ in 0..7 {
            let start = Instant::now();
            tensor.read_into("data", &mut out)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let cpu = (cpu() - before) / 7.0;
        let rate = |seconds: f64| out.len() as f64 / seconds / 1e9;
        println!("{name:14} {:.2} GB/s, {:.2} GB a second of CPU time", rate(best), rate(cpu));
    }
    Ok(())
}
