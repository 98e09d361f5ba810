//! Numbers: how they are rounded and printed.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_formats::{Complex, Elements, F8E8M0Fnu, Registry, Scalar, bf16, f16};
use zt_manifest::DType;

fn cast(value: f64, to: DType) -> u16 {
    let bytes = value.to_le_bytes();
    let elements = Elements::new(DType::F64, &bytes[..]);
    let cast = elements.to_dtype(to, &Registry::builtin()).unwrap();
    u16::from_le_bytes(*cast.bytes.first_chunk().unwrap())
}

#[test]
fn f64_is_rounded_once() {
    // Just above a tie, by less than an f32 (2^-40) or the upper half of an f64 (2^-50) can
    // hold: up. The tie itself: to even, down.
    for tiny in [-40, -50] {
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(tiny);
        assert_eq!(cast(above, DType::F16), 0x3c01);
        let above = 1.0 + 2f64.powi(-8) + 2f64.powi(tiny);
        assert_eq!(cast(above, DType::BF16), 0x3f81);
        let above = 2f64.powi(-25) + 2f64.powi(tiny - 25);
        assert_eq!(cast(above, DType::F16), 1);
    }
    // Between the first and the second f32 above the tie. The first is odd.
    let above = 1.0 + 2f64.powi(-11) + 1.5 * 2f64.powi(-23);
    assert_eq!(cast(above, DType::F16), 0x3c01);
    assert_eq!(cast(1.0 + 2f64.powi(-11), DType::F16), 0x3c00);
    assert_eq!(cast(1.0 + 2f64.powi(-8), DType::BF16), 0x3f80);
    assert_eq!(cast(2f64.powi(-25), DType::F16), 0);
}

#[test]
fn the_ends_of_f64_become_the_ends_of_the_target() {
    assert_eq!(cast(f64::MAX, DType::F16), 0x7c00);
    assert_eq!(cast(-f64::MAX, DType::BF16), 0xff80);
    assert_eq!(cast(f64::INFINITY, DType::BF16), 0x7f80);
    assert_eq!(cast(65519.999, DType::F16), 0x7bff);
    assert_eq!(cast(65520.0, DType::F16), 0x7c00);
    assert_eq!(cast(-5e-324, DType::F16), 0x8000);
    assert!(f16::from_bits(cast(f64::NAN, DType::F16)).is_nan());
    assert!(bf16::from_bits(cast(-f64::NAN, DType::BF16)).is_nan());
}

#[test]
fn a_value_prints_the_fewest_digits_that_distinguish_it() {
    let text = |scalar: Scalar| scalar.to_string();
    assert_eq!(text(Scalar::F16(f16::from_f32(0.1))), "0.1");
    assert_eq!(text(Scalar::F16(f16::MAX)), "65500.0");
    assert_eq!(text(Scalar::F16(f16::from_bits(1))), "6e-8");
    assert_eq!(text(Scalar::BF16(bf16::from_f32(3.15))), "3.16");
    assert_eq!(text(Scalar::F32(0.1)), "0.1");
    assert_eq!(text(Scalar::F64(0.1)), "0.1");
    assert_eq!(text(Scalar::F16(f16::NAN)), "NaN");
    assert_eq!(text(Scalar::F16(f16::NEG_INFINITY)), "-inf");
    assert_eq!(text(Scalar::UInt(u64::MAX)), "18446744073709551615");
    let complex = Scalar::Complex64(Complex::new(1.5, -2.0));
    assert_eq!(text(complex), "1.5-2.0j");
}

#[test]
fn every_half_prints_digits_that_parse_to_it() {
    for bits in 0..=u16::MAX {
        let value = f16::from_bits(bits);
        let read: f32 = Scalar::F16(value).to_string().parse().unwrap();
        assert!(value.is_nan() || f16::from_f32(read).to_bits() == bits);
        let value = bf16::from_bits(bits);
        let read: f32 = Scalar::BF16(value).to_string().parse().unwrap();
        assert!(value.is_nan() || bf16::from_f32(read).to_bits() == bits);
    }
}

#[test]
fn every_code_is_a_power_of_two_or_nan() {
    for code in 0..255u8 {
        let value = F8E8M0Fnu::from_bits(code).to_f32();
        assert_eq!(f64::from(value), 2f64.powi(i32::from(code) - 127), "{code}");
    }
    assert!(F8E8M0Fnu::from_bits(255).to_f32().is_nan());
}

#[test]
fn the_least_values_round_to_the_nearest() {
    let least = f32::from_bits(0x40_0000);
    let code = |value| F8E8M0Fnu::from_f32(value).to_bits();
    let codes = [f32::from_bits(1), least, 1.25 * least, 1.5 * least, 2.0 * least];
    assert_eq!(codes.map(code), [0, 0, 0, 1, 1]);
}
