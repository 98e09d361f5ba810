//! Weights as candle's models ask for them.
#![allow(clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use candle_core::{DType, Device, Error, Tensor};
use zt::formats::{F8E4M3Fn, Packing, Quantization};
use zt::{Coo, Dense, Elements, File, QuantizedGroup, ToObject, WriteOptions};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn file_of(name: &str, object: &dyn ToObject) -> Result<File> {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes)?;
    writer.add(name, object)?;
    writer.finish()?;
    Ok(File::from_bytes(bytes)?)
}

fn loaded(object: &dyn ToObject) -> Result<Tensor> {
    Ok(zt_candle::tensor(&file_of("w", object)?, "w", &Device::Cpu)?)
}

#[test]
fn a_tensor_keeps_its_dtype_shape_and_values() -> Result {
    let tensor = loaded(&Dense::from_slice(&[2, 2], &[1i64, -2, 3, i64::MIN])?)?;
    assert_eq!(tensor.dtype(), DType::I64);
    assert_eq!(tensor.to_vec2::<i64>()?, [[1, -2], [3, i64::MIN]]);

    let scalar = loaded(&Dense::from_slice(&[], &[2.5f64])?)?;
    assert_eq!(scalar.to_scalar::<f64>()?, 2.5);
    let empty = loaded(&Dense::from_slice::<f32>(&[0, 3], &[])?)?;
    assert_eq!(empty.dims(), [0, 3]);

    let codes = [0x38u8, 0xb8].map(F8E4M3Fn::from_bits);
    let small = loaded(&Dense::from_slice(&[2], &codes)?)?;
    assert_eq!(small.dtype(), DType::F8E4M3);
    assert_eq!(small.to_dtype(DType::F32)?.to_vec1::<f32>()?, [1.0, -1.0]);
    Ok(())
}

#[test]
fn a_dtype_that_candle_lacks_is_widened_or_refused() -> Result {
    let wide = loaded(&Dense::from_slice(&[2], &[0u16, u16::MAX])?)?;
    assert_eq!(wide.to_vec1::<u32>()?, [0, 65_535]);
    let wide = loaded(&Dense::from_slice(&[2], &[i8::MIN, 3])?)?;
    assert_eq!(wide.to_vec1::<i16>()?, [-128, 3]);
    let codes = Elements::new(zt::DType::U8, &[0x3cu8][..]).with_logical_type("f8_e5m2");
    let wide = loaded(&Dense::from_elements([1], codes)?)?;
    assert_eq!(wide.to_vec1::<f32>()?, [1.0]);
    assert!(loaded(&Dense::from_slice(&[1], &[u64::MAX])?).is_err());
    Ok(())
}

#[test]
fn sparse_and_quantized_tensors_arrive_dense() -> Result {
    let sparse = Coo::new([2, 2], &[7.0f32][..], &[1u64, 0][..])?;
    assert_eq!(loaded(&sparse)?.to_vec2::<f32>()?, [[0.0, 0.0], [7.0, 0.0]]);
    // 4-bit values 1 to 8, eight in a word, scaled by 0.5 and by 2.
    let packing = Packing { per_word: 8, dtype: zt::DType::I32 };
    let rule = Quantization::new(4, 4, packing);
    let packed = [0x8765_4321_u32.cast_signed()];
    let quantized = QuantizedGroup::new([2, 4], rule, &packed[..], &[0.5f32, 2.0][..], None)?;
    let values = loaded(&quantized)?.to_vec2::<f32>()?;
    assert_eq!(values, [[0.5, 1.0, 1.5, 2.0], [10.0, 12.0, 14.0, 16.0]]);
    Ok(())
}

#[test]
fn a_model_gets_the_dtype_that_it_asks_for() -> Result {
    let file = file_of("a.weight", &Dense::from_slice(&[2, 1], &[1.5f32, -2.0])?)?;
    let weights = zt_candle::var_builder(file, DType::BF16, &Device::Cpu);
    assert!(weights.contains_tensor("a.weight"));
    assert!(!weights.contains_tensor("a.bias"));
    let weight = weights.pp("a").get((2, 1), "weight")?;
    assert_eq!(weight.dtype(), DType::BF16);
    assert_eq!(weight.to_dtype(DType::F32)?.to_vec2::<f32>()?, [[1.5], [-2.0]]);
    Ok(())
}

#[test]
fn another_shape_and_a_missing_name_are_errors_of_candle() -> Result {
    let file = file_of("w", &Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    let weights = zt_candle::var_builder(file, DType::F32, &Device::Cpu);
    let wrong = weights.get(3, "w").expect_err("the shape is another");
    assert!(format!("{wrong}").contains("shape mismatch for w"), "{wrong}");
    let missing = weights.get(2, "v").expect_err("there is no v");
    assert!(format!("{missing}").contains("cannot find tensor v"), "{missing}");
    Ok(())
}

#[test]
fn a_damaged_tensor_is_refused_and_its_neighbour_loads() -> Result {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes)?;
    writer.add("bad", &Dense::from_slice(&[1], &[1.0f32])?)?;
    writer.add("good", &Dense::from_slice(&[1], &[2.0f32])?)?;
    writer.finish()?;
    let at = File::from_bytes(bytes.clone())?.tensor("bad")?.component("data")?.blob.span.offset();
    bytes[usize::try_from(at)?] ^= 1;

    let file = File::from_bytes(bytes)?;
    let bad: Error = zt_candle::tensor(&file, "bad", &Device::Cpu).expect_err("it is damaged");
    assert!(format!("{bad}").contains("bad"), "{bad}");
    let good = zt_candle::tensor(&file, "good", &Device::Cpu)?;
    assert_eq!(good.to_vec1::<f32>()?, [2.0]);
    Ok(())
}
