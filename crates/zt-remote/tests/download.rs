//! Whole files: under their final name only if they are whole and right, whatever the server does.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{FAULTS, Fault, Server, is_within, options, run_within};
use zt_remote::{DownloadOptions, Downloaded, HubCache, Proof, RemoteOptions, download, list};

/// Bytes that do not repeat.
fn content(len: usize) -> Arc<Vec<u8>> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    Arc::new((0..len).map(|_| next()).collect())
}

fn sha256(bytes: &[u8]) -> String {
    let digest = zt::DigestAlgorithm::Sha256.digest(bytes).unwrap().to_string();
    digest.trim_start_matches("sha256:").to_owned()
}

fn fetch(url: &str, path: &Path, remote: &RemoteOptions) -> zt::Result<Downloaded> {
    download(url, path, &DownloadOptions::new(remote))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_fault_of_each_request_gives_the_file_or_none_and_the_next_call_goes_on() {
    let bytes = content(900 << 10);
    let options = options().part(128 << 10);
    let sound = Server::with("m.zt", Arc::clone(&bytes));
    let folder = tempfile::tempdir().unwrap();
    fetch(&sound.url("m.zt"), &folder.path().join("m.zt"), &options).unwrap();
    let requests = sound.requests().len();
    std::thread::scope(|scope| {
        for fault in FAULTS {
            let (bytes, options) = (&bytes, &options);
            scope.spawn(move || {
                for number in 0..requests {
                    let server = Server::with("m.zt", Arc::clone(bytes));
                    server.fail(number, *fault);
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("m.zt");
                    let what = format!("{fault:?} at {number}");
                    let replaces =
                        matches!(fault, Fault::Replaced | Fault::ReplacedWithoutTag | Fault::Grown);
                    match fetch(&server.url("m.zt"), &path, options) {
                        // Before the first answer, the other version is the file.
                        Ok(_) if replaces && number == 0 => continue,
                        Ok(_) => {}
                        Err(error) => {
                            let code = error.code();
                            assert!(["io", "changed"].contains(&code), "{what}: {error}");
                            assert!(!path.exists(), "{what}");
                            if replaces {
                                continue;
                            }
                            fetch(&server.url("m.zt"), &path, options).unwrap();
                        }
                    }
                    assert!(fs::read(&path).unwrap() == **bytes || replaces, "{what}");
                    assert_eq!(names(folder.path()), ["m.zt"], "{what}");
                }
            });
        }
    });
}

#[test]
fn a_call_goes_on_where_another_was_stopped_and_a_damaged_block_comes_again() {
    let bytes = content(72 << 20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.zt");
    let server = Server::with("m.zt", Arc::clone(&bytes));
    let url = server.url("m.zt");
    let stop = |after: u64| {
        let count = std::sync::atomic::AtomicU64::new(0);
        let progress = |came| match count.fetch_add(came, std::sync::atomic::Ordering::Relaxed) {
            sum if sum >= after => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        };
        let options = options();
        let options = DownloadOptions::new(&options).progress(zt::Progress::new(&progress));
        download(&url, &path, &options)
    };
    assert_eq!(stop(65 << 20).unwrap_err().code(), "interrupted");
    assert_eq!(names(folder.path()), [".m.zt.zt-list", ".m.zt.zt-part"]);
    // A block that a loss of power has left empty.
    let part = folder.path().join(".m.zt.zt-part");
    let mut partial = fs::read(&part).unwrap();
    partial[40 << 20..41 << 20].fill(0);
    fs::write(&part, partial).unwrap();
    let done = fetch(&url, &path, &options()).unwrap();
    assert_eq!(done.kept, 32 << 20);
    assert!(fs::read(&path).unwrap() == **bytes);
    assert_eq!(names(folder.path()), ["m.zt"]);
    assert_eq!(fetch(&url, &path, &options()).unwrap_err().code(), "overwrite");

    // Blocks of another version are of no use.
    fs::remove_file(&path).unwrap();
    stop(65 << 20).unwrap_err();
    let other = content(72 << 20).iter().map(|byte| !byte).collect::<Vec<u8>>();
    server.put("m.zt", other.clone());
    let done = fetch(&url, &path, &options()).unwrap();
    assert!((done.kept, fs::read(&path).unwrap()) == (0, other));
}

#[test]
fn the_list_of_sums_is_believed_and_pages_are_no_files() {
    let bytes = content(1000);
    let server = Server::with("m.zt", Arc::clone(&bytes));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.zt");
    server.put("SHA256SUMS", format!("{}  m.zt\n", sha256(&bytes)).into_bytes());
    let done = fetch(&server.url("m.zt"), &path, &options()).unwrap();
    assert_eq!(done.proof, Proof::Sums);
    fs::remove_file(&path).unwrap();
    server.put("SHA256SUMS", format!("{}  m.zt\n", sha256(b"other")).into_bytes());
    let error = fetch(&server.url("m.zt"), &path, &options()).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    server.put("page.gguf", b"  <!DOCTYPE html><title>Sign in</title>".to_vec());
    let error = fetch(&server.url("page.gguf"), &path, &options()).unwrap_err();
    assert_eq!(error.code(), "unknown-kind");
    server.put("card.html", b"<!DOCTYPE html>".to_vec());
    let blob = folder.path().join("blob");
    fetch(&server.url("card.html"), &blob, &options()).unwrap();
    fs::remove_file(&blob).unwrap();
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_index_stands_for_its_shards_and_no_name_leads_out_of_the_folder() {
    let index = |names: &[&str]| {
        let of = |(at, name): (usize, &&str)| format!("\"t{at}\": \"{name}\"");
        let map: Vec<String> = names.iter().enumerate().map(of).collect();
        format!("{{\"weight_map\": {{{}}}}}", map.join(", ")).into_bytes()
    };
    let server = Server::new();
    let url = server.url("model.safetensors.index.json");
    server.put("model.safetensors.index.json", index(&["b c", "a", "b c"]));
    let found = list(&url, &options()).unwrap().unwrap();
    let names: Vec<&str> = found.files.iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["a", "b c", "model.safetensors.index.json"]);
    assert!(found.files[1].url.ends_with("/b%20c"));
    for wrong in ["../a", "/a", "a//b", "c:d"] {
        server.put("model.safetensors.index.json", index(&[wrong]));
        assert_eq!(list(&url, &options()).unwrap_err().code(), "path", "{wrong}");
    }
    assert!(list(&server.url("m.zt"), &options()).unwrap().is_none());
    let error = list(&server.url(""), &options()).unwrap_err();
    assert_eq!(error.code(), "unsupported");
}

#[test]
fn a_repository_of_the_hub_is_listed_and_linked_as_its_cache_has_it() {
    let name = "a_repository_of_the_hub_is_listed_and_linked_as_its_cache_has_it";
    if is_within(name) {
        let cache = std::path::PathBuf::from(std::env::var_os("ZT_CACHE").unwrap());
        let found = list("hf:owner/repository", &RemoteOptions::new()).unwrap().unwrap();
        let places = HubCache::new(&cache, &found).unwrap();
        for file in &found.files {
            let blob = places.blob(file).unwrap();
            fs::create_dir_all(blob.parent().unwrap()).unwrap();
            let options = RemoteOptions::new();
            let options = DownloadOptions::new(&options).listed(file);
            let done = download(&file.url, &blob, &options).unwrap();
            assert_eq!(done.proof == Proof::Hub, file.sha256.is_some());
            places.link(file).unwrap();
        }
        places.finish().unwrap();
        return;
    }
    let weights = content(5000);
    let site = Server::with("m.safetensors", Arc::clone(&weights));
    site.put("config.json", b"{}".to_vec());
    let commit = "ab".repeat(20);
    let answer = format!(
        r#"{{"sha": "{commit}", "siblings": [
            {{"rfilename": "config.json", "size": 2, "blobId": "9e26dfeeb6e641a33dae4961196235bdb965b21b"}},
            {{"rfilename": "sub/m.safetensors", "size": 5000, "blobId": "00", "lfs": {{"sha256": "{}", "size": 5000}}}}]}}"#,
        sha256(&weights)
    );
    let hub = Server::redirecting(&site);
    hub.put("main", answer.into_bytes());
    let endpoint = format!("http://127.0.0.1:{}", hub.port);
    let cache = tempfile::tempdir().unwrap();
    let path = cache.path().to_str().unwrap();
    run_within(name, &[("HF_ENDPOINT", &*endpoint), ("ZT_CACHE", path)]);
    let folder = cache.path().join("models--owner--repository");
    let snapshot = folder.join("snapshots").join(&commit);
    assert_eq!(fs::read(snapshot.join("sub/m.safetensors")).unwrap(), **weights);
    assert_eq!(fs::read(snapshot.join("config.json")).unwrap(), b"{}");
    assert_eq!(fs::read_to_string(folder.join("refs/main")).unwrap(), commit);
    assert!(folder.join("blobs").join(sha256(&weights)).is_file());
}
