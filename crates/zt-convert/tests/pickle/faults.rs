//! What is around the object: versions, keys and storages.

use crate::draft::{Py, f32s, file, list, opened, vector, with_keys};

fn object() -> Py {
    vector("FloatStorage", "f", 1)
}

#[test]
fn storages_are_those_that_the_object_has() {
    let sound = file(&object(), &[("f", 1, f32s(&[1.5]))]);
    let tensor = opened(sound.clone()).unwrap();
    assert_eq!(
        tensor.tensor("tensor").unwrap().to_vec::<f32>().unwrap(),
        [1.5]
    );
    let cut = |len: usize| sound[..sound.len() - len].to_vec();
    for bytes in [
        // In the elements, and in the number of them.
        cut(1),
        cut(5),
        cut(12),
        file(&object(), &[("f", 2, f32s(&[1.5, 2.5]))]),
        file(&object(), &[("f", -1, f32s(&[1.5]))]),
        file(&object(), &[("g", 1, f32s(&[1.5]))]),
        with_keys(&object(), &list([1])),
        with_keys(&object(), &Py::None),
    ] {
        assert_eq!(opened(bytes).unwrap_err().code(), "header");
    }
    // Without a place in the file, a tensor is at fault, and not the file.
    let file = opened(file(&object(), &[])).unwrap();
    assert_eq!(
        file.tensor("tensor").unwrap_err().code(),
        "missing-component"
    );
}

/// Most pickles are short, and those that are not are read in longer and longer windows.
#[test]
fn pickles_may_be_longer_than_what_is_read_of_them_at_first() {
    let text = Py::Text("x".repeat(5 << 20));
    let items = vec![("text".into(), text), ("w".into(), object())];
    let bytes = file(&Py::Dict(items), &[("f", 1, f32s(&[2.5]))]);
    let file = opened(bytes.clone()).unwrap();
    assert_eq!(file.tensor("w").unwrap().to_vec::<f32>().unwrap(), [2.5]);
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(
        attributes.get("text").unwrap().as_str().unwrap().len(),
        5 << 20
    );
    assert_eq!(
        opened(bytes[..2 << 20].to_vec()).unwrap_err().code(),
        "pickle"
    );
}
