//! `zt stats`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use common::zt;
use serde_json::Value;

/// A model with odd tensors, and what NumPy says of its values: `conformance/data/stats.py`.
fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data").join(name)
}

fn is_near(ours: &Value, numpys: &Value) -> bool {
    match (ours.as_f64(), numpys.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-6),
        _ => ours == numpys,
    }
}

#[test]
fn figures_are_numpys() {
    let truth: Value = serde_json::from_slice(&std::fs::read(data("stats.json")).unwrap()).unwrap();
    let model = data("stats.safetensors");
    let folder = tempfile::tempdir().unwrap();
    let planes = folder.path().join("planes.zt");
    let run = zt(["convert".as_ref(), "--planes".as_ref(), model.as_os_str(), planes.as_os_str()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for path in [&model, &planes] {
        for jobs in ["1", "3"] {
            let run = zt([
                "stats".as_ref(),
                "--json".as_ref(),
                "-j".as_ref(),
                jobs.as_ref(),
                path.as_os_str(),
            ]);
            assert_eq!(run.code, Some(0), "{}", run.err);
            let document: Value = serde_json::from_slice(&run.out).unwrap();
            let objects = document["objects"].as_array().unwrap();
            assert_eq!(objects.len(), truth.as_object().unwrap().len());
            for object in objects {
                let name = object["name"].as_str().unwrap();
                for (key, value) in truth[name].as_object().unwrap() {
                    assert!(
                        is_near(&object[key], value),
                        "{name} {key}: {} and {value}",
                        object[key]
                    );
                }
            }
        }
    }
}

#[test]
fn problems_are_what_is_odd() {
    let model = data("stats.safetensors");
    let run = zt(["stats".as_ref(), "--problems".as_ref(), "--json".as_ref(), model.as_os_str()]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let document: Value = serde_json::from_slice(&run.out).unwrap();
    let found: Vec<String> = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| format!("{} {}", object["name"], object["problems"]))
        .collect();
    let [unlike, rest @ ..] = &found[..] else { panic!("{found:?}") };
    assert!(unlike.starts_with(r#""layers.3.w" ["deviation "#), "{unlike}");
    assert_eq!(
        rest,
        [
            r#""odd" ["1 NaN","1 infinity"]"#,
            r#""dead" ["1 row of zeros","1 column of zeros"]"#,
            r#""zero" ["all zero"]"#,
            r#""ones" ["constant"]"#,
        ]
    );
    let sound = ["stats", "--problems", "--include", "layers.[0-2].*"].map(AsRef::as_ref);
    let run = zt(sound.into_iter().chain([model.as_os_str()]));
    assert_eq!((run.code, &*run.out), (Some(0), &b"3 objects, 0 with problems\n"[..]));
}

#[test]
fn rows_are_sorted_cut_and_summed_up() {
    let model = data("stats.safetensors");
    let lines = |options: &[&str]| {
        let options = options.iter().map(AsRef::as_ref);
        let run = zt(["stats".as_ref()].into_iter().chain(options).chain([model.as_os_str()]));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let text = String::from_utf8(run.out).unwrap();
        let first = text.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
        first.collect::<Vec<_>>()
    };
    assert_eq!(lines(&["--sort", "zeros", "--top", "2"]), ["NAME", "zero", "dead", "12"]);
    assert_eq!(lines(&["--sort", "max", "--top", "1"]), ["NAME", "step", "12"]);
    let tree = lines(&["--tree", "--depth", "1", "--include", "layers.*"]);
    assert_eq!(tree, ["NAME", "layers", "5"]);
}

/// A checkpoint of a training has states that are zero or far from each other, counters, and norms of ones.
#[test]
fn a_checkpoint_of_a_training_has_no_problems_but_a_type() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("checkpoint.zt");
    let mut writer = zt::Writer::create(&path).unwrap();
    let mut add = |name: &str, shape: &[u64], values: &[f32]| {
        writer.add(name, &zt::Dense::from_slice(shape, values).unwrap()).unwrap();
    };
    // Names of a sequence of PyTorch, of Keras, of DCP, of Adafactor and of optax.
    add("model.1.weight", &[4], &[1.0; 4]);
    add("bn/vars/0", &[4], &[1.0; 4]);
    add("optim.state.0.sum", &[2, 2], &[0.0; 4]);
    add("state.0.exp_avg_sq_row", &[4], &[0.0; 4]);
    add("opt_state.0.mu", &[2, 2], &[0.0; 4]);
    add("head.queue_buffer", &[2, 2], &[0.0; 4]);
    add("state.0.moment1", &[2, 2], &[0.0; 4]);
    for at in 0..5u8 {
        let scale = 10f32.powi(i32::from(at) * 2);
        let state = [scale, 0.0, -scale, 0.0];
        add(&format!("optimizer.state.{at}.exp_avg"), &[2, 2], &state);
        add(&format!("optimizer.state.{at}.exp_avg_sq"), &[2, 2], &[0.0; 4]);
        add(&format!("model.layers.{at}.norm.weight"), &[4], &[1.0; 4]);
        add(&format!("model.layers.{at}.norm.bias"), &[4], &[0.0; 4]);
        add(&format!("model.layers.{at}.w"), &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    }
    let wide = [1.0f64, 2.0, 3.0, 4.0];
    writer.add("model.layers.5.w", &zt::Dense::from_slice(&[2, 2], &wide).unwrap()).unwrap();
    writer.add("tokens_seen", &zt::Dense::from_slice(&[8], &[0i64; 8]).unwrap()).unwrap();
    writer.finish().unwrap();
    let problems = |option: &str| {
        let run = zt(["stats".as_ref(), option.as_ref(), path.as_os_str()]);
        (run.code, String::from_utf8(run.out).unwrap())
    };
    let (code, text) = problems("--problems");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("another type than similar tensors"), "{text}");
    assert!(text.ends_with("34 objects, 1 with problems\n"), "{text}");
    for quiet in ["--problems=nan,inf,dead", "--problems=outlier"] {
        assert_eq!(problems(quiet).0, Some(0), "{quiet}");
    }
    assert_eq!(problems("--problems=type").0, Some(1));
    assert_eq!(problems("--problems=odd").0, Some(2));
}
