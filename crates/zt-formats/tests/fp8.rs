//! The FP8 conversions against tables made by `ml_dtypes` and torch: see `data/README.md`.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{
    Elements, F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, FloatType, Registry, bf16, f16,
};

const TABLE: &str = include_str!("data/fp8.txt");

/// The words of all lines that start with `verb name`.
fn words<'a>(verb: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    TABLE.lines().flat_map(move |line| {
        let mut words = line.split(' ');
        let wanted = words.next() == Some(verb) && words.next() == Some(name);
        words.filter(move |_| wanted)
    })
}

fn hex(word: &str) -> u32 {
    u32::from_str_radix(word, 16).unwrap()
}

fn assert_decodes(name: &str, to_f32: impl Fn(u8) -> f32) {
    let expected: Vec<u32> = words("decode", name).map(hex).collect();
    assert_eq!(expected.len(), 256);
    for (code, expected) in (0..=255).zip(expected) {
        assert_eq!(to_f32(code).to_bits(), expected, "{name} {code:02x}");
    }
}

fn assert_encodes(name: &str, from_f32: impl Fn(f32) -> u8) {
    let mut count = 0;
    for pair in words("encode", name) {
        let (bits, code) = pair.split_once('=').unwrap();
        let code = hex(code);
        assert_eq!(u32::from(from_f32(f32::from_bits(hex(bits)))), code, "{name} {bits}");
        count += 1;
    }
    assert!(count > 1500);
}

macro_rules! against_ml_dtypes {
    ($test:ident, $type:ident, $name:literal) => {
        #[test]
        fn $test() {
            assert_decodes($name, |code| $type::from_bits(code).to_f32());
            assert_encodes($name, |value| $type::from_f32(value).to_bits());
            for code in 0..=255 {
                let value = $type::from_bits(code);
                if !value.is_nan() {
                    assert_eq!($type::from_f32(value.to_f32()), value);
                }
            }
        }
    };
}

against_ml_dtypes!(e4m3fn_agrees_with_ml_dtypes, F8E4M3Fn, "f8_e4m3fn");
against_ml_dtypes!(e5m2_agrees_with_ml_dtypes, F8E5M2, "f8_e5m2");
against_ml_dtypes!(e4m3fnuz_agrees_with_ml_dtypes, F8E4M3FnUz, "f8_e4m3fnuz");
against_ml_dtypes!(e5m2fnuz_agrees_with_ml_dtypes, F8E5M2FnUz, "f8_e5m2fnuz");

#[test]
fn the_largest_values_are_as_in_the_standards() {
    assert_eq!(F8E4M3Fn::MAX.to_f32(), 448.0);
    assert_eq!(F8E5M2::MAX.to_f32(), 57344.0);
    assert_eq!(F8E4M3FnUz::MAX.to_f32(), 240.0);
    assert_eq!(F8E5M2FnUz::MAX.to_f32(), 57344.0);
}

#[test]
fn the_least_values_are_as_in_the_standards() {
    // Subnormal and normal: OCP's by their tables, and AMD's half of them.
    let two_to = |exponent| 2f32.powi(exponent);
    for (least, normal, expected) in [
        (F8E4M3Fn::from_bits(0x01).to_f32(), F8E4M3Fn::from_bits(0x08).to_f32(), (-9, -6)),
        (F8E5M2::from_bits(0x01).to_f32(), F8E5M2::from_bits(0x04).to_f32(), (-16, -14)),
        (F8E4M3FnUz::from_bits(0x01).to_f32(), F8E4M3FnUz::from_bits(0x08).to_f32(), (-10, -7)),
        (F8E5M2FnUz::from_bits(0x01).to_f32(), F8E5M2FnUz::from_bits(0x04).to_f32(), (-17, -15)),
    ] {
        assert_eq!((least, normal), (two_to(expected.0), two_to(expected.1)));
    }
}

#[test]
fn codes_are_printed_and_converted_as_their_values() {
    let (least, nan) = (F8E5M2::from_bits(0x81), F8E4M3FnUz::from_bits(0x80));
    assert_eq!(format!("{least} {least:?}"), format!("{0} {0:?}", -1f32 / 65_536.0));
    assert_eq!(format!("{nan} {nan:?}"), "NaN NaN");
    assert_eq!(format!("{:6.2}|", F8E4M3Fn::from_f32(0.5)), "  0.50|");
    assert_eq!(f32::from(F8E5M2FnUz::MAX), 57344.0);
}

/// The codes of a cast. The f64 that are equal to the values must give the same.
fn cast(values: &[f32], source: &Elements<'_>, to: FloatType) -> Vec<u8> {
    let registry = Registry::builtin();
    let codes = source.cast(to, &registry).unwrap();
    assert_eq!(codes.logical_type(), Some(to.as_str()));
    let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
    let of_wide = Elements::from(&wide).cast(to, &registry).unwrap();
    assert!(codes.bytes == of_wide.bytes);
    codes.bytes.to_vec()
}

#[test]
fn every_half_is_cast_to_the_code_that_torch_gives() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    let mut casts = 0;
    for line in include_str!("data/fp8_torch.txt").lines() {
        let (source, rest) = line.split_once(' ').unwrap();
        let (target, pairs) = rest.split_once(' ').unwrap();
        let to = FloatType::from_name(target).unwrap();
        let found = match source {
            "f16" => {
                let values: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
                cast(&values, &Elements::from(&halves), to)
            }
            _ => {
                let values: Vec<f32> = brains.iter().map(|brain| brain.to_f32()).collect();
                cast(&values, &Elements::from(&brains), to)
            }
        };
        let pairs = pairs.split(' ').map(|pair| pair.split_once('=').unwrap());
        let mut pairs = pairs.map(|(bits, code)| (hex(bits), hex(code))).peekable();
        let mut expected = 0;
        for (bits, code) in (0..).zip(found) {
            if let Some((_, next)) = pairs.next_if(|(at, _)| *at == bits) {
                expected = next;
            }
            assert_eq!(u32::from(code), expected, "{source} {bits:04x} to {target}");
        }
        casts += 1;
    }
    assert_eq!(casts, 4);
}

/// At every tie as `ml_dtypes`, except where torch differs.
#[test]
fn f32_are_cast_to_the_codes_of_torch() {
    for to in [FloatType::F8E4M3Fn, FloatType::F8E5M2] {
        for pair in words("encode", to.as_str()) {
            let (bits, code) = pair.split_once('=').unwrap();
            let value = f32::from_bits(hex(bits));
            let expected = match (to, hex(code)) {
                (FloatType::F8E4M3Fn, code @ (0x7f | 0xff)) if !value.is_nan() => code - 1,
                (FloatType::F8E5M2, code) if value.is_nan() => code | 0x7f,
                (_, code) => code,
            };
            let found = cast(&[value], &Elements::from(&[value]), to);
            assert_eq!(u32::from(found[0]), expected, "{bits} to {to}");
        }
    }
}

fn sign(code: u8) -> f64 {
    if code < 0x80 { 1.0 } else { -1.0 }
}

/// The number of a code by the standards: a sign, an exponent with a bias, and a mantissa with an
/// implicit one before it unless the exponent is zero.
fn number(code: u8, mantissa_bits: u32, bias: i32) -> f64 {
    let mantissas = 1 << mantissa_bits;
    let fraction = f64::from(code % mantissas) / f64::from(mantissas);
    let (exponent, significand) = match i32::from(code % 0x80 / mantissas) {
        0 => (1, fraction),
        exponent => (exponent, 1.0 + fraction),
    };
    sign(code) * significand * 2f64.powi(exponent - bias)
}

fn assert_values(decode: fn(u8) -> f32, defined: fn(u8) -> f64) {
    for code in 0..=255 {
        let (value, expected) = (f64::from(decode(code)), defined(code));
        // Bits, because zeros have signs. The standards leave the bits of NaN open.
        let is_same = value.to_bits() == expected.to_bits();
        let is_nan = value.is_nan() && expected.is_nan();
        assert!(is_same || is_nan, "{code:02x}: {value}, not {expected}");
    }
}

#[test]
fn every_code_has_the_value_that_its_standard_defines() {
    // OCP: NaN is S.1111.111, and there are no infinities.
    assert_values(
        |code| F8E4M3Fn::from_bits(code).to_f32(),
        |code| match code % 0x80 {
            0x7f => f64::NAN,
            _ => number(code, 3, 7),
        },
    );
    // OCP: infinity is S.11111.00, and all codes above it are NaN.
    assert_values(
        |code| F8E5M2::from_bits(code).to_f32(),
        |code| match code % 0x80 {
            0x7c => sign(code) * f64::INFINITY,
            0x7d.. => f64::NAN,
            _ => number(code, 2, 15),
        },
    );
    // AMD: NaN has the code that would be the negative zero.
    assert_values(
        |code| F8E4M3FnUz::from_bits(code).to_f32(),
        |code| match code {
            0x80 => f64::NAN,
            _ => number(code, 3, 8),
        },
    );
    assert_values(
        |code| F8E5M2FnUz::from_bits(code).to_f32(),
        |code| match code {
            0x80 => f64::NAN,
            _ => number(code, 2, 16),
        },
    );
}
