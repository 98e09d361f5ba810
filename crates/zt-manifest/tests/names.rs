//! The names of dtypes, and the numbers of versions.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

use zt_manifest::{DType, Version};

#[test]
fn a_logical_type_that_repeats_the_dtype_is_none() {
    assert_eq!(DType::U8.logical_type(Some("u8")), None);
    assert_eq!(DType::U8.logical_type(None::<&str>), None);
    let other = DType::U8.logical_type(Some("f8_e5m2"));
    assert_eq!(other, Some("f8_e5m2"));
    let floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float());
    let names: Vec<&str> = floats.map(DType::as_str).collect();
    assert_eq!(names, ["f64", "f32", "f16", "bf16"]);
}

#[test]
fn every_name_names_its_type_and_only_in_its_own_generation() {
    for dtype in DType::ALL {
        assert_eq!(DType::from_name(dtype.as_str()), Some(dtype));
        assert_eq!(DType::from_long_name(dtype.as_long_str()), Some(dtype));
        assert_eq!(dtype.to_string(), dtype.as_str());
    }
    assert_eq!(DType::from_name("float32"), None);
    assert_eq!(DType::from_long_name("f32"), None);
    assert_eq!(DType::from_name("F32"), None);
    assert_eq!(DType::from_name("f32 "), None);
}

/// A name ends in the bits of an element, except `bool`.
#[test]
fn elements_are_as_long_as_they_are_called() {
    for dtype in DType::ALL {
        let bits = dtype.as_str().trim_start_matches(char::is_alphabetic);
        let bits = bits.parse().unwrap_or(8);
        assert_eq!(dtype.byte_len() * 8, bits, "{dtype}");
    }
}

#[test]
fn takes_one_to_three_numbers() {
    for (text, numbers) in
        [("1", (1, 0, 0)), ("1.0", (1, 0, 0)), ("1.2.3", (1, 2, 3)), ("1.2-rc.1+x", (1, 2, 0))]
    {
        let version = Version::parse(text).unwrap();
        assert_eq!((version.major, version.minor, version.patch), numbers);
        assert_eq!(version.to_string(), text);
    }
}

#[test]
fn refuses_what_is_no_version() {
    for text in [
        "",
        "one",
        "v1.2.0",
        "1.",
        ".1",
        "1..0",
        "1.2.0.1",
        " 1.2",
        "1.2 ",
        "+1.2",
        "1.2.0rc1",
        "99999999999999999999.0.0",
    ] {
        assert_eq!(Version::parse(text), None, "{text:?}");
    }
}
