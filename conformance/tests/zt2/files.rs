//! Files of its own crate, in ways that their truth does not say.

use std::fs;

use zt::{Csr, ErrorKind, File, OpenOptions, VerifyOptions};
use zt_conformance::foreign;

use super::{open, path};

#[test]
fn what_is_read_becomes_a_file_of_1_2() {
    for case in foreign::cases("zt2") {
        let input = zt_convert::Kinds::builtin()
            .open(&case.path, OpenOptions::new())
            .unwrap();
        let hash = input.file().hash(&zt::HashOptions::default()).unwrap();
        let mut written = Vec::new();
        let options = zt_convert::ConvertOptions::new(zt_convert::ZT);
        zt_convert::convert(&[input], &mut written, &options).unwrap();
        let again = File::from_bytes(written).unwrap();
        assert_eq!(again.kind(), zt_convert::ZT);
        let found = again.hash(&zt::HashOptions::default()).unwrap();
        assert_eq!(found.content, hash.content, "{}", case.name);
    }
}

#[test]
fn sparse_arrays_of_the_profiles_are_views_of_ours() {
    let file = zt_convert::open(path("csr.zt2")).unwrap();
    for name in ["u32", "u64", "encoded"] {
        let csr = file.tensor(name).unwrap().view::<Csr<'_>>().unwrap();
        assert_eq!(
            (csr.indices(), csr.indptr()),
            (&[1, 3, 0, 3][..], &[0, 2, 2, 4][..])
        );
    }
    // Indices as narrow as these are allowed there, so strict verification has nothing to say.
    let options = VerifyOptions::new().strict(true);
    assert!(file.verify(&options).unwrap().is_ok());
}

#[test]
fn a_model_without_its_shards_opens_and_says_which_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("other.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    let file = zt_convert::open(&root).unwrap();
    assert_eq!(file.tensor("delta").unwrap().shape(), [4]);
    let error = file.tensor("weight").unwrap_err();
    let missing = folder.path().join("other-base.zt");
    assert_eq!(
        (error.kind(), error.path()),
        (ErrorKind::Io, Some(&*missing))
    );
    // One of another size is another one.
    let base = fs::read(path("sharded-base.zt")).unwrap();
    fs::write(&missing, [&base[..], &[0]].concat()).unwrap();
    let file = zt_convert::open(&root).unwrap();
    assert_eq!(file.tensor("weight").unwrap_err().code(), "bounds");
    fs::write(&missing, base).unwrap();
    let input = zt_convert::Kinds::builtin()
        .open(&root, OpenOptions::new())
        .unwrap();
    assert_eq!(input.paths(), [root, missing]);
    assert!(
        input
            .file()
            .verify(&VerifyOptions::default())
            .unwrap()
            .is_ok()
    );
    let from_memory = open(fs::read(path("sharded.zt2")).unwrap()).unwrap();
    assert_eq!(
        from_memory.tensor("weight").unwrap_err().code(),
        "unsupported"
    );
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_followed_only_on_request() {
    let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let root = folder.path().join("m.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    let secret = outside.path().join("secret");
    fs::copy(path("sharded-base.zt"), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, folder.path().join("m-base.zt")).unwrap();
    let file = zt_convert::open(&root).unwrap();
    assert_eq!(file.tensor("weight").unwrap_err().code(), "path");
    let options = zt_convert::InputOptions::new().follow_links(true);
    let input = zt_convert::Kinds::builtin().open(&root, options).unwrap();
    assert!(input.file().tensor("weight").is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn shards_are_found_where_names_of_files_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    let root = named(b"m\xFF.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    fs::copy(path("sharded-base.zt"), named(b"m\xFF-base.zt")).unwrap();
    let file = zt_convert::open(&root).unwrap();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
}

#[test]
fn the_error_of_the_zt_reader_names_ztensor_2() {
    let error = File::from_bytes(fs::read(path("tied.zt2")).unwrap()).unwrap_err();
    assert_eq!(error.code(), "not-zt");
    assert!(error.to_string().contains("zTensor 2"), "{error}");
}
