//! What Python would run of a pickle. The streams hide a harmless call in the ways that scanners were reported
//! to miss.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

use zt_pickle::{NoGlobal, begins, load, uses};

/// Each use as `!` for a danger, and its text.
fn found(bytes: &[u8]) -> Vec<String> {
    let all = uses(bytes).into_iter().map(|it| {
        let mark = if it.is_danger { "!" } else { "" };
        let text = it.to_string().replace("Python would ", "");
        format!("{mark}{}", text.replace("; nothing was run", ""))
    });
    all.collect()
}

#[test]
fn each_way_to_hide_a_call_is_named() {
    let system = "!call os.system(\"true\")";
    let nested = b"cos\nsystem\n(Vtrue\ntR.";
    let in_bytes =
        [&b"cpickle\nloads\n(C"[..], &[u8::try_from(nested.len()).unwrap()], nested, b"tR."]
            .concat();
    let behind = [&b"\x80\x02}."[..], nested].concat();
    for (bytes, expected) in [
        (&nested[..], &[system][..]),
        // The name is memoized, and the value is dropped.
        (
            b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940\x30h\0h\x01\x93\x8c\x04true\x85R0}.",
            &[system],
        ),
        // INST and OBJ.
        (b"(Vtrue\nios\nsystem\n.", &[system]),
        (b"(cos\nsystem\nVtrue\no.", &[system]),
        // A chain of getattr.
        (
            b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n(Vos\ntRVsystem\ntR(Vtrue\ntR.",
            &[
                "!call builtins.getattr(builtins.__import__(\"os\"), \"system\")",
                "!call builtins.__import__(\"os\")",
            ],
        ),
        // A global by its number.
        (b"\x82\x05(Vtrue\ntR.", &["!call copyreg._inverted_registry[5](\"true\")"]),
        // Behind the first stream.
        (&behind, &[system]),
        // Before the stream breaks.
        (b"cos\nsystem\n(Vtrue\ntR\xff", &[system]),
        // A pickle in a pickle.
        (&in_bytes, &["!call pickle.loads(b\"cos\\nsystem\\n(Vtrue\\ntR.\")", system]),
        // Another module that imports the module, and a path of attributes.
        (
            b"ctorch.serialization\nos.system\n(Vtrue\ntR.",
            &["!call torch.serialization.os.system(\"true\")"],
        ),
        (b"ccollections\nabc.sys\n.", &["!import collections.abc.sys"]),
        // Modules that few lists have.
        (b"c_io\nFileIO\n(Vx\ntR.", &["!call _io.FileIO(\"x\")"]),
        (b"clinecache\ngetline\n(Vx\nI1\ntR.", &["!call linecache.getline(\"x\", 1)"]),
        (
            b"cfunctools\npartial\n(cos\nsystem\ntR.",
            &["!call functools.partial(os.system)", "!import os.system"],
        ),
        // A class of the user, called and only named.
        (b"cmodel\nNet\n(Vx\ntR.", &["call model.Net(\"x\")"]),
        (b"}cmodel\nNet\nNs.", &["import model.Net"]),
    ] {
        let mut found = found(bytes);
        let mut expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_tensors_need_is_harmless() {
    for global in [
        "collections\nOrderedDict",
        "torch._utils\n_rebuild_tensor_v2",
        "torch\nFloatStorage",
        "torch\nbfloat16",
        "numpy._core.multiarray\n_reconstruct",
        "numpy\ndtype",
        "_codecs\nencode",
        "__builtin__\nset",
        "copy_reg\n_reconstructor",
        "torch.distributed.checkpoint.metadata\nMetadata",
    ] {
        assert_eq!(found(format!("}}c{global}\nNs.").as_bytes()), [""; 0], "{global}");
    }
    // The whole name counts.
    assert_eq!(
        found(b"}ctorch._utils\n_rebuild_x.os\nNs."),
        ["!import torch._utils._rebuild_x.os"]
    );
}

#[test]
fn names_and_arguments_are_short_and_safe_for_a_terminal() {
    let long = "y".repeat(5000);
    let pickle = format!("cos\nsystem\n(V\\u001b[2J{long}\ntR.");
    let found = uses(pickle.as_bytes());
    let text = found.first().unwrap().to_string();
    assert!(text.contains("\\u{1b}[2Jyyy") && text.len() < 250, "{text}");
    assert!(text.chars().all(|it| !it.is_control()), "{text}");
}

#[test]
fn an_error_says_what_was_called_before_it() {
    let error = load(b"cos\nsystem\n(Vtrue\ntR\xff", |_, _, _| None::<NoGlobal>).unwrap_err();
    assert_eq!(error.uses.len(), 1);
    assert!(error.to_string().contains("os.system(\"true\")"), "{error}");
}

/// A caller looks at the first byte, and reads no more of other files.
#[test]
fn the_first_instruction_needs_no_values() {
    // Its operand is a short text, a number or a length.
    let operands = [&b"1\n"[..], b"''\n", b"\x01\0\0\0\0\0\0\0 ", b"a\nb\n", &[0; 9]];
    for first in 0..=u8::MAX {
        let is_done = |operand: &&[u8]| {
            let bytes = [&[first], *operand].concat();
            let loaded = load(&bytes, |_, _, _| None::<NoGlobal>);
            loaded.is_err_and(|error| error.at > 0)
        };
        assert_eq!(operands.iter().any(is_done), begins(first), "{first:#x}");
    }
}
