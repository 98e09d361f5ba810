//! Files of its own crate, as `.zt` and beside it.

use std::fs;

use zt::{File, OpenOptions};
use zt_conformance::foreign;

use super::path;

#[test]
fn what_is_read_becomes_a_file_of_1_2() {
    for case in foreign::cases("zt2") {
        let input = zt_convert::Kinds::builtin().open(&case.path, OpenOptions::new()).unwrap();
        let hash = input.file().hash(&zt::HashOptions::default()).unwrap();
        let mut written = Vec::new();
        let options = zt_convert::ConvertOptions::new(zt_convert::ZT);
        zt_convert::Kinds::builtin().convert(&[input], &mut written, &options).unwrap();
        let again = File::from_bytes(written).unwrap();
        assert_eq!(again.kind(), zt_convert::ZT);
        let found = again.hash(&zt::HashOptions::default()).unwrap();
        assert_eq!(found.content, hash.content, "{}", case.name);
    }
}

#[test]
fn the_error_of_the_zt_reader_names_ztensor_2() {
    let error = File::from_bytes(fs::read(path("tied.zt2")).unwrap()).unwrap_err();
    assert_eq!(error.code(), "not-zt");
    assert!(error.to_string().contains("zTensor 2"), "{error}");
}
