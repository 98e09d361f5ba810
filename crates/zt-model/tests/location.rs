//! What a user typed, as a file.
#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(feature = "remote")]
#[path = "../../zt-remote/tests/common/mod.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zt::{Dense, File, OpenOptions, Writer};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, SAFETENSORS, ZT};
use zt_model::seal::{Contents, Files, Seal, SealOptions, seal};
use zt_model::{Check, Location, LocationOptions, delta, open};

fn model(values: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("w", &Dense::from_slice(&[values.len() as u64], values).unwrap()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn values(file: &File) -> Vec<f32> {
    file.tensor("w").unwrap().values::<f32>().unwrap().to_vec()
}

/// A folder with the model `model.zt`, and the path of that.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    fs::write(&path, model(&[1.0, 2.0])).unwrap();
    (folder, path)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus/dcp")).join(name)
}

#[test]
fn a_path_and_the_folder_of_one_file_open() {
    let (folder, path) = folder();
    assert_eq!(values(&open(&path).unwrap()), [1.0, 2.0]);
    assert_eq!(values(&open(folder.path()).unwrap()), [1.0, 2.0]);
    // Its bytes decide the kind, and its extension does if they fit none.
    let misnamed = folder.path().join("model.safetensors");
    fs::rename(&path, &misnamed).unwrap();
    assert_eq!(open(&misnamed).unwrap().kind(), ZT);
    fs::write(&misnamed, "\0\u{1}").unwrap();
    assert_eq!(open(&misnamed).unwrap_err().code(), "truncated");
    fs::write(&path, model(&[3.0])).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert_eq!(error.code(), "misuse");
    assert!(error.message().contains("model.safetensors, model.zt"), "{error}");
    assert_eq!(open(folder.path().join("none.zt")).unwrap_err().code(), "io");
}

#[test]
fn the_folder_of_a_checkpoint_opens_as_whole_tensors() {
    let file = open(corpus("rows")).unwrap();
    assert_eq!(file.kind().as_str(), "dcp");
    let metadata = open(corpus("rows/.metadata")).unwrap();
    assert!(!file.is_empty() && file.names().eq(metadata.names()));
}

/// The file of one process: half of the rows of `w`, and all of another tensor, of 2 MiB each.
fn slice(name: &str, row: u64, value: u8) -> Vec<u8> {
    let info = format!(
        r#"{{\"w\": {{\"saved_offsets\": [{row}, 0]}}, \"{name}\": {{\"saved_offsets\": [0]}}}}"#
    );
    let header = format!(
        r#"{{"__metadata__":{{"DCP_VERSION":"1.0","DCP_SHARDING_INFO":"{info}"}},"w":{{"dtype":"U8","shape":[1,2097152],"data_offsets":[0,2097152]}},"{name}":{{"dtype":"U8","shape":[2097152],"data_offsets":[2097152,4194304]}}}}"#
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + (4 << 20), value);
    bytes
}

fn sealed(folder: &Path) -> Seal {
    let kinds = Kinds::builtin();
    let contents = Contents::of_folder(&kinds, folder, None).unwrap();
    let files = Files::local(folder);
    seal(&kinds, &files, &contents, &SealOptions::new()).unwrap().seal
}

#[test]
fn a_folder_of_slices_is_compared_with_its_seal_as_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [(1u8, "a"), (2, "b")].map(|(no, name)| {
        let path = folder.path().join(format!("shard-0000{no}-model-00001-of-00001.safetensors"));
        fs::write(&path, slice(name, u64::from(no) - 1, no)).unwrap();
        path
    });
    // Neither hides the slices, with and without a seal.
    fs::write(folder.path().join("other.zt"), model(&[1.0])).unwrap();
    let options = LocationOptions::new().seal(sealed(folder.path()));
    let read = || Location::new(folder.path()).open(&options);
    let whole = read().unwrap().into_file();
    let plain = open(folder.path()).unwrap();
    assert!(whole.names().eq(plain.names()) && whole.len() == 3);
    for name in plain.names() {
        let [read, expected] = [&whole, &plain]
            .map(|file| file.tensor(name).unwrap().values::<u8>().unwrap().to_vec());
        assert!(read == expected, "{name}");
    }
    // In the rows of `w` that the second file has.
    let mut damaged = fs::read(&second).unwrap();
    damaged[(1 << 20) + 500_000] ^= 1;
    fs::write(&second, &damaged).unwrap();
    let file = read().unwrap().into_file();
    let values = |name: &str| file.tensor(name).unwrap().values::<u8>().map(|it| it.len());
    assert_eq!(values("a").unwrap(), 2 << 20);
    assert_eq!(values("b").unwrap(), 2 << 20);
    let error = values("w").unwrap_err();
    assert_eq!((error.code(), error.object()), ("seal-mismatch", Some("w")));
    let text = "leaf 1 of shard-00002-model-00001-of-00001.safetensors: \
                bytes 1048576..2097152 differ from the seal, in w";
    assert!(error.message().contains(text), "{error}");
    // The seal, and not the folder, says what the model is.
    fs::copy(&first, folder.path().join("shard-00003.safetensors")).unwrap();
    read().unwrap();
    assert_eq!(open(folder.path()).unwrap().tensor("w").unwrap_err().code(), "overlap");
    fs::remove_file(&first).unwrap();
    assert_eq!(read().unwrap_err().code(), "seal-mismatch");
}

#[test]
fn the_checkpoint_of_a_folder_is_compared_with_its_seal() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".metadata", "__0_0.distcp", "__1_0.distcp"] {
        fs::copy(corpus("rows").join(name), folder.path().join(name)).unwrap();
    }
    let options = LocationOptions::new().seal(sealed(folder.path()));
    let read = || Location::new(folder.path()).open(&options);
    let file = read().unwrap();
    let name = file.file().names().next().unwrap().to_owned();
    file.file().tensor(&name).unwrap().values::<f32>().unwrap();
    let data = folder.path().join("__0_0.distcp");
    let mut damaged = fs::read(&data).unwrap();
    damaged[100] ^= 1;
    fs::write(&data, damaged).unwrap();
    let file = read().unwrap();
    let error = file.file().tensor(&name).unwrap().values::<f32>().unwrap_err();
    assert_eq!((error.code(), error.object()), ("seal-mismatch", Some(&*name)));
}

#[test]
fn a_location_is_shown_without_secrets() {
    for (typed, shown, is_url) in [
        ("model.zt", "model.zt", false),
        ("C:/model.zt", "C:/model.zt", false),
        ("-", "-", false),
        ("hf://owner/repository/model.zt", "hf://owner/repository/model.zt", true),
        ("https://user:word@host/m.zt?sig=Zm9v", "https://…@host/m.zt?…", true),
    ] {
        let location = Location::new(typed);
        assert_eq!((location.to_string().as_str(), location.is_url()), (shown, is_url));
        assert_eq!(location.path(), Path::new(shown));
        assert_eq!(format!("{location:?}"), format!("Location({shown:?})"));
        assert_eq!(location.is_stdin(), typed == "-");
    }
    let [a, b] =
        ["a", "b"].map(|key| Location::url(format!("https://host/m?{key}"), "https://host/m?…"));
    assert!(a != b && a.path() == b.path());
}

#[test]
fn a_delta_opens_as_what_it_makes_of_the_base() {
    let (folder, path) = folder();
    let of = |values: &[f32]| Input::from(File::from_bytes(model(values)).unwrap());
    let steps = [of(&[1.0, 2.0]), of(&[1.0, 5.0]), of(&[7.0, 5.0])];
    let deltas: Vec<PathBuf> = (0..2).map(|at| folder.path().join(format!("{at}.zt"))).collect();
    for (at, path) in deltas.iter().enumerate() {
        let mut bytes = Vec::new();
        delta(&steps[at], &steps[at + 1], &mut bytes, None).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for check in [Check::Read, Check::Whole] {
        let base = [&path, &deltas[0]].map(Location::new);
        let options = LocationOptions::new().base(base).check(check);
        let last = Location::new(&deltas[1]).open(&options).unwrap();
        assert_eq!(values(last.file()), [7.0, 5.0]);
        // A file that is no delta needs no base.
        let other = Location::new(&path).open(&options).unwrap();
        assert_eq!(values(other.file()), [1.0, 2.0]);
        // The second delta does not follow the base.
        let options = LocationOptions::new().base([Location::new(&path)]).check(Check::Whole);
        let error = Location::new(&deltas[1]).open(&options).unwrap_err();
        assert_eq!(error.code(), "wrong-base");
    }
}

#[test]
fn options_hold_for_the_file() {
    let (_folder, path) = folder();
    let options =
        LocationOptions::new().input(InputOptions::from(OpenOptions::new()).kind(SAFETENSORS));
    let error = Location::new(&path).open(&options).unwrap_err();
    assert!(matches!(error.code(), "header" | "truncated"), "{error}");
}

#[test]
fn a_dash_is_stdin_which_is_read_once() {
    const CHILD: &str = "ZT_MODEL_READS_STDIN";
    if std::env::var_os(CHILD).is_some() {
        let input = Location::new("-").open(&LocationOptions::new()).unwrap();
        assert_eq!(values(input.file()), [1.0, 2.0]);
        assert_eq!(input.path(), Some(Path::new("-")));
        assert_eq!(open("-").unwrap_err().code(), "misuse");
        return;
    }
    let (_folder, path) = folder();
    let run = |stdin: Stdio| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_dash_is_stdin_which_is_read_once"]).env(CHILD, "1").stdin(stdin);
        child.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut child = run(fs::File::open(&path).unwrap().into());
    assert!(child.wait().unwrap().success(), "a file");
    let mut child = run(Stdio::piped());
    let mut pipe = child.stdin.take().unwrap();
    std::io::copy(&mut fs::File::open(&path).unwrap(), &mut pipe).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success(), "a pipe");
}

#[test]
fn a_file_is_written_where_a_path_says() {
    let (folder, path) = folder();
    let inputs = [Location::new(&path).open(&LocationOptions::new()).unwrap()];
    let out = folder.path().join("out.safetensors");
    let write = |out: &Path| {
        let convert = ConvertOptions::new(SAFETENSORS);
        Location::new(out).convert(&inputs, &convert, &LocationOptions::new())
    };
    assert_eq!(write(&out).unwrap().objects, 1);
    assert_eq!(values(&open(&out).unwrap()), [1.0, 2.0]);
    assert_eq!(write(&out).unwrap_err().code(), "overwrite");
    assert_eq!(write(&path).unwrap_err().code(), "overwrite");
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_stores_refuses_every_url() {
    let error = open("s3://bucket/model.zt").unwrap_err();
    assert_eq!(error.code(), "unsupported");
    assert!(error.message().contains("the feature `remote`"), "{error}");
    let location = Location::new("s3://bucket/model.zt");
    let options = LocationOptions::new();
    assert_eq!(location.read(1, &options).unwrap_err().code(), "unsupported");
    let written = location.convert(&[], &ConvertOptions::new(ZT), &options);
    assert_eq!(written.unwrap_err().code(), "unsupported");
}

#[cfg(feature = "remote")]
mod remote {
    use zt_convert::SplitOptions;
    use zt_remote::RemoteOptions;

    use super::server::Server;
    use super::*;

    fn stores() -> LocationOptions<'static> {
        LocationOptions::new().remote(RemoteOptions::new().allow_http(true))
    }

    #[test]
    fn a_url_opens_with_one_request_of_the_end_that_its_kind_needs() {
        let server = Server::with("model.zt", model(&[1.0, 2.0]));
        server.put("model.safetensors", super::safetensors());
        for (name, range) in
            [("model.zt", "bytes=-262144"), ("model.safetensors", "bytes=0-262143")]
        {
            let before = server.requests().len();
            let input = Location::new(server.url(name)).open(&stores()).unwrap();
            assert_eq!(values(input.file()), [1.0, 2.0]);
            assert_eq!(server.requests()[before..], [range]);
            assert_eq!(input.path(), Some(Path::new(&server.url(name))));
        }
    }

    #[test]
    fn the_kind_behind_the_extension_of_a_url_says_what_is_wrong() {
        let server = Server::with("model.zt", b"\0\x01".to_vec());
        let location = Location::new(format!("{}?key=secret", server.url("model.zt")));
        let error = location.open(&stores()).unwrap_err();
        assert_eq!((error.code(), error.path()), ("not-zt", Some(location.path())));
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }

    #[test]
    fn the_folder_of_a_checkpoint_opens_by_its_url() {
        let folder = corpus("rows").canonicalize().unwrap();
        let file = open(format!("file://{}", folder.display())).unwrap();
        assert_eq!(file.kind().as_str(), "dcp");
    }

    #[test]
    fn a_file_and_a_set_are_written_to_a_store() {
        let (folder, path) = folder();
        let inputs = [Location::new(&path).open(&stores()).unwrap()];
        let url = |name: &str| format!("file://{}/{name}", folder.path().display());
        let out = Location::new(url("out.zt"));
        let convert = ConvertOptions::new(ZT);
        out.convert(&inputs, &convert, &stores()).unwrap();
        assert_eq!(values(&open(url("out.zt")).unwrap()), [1.0, 2.0]);
        let again = out.convert(&inputs, &convert, &stores()).unwrap_err();
        assert_eq!(again.code(), "overwrite");
        // An input is never replaced.
        let same = [out.open(&stores()).unwrap()];
        let replaced = out.convert(&same, &convert.clone().overwrite(true), &stores());
        assert_eq!(replaced.unwrap_err().code(), "overwrite");
        let set = Location::new(url("set"));
        let split = set.split(&inputs, &SplitOptions::new(convert), &stores()).unwrap();
        assert_eq!(values(&open(&split.shards[0].path).unwrap()), [1.0, 2.0]);
        let bytes = Location::new(&split.shards[0].path).read(1 << 20, &stores()).unwrap();
        assert_eq!(bytes.len() as u64, split.shards[0].byte_len);
    }
}

#[cfg(feature = "remote")]
fn safetensors() -> Vec<u8> {
    let input = Input::from(File::from_bytes(model(&[1.0, 2.0])).unwrap());
    let mut bytes = Vec::new();
    zt_convert::Kinds::builtin()
        .convert(&[input], &mut bytes, &ConvertOptions::new(SAFETENSORS))
        .unwrap();
    bytes
}
