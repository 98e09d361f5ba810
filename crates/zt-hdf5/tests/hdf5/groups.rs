//! Links, and the groups of older files.

use zt::{ErrorKind, File, Value};

use crate::draft::{
    ATTRIBUTE, DATASPACE, DATATYPE, Draft, LAYOUT, LINK, Message, SYMBOL_TABLE, UNDEFINED, beside,
    bytes, code, dataspace, datatype, int, link, message, opened,
};

/// A dataset as a target: one `u8`, 7.
pub(crate) fn target(draft: &mut Draft) -> u64 {
    let messages = draft.dataset(int(1, 0), &[1], &[7]);
    draft.object(&messages)
}

pub(crate) fn value(file: &File, name: &str) -> u8 {
    file.tensor(name).unwrap().to_vec::<u8>().unwrap()[0]
}

#[test]
fn links_of_every_form_are_read() {
    let group = |head: &[u8], name: &[u8], behind: &[u8]| {
        beside(|draft| {
            let target = target(draft);
            let body = [head, name, &bytes!(target), behind].concat();
            vec![message(LINK, body)]
        })
    };
    // With the order of creation and the character set, and with a length of two bytes.
    let ordered = bytes!(1u8, 0x14u8, 5u64, 1u8, 1u8);
    assert_eq!(value(&group(&ordered, b"t", &[]), "x/t"), 7);
    assert_eq!(value(&group(&[1, 1, 1, 0], b"t", &[]), "x/t"), 7);
    assert_eq!(code(&group(&[2, 0, 1], b"t", &[]), "x"), "version");
    // A name beyond the message, and an empty one.
    assert_eq!(code(&group(&[1, 0, 200], b"t", &[]), "x"), "header");
    let nameless = group(&[1, 0, 0], b"", &[]);
    let twice = beside(|draft| vec![link("t", target(draft)), link("t", target(draft))]);
    assert_eq!(code(&nameless, "x"), "header");
    assert_eq!(code(&twice, "x"), "header");
    let error = twice.tensor("x").unwrap_err().to_string();
    assert!(error.contains("\"t\""), "{error}");
}

/// The warning about a dataset names the object. A group is not an object.
#[test]
fn names_that_are_not_utf_8_get_a_warning() {
    let named = |name: &[u8], address: u64| {
        let body = [&[1, 0, name.len() as u8], name, &bytes!(address)].concat();
        message(LINK, body)
    };
    let mut draft = Draft::new();
    let dataset = target(&mut draft);
    let group = draft.object(&[link("t", dataset)]);
    let file = opened(draft.finish(&[named(b"d\xE9", dataset), named(b"g\xE9", group)])).unwrap();
    assert_eq!(value(&file, "d\\xE9"), 7);
    assert_eq!(value(&file, "g\\xE9/t"), 7);
    let warnings = file.warnings();
    assert_eq!(warnings.len(), 2);
    for (warning, name, object) in
        [(&warnings[0], "d\\xE9", Some("d\\xE9")), (&warnings[1], "g\\xE9", None)]
    {
        assert_eq!((warning.code, warning.object.as_deref()), ("name", object));
        let name = format!("\"{name}\"");
        assert!(warning.message.contains(&name), "{warning:?}");
    }
}

#[test]
fn a_group_that_contains_itself_is_listed_once() {
    let mut draft = Draft::new();
    let tensor = target(&mut draft);
    let here = draft.put(b"");
    let group = draft.object(&[link("itself", here), link("t", tensor)]);
    assert_eq!(group, here);
    let file = opened(draft.finish(&[link("g", group)])).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["g/t"]);
}

/// A link of a few bytes would copy all attributes.
#[test]
fn copies_of_attributes_are_limited_by_the_length_of_the_file() {
    const LEN: u16 = 60_000;
    let text = datatype(1, 3, 0, LEN.into(), &[]);
    let head = bytes!(3u8, 0u8, 2u16, text.len() as u16, 8u16, 0u8);
    let letters = vec![b'x'; LEN.into()];
    let body = [&head[..], b"a\0", &text, &dataspace(&[]), &letters].concat();
    let mut draft = Draft::new();
    let mut messages = draft.dataset(int(1, 0), &[1], &[7]);
    messages.push(message(ATTRIBUTE, body));
    let dataset = draft.object(&messages);
    let links: Vec<_> = (100..180).map(|number| link(&number.to_string(), dataset)).collect();
    let file = opened(draft.finish(&links)).unwrap();
    assert_eq!(value(&file, "100"), 7);
    assert_eq!(value(&file, "110"), 7);
    assert_eq!(code(&file, "179"), "structure-limit");
}

/// A broken group is read once, however many links lead to it or through it.
#[test]
fn a_broken_group_is_not_read_again() {
    let soft = |name: &str| {
        let head = [&[1, 8, 1, name.len() as u8], name.as_bytes()].concat();
        message(LINK, [&head[..], &bytes!(3u16), b"b/x"].concat())
    };
    for is_soft in [false, true] {
        let mut draft = Draft::new();
        let broken = draft.object(&[message(0, vec![0u8; 4000]), message(LINK, [9, 9, 9])]);
        let names: Vec<String> = (10..40).map(|number| number.to_string()).collect();
        let mut links: Vec<_> = names
            .iter()
            .map(|name| match is_soft {
                true => soft(name),
                false => link(name, broken),
            })
            .collect();
        links.push(link("b", broken));
        let file = opened(draft.finish(&links)).unwrap();
        for name in &names {
            assert_eq!(code(&file, name), "version");
        }
    }
}

#[test]
fn groups_nest_no_deeper_than_the_limit() {
    let mut draft = Draft::new();
    let mut inner = target(&mut draft);
    let mut names = vec!["t".to_owned()];
    for _ in 0..64 {
        inner = draft.object(&[link(&names[0], inner)]);
        names.insert(0, "g".to_owned());
    }
    let file = opened(draft.finish(&[link("g", inner)])).unwrap();
    let listed: Vec<&str> = file.names().collect();
    assert_eq!(listed, [vec!["g"; 64].join("/")]);
    let error = file.tensor(listed[0]).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "structure-limit"));
}

#[test]
fn soft_links_lead_through_groups_only() {
    let soft = |name: &str, path: &str| {
        let len = u8::try_from(name.len()).unwrap();
        let path_len = u16::try_from(path.len()).unwrap();
        let head = [&[1, 8, 1, len], name.as_bytes()].concat();
        message(LINK, [&*head, &bytes!(path_len), path.as_bytes()].concat())
    };
    let mut draft = Draft::new();
    let tensor = target(&mut draft);
    let broken = draft.object(&[message(LINK, [9, 9, 9])]);
    let root = [
        soft("through", "t/x"),
        soft("broken_through", "b/x"),
        soft("to", "./t"),
        link("t", tensor),
        link("b", broken),
    ];
    let file = opened(draft.finish(&root)).unwrap();
    assert_eq!(value(&file, "to"), 7);
    assert!(file.get("through").is_none());
    assert_eq!(file.warnings()[0].code, "dangling-link");
    assert_eq!(code(&file, "broken_through"), "version");
    assert_eq!(code(&file, "b"), "version");
}

/// Each link to a dataset is a tensor with all of its attributes.
#[test]
fn links_to_a_dataset_share_its_values_and_its_attributes() {
    let scale = bytes!(3u8, 0u8, 2u16, 12u16, 8u16, 0u8);
    let scale = [&*scale, b"s\0", &int(4, 8), &dataspace(&[])[..8], &bytes!(5i32)].concat();
    let mut draft = Draft::new();
    let mut messages = draft.dataset(int(1, 0), &[1], &[7]);
    messages.push(message(ATTRIBUTE, scale));
    let dataset = draft.object(&messages);
    let file = opened(draft.finish(&[link("a", dataset), link("b", dataset)])).unwrap();
    for name in ["a", "b"] {
        assert_eq!(value(&file, name), 7);
        let attributes = file.tensor(name).unwrap().attributes().clone();
        assert_eq!(attributes.get("s"), Some(&Value::Unsigned(5)));
    }
}

/// An old group: the versions of its heap and of its node, and whether its one name has a target.
fn symbols(heap: u8, node: u8, leads: bool) -> File {
    beside(|draft| {
        let target = if leads { target(draft) } else { UNDEFINED };
        let entry = bytes!(8u64, target, 0u32, 0u32, 0u128);
        old_group(draft, [heap, node], b"\0\0\0\0\0\0\0\0t\0", &[entry])
    })
}

/// An old group with those versions: its heap of names and its one node.
fn old_group(
    draft: &mut Draft,
    [heap, node]: [u8; 2],
    names: &[u8],
    entries: &[Vec<u8>],
) -> Vec<Message> {
    let (len, count) = (names.len() as u64, entries.len() as u16);
    let names = draft.put(names);
    let head = bytes!(heap, 0u8, 0u16, len, UNDEFINED, names);
    let heap = draft.put([b"HEAP", &*head].concat());
    let head = bytes!(node, 0u8, count);
    let node = draft.put([b"SNOD", &*head, &entries.concat()].concat());
    let tree = bytes!(0u8, 0u8, 1u16, UNDEFINED, UNDEFINED, 0u64, node, 8u64);
    let tree = draft.put([b"TREE", &*tree].concat());
    vec![message(SYMBOL_TABLE, bytes!(tree, heap))]
}

/// Any number of links may share one string of the heap.
#[test]
fn paths_of_older_groups_are_limited_by_the_length_of_the_file() {
    const SOFT: u32 = 2;
    let group = |path: &[u8], count: u64| {
        beside(|draft| {
            let target = target(draft);
            let texts: Vec<u8> = (b'A'..=b'Z').flat_map(|name| [name, 0]).collect();
            let names = [&texts[..], b"t\0", path, b"\0"].concat();
            let path_at = texts.len() as u32 + 2;
            let soft = |at: u64| bytes!(2 * at, UNDEFINED, SOFT, 0u32, path_at, 0u32, 0u64);
            let mut entries: Vec<_> = (0..count).map(soft).collect();
            entries.push(bytes!(texts.len() as u64, target, 0u32, 0u32, 0u128));
            old_group(draft, [0, 1], &names, &entries)
        })
    };
    assert_eq!(value(&group(b"t", 26), "x/Z"), 7);
    assert_eq!(code(&group(&[b'p'; 4000], 26), "x"), "structure-limit");
}

#[test]
fn structures_of_older_groups_have_versions() {
    assert_eq!(value(&symbols(0, 1, true), "x/t"), 7);
    for (heap, node, leads, expected) in
        [(1, 1, true, "version"), (0, 2, true, "version"), (0, 1, false, "header")]
    {
        assert_eq!(code(&symbols(heap, node, leads), "x"), expected);
    }
}

/// A file with addresses and lengths of so many bytes. An old group has one dataset, `t`, with the second
/// string of a heap as its attribute.
fn of_sizes(offset: usize, length: usize) -> Vec<u8> {
    const ROOT: u64 = 256;
    const TREE: u64 = 512;
    const HEAP: u64 = 768;
    const NAMES: u64 = 1024;
    const NODE: u64 = 1280;
    const DATASET: u64 = 1536;
    const TEXTS: u64 = 2048;
    const VALUES: u64 = 2304;
    const END: u64 = 2560;
    let address = |number: u64| number.to_le_bytes()[..offset].to_vec();
    let len = |number: u64| number.to_le_bytes()[..length].to_vec();
    let none = vec![0xFF; offset];
    let entry = |name: u64, to: u64| [len(name), address(to), vec![0; 4 + 4 + 16]].concat();
    let padded = |mut bytes: Vec<u8>| {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let object = |messages: &[(u16, Vec<u8>)]| {
        let message = |(kind, body): &(u16, Vec<u8>)| {
            let body = padded(body.clone());
            let len = u16::try_from(body.len()).unwrap();
            [bytes!(*kind, len, 0u32), body].concat()
        };
        let all: Vec<u8> = messages.iter().flat_map(message).collect();
        let count = u16::try_from(messages.len()).unwrap();
        let len = u32::try_from(all.len()).unwrap();
        [bytes!(1u8, 0u8, count, 1u32, len, 0u32), all].concat()
    };
    let superblock = [
        b"\x89HDF\r\n\x1a\n\0\0\0\0\0".to_vec(),
        [&[offset as u8, length as u8][..], &bytes!(0u8, 4u16, 16u16, 0u32)].concat(),
        [address(0), none.clone(), address(END), none.clone()].concat(),
        entry(0, ROOT),
    ];
    let tree = [&b"TREE\0\0\x01\0"[..], &none, &none, &len(0), &address(NODE), &len(8)];
    let heap = [&b"HEAP\0\0\0\0"[..], &len(16), &len(0), &address(NAMES)];
    let text = datatype(1, 9, 1, 8 + offset as u32, &int(1, 0));
    let shape = [bytes!(1u8, 1u8, 0u8, 0u8, 0u32), len(1)].concat();
    let scalar = bytes!(1u8, 0u8, 0u16, 0u32);
    let attribute = [
        bytes!(3u8, 0u8, 2u16, text.len() as u16, scalar.len() as u16, 0u8),
        [b"s\0", &text[..], &scalar].concat(),
        [bytes!(3u32), address(TEXTS), bytes!(2u32)].concat(),
    ];
    let dataset = object(&[
        (DATASPACE, shape),
        (DATATYPE, int(1, 0)),
        (LAYOUT, [vec![3, 1], address(VALUES), len(1)].concat()),
        (ATTRIBUTE, attribute.concat()),
    ]);
    let held = |index: u16, text: &[u8]| {
        let head = padded([bytes!(index, 1u16, 0u32), len(text.len() as u64)].concat());
        [head, padded(text.to_vec())].concat()
    };
    let texts = [held(1, b"first text"), held(2, b"abc")].concat();
    let head_len = (8 + length).next_multiple_of(8);
    let all = len((head_len + texts.len()) as u64);
    let texts = [padded([b"GCOL\x01\0\0\0", &all[..]].concat()), texts].concat();
    let mut file = vec![0; END as usize];
    for (at, bytes) in [
        (0, superblock.concat()),
        (ROOT, object(&[(SYMBOL_TABLE, [address(TREE), address(HEAP)].concat())])),
        (TREE, tree.concat()),
        (HEAP, heap.concat()),
        (NAMES, b"\0\0\0\0\0\0\0\0t".to_vec()),
        (NODE, [b"SNOD\x01\0\x01\0", &entry(8, DATASET)[..]].concat()),
        (DATASET, dataset),
        (TEXTS, texts),
        (VALUES, vec![7]),
    ] {
        let at = at as usize;
        file[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    file
}

#[test]
fn addresses_and_lengths_of_sixteen_bytes_are_refused() {
    for at in [13, 14] {
        let mut bytes = of_sizes(8, 8);
        bytes[at] = 16;
        assert_eq!(opened(bytes).unwrap_err().code(), "header");
    }
}

#[test]
fn addresses_and_lengths_may_differ_in_width() {
    for offset in [2, 4, 8] {
        for length in [2, 4, 8] {
            let file = opened(of_sizes(offset, length)).unwrap();
            assert_eq!(value(&file, "t"), 7, "{offset}, {length}");
            let attributes = file.tensor("t").unwrap().attributes().clone();
            let text = attributes.get("s").and_then(Value::as_str);
            assert_eq!(text, Some("abc"), "{offset}, {length}: {:?}", file.warnings());
        }
    }
}

/// Bytes after the end are ignored; a truncated file is refused.
#[test]
fn a_file_ends_where_its_superblock_declares() {
    let whole = of_sizes(8, 8);
    let file = opened([&whole[..], &[0; 9]].concat()).unwrap();
    assert_eq!(value(&file, "t"), 7);
    let cut = whole[..whole.len() - 1].to_vec();
    let error = opened(cut).unwrap_err();
    assert_eq!(error.code(), "truncated");
    let text = error.to_string();
    assert!(text.contains("2560") && text.contains("2559"), "{text}");
}

#[test]
fn different_names_become_different_texts() {
    let names: [&[u8]; 17] = [
        b"caf\xE9",
        b"caf\xE8",
        b"caf\\xE9",
        b"caf\\x5CxE9",
        b"caf\\\xE9",
        b"caf\\x\xE9",
        b"caf\\xE\xE9",
        b"caf\xC3\xA9",
        b"caf\xC3",
        b"a/b",
        b"a\\x2Fb",
        b"a\\b",
        b"kernel:0",
        b"\\x",
        b"\\xe9",
        "é-ü".as_bytes(),
        "日本".as_bytes(),
    ];
    let mut draft = Draft::new();
    let dataset = target(&mut draft);
    let links = names.map(|name| {
        let body = [&[1, 0, name.len() as u8], name, &bytes!(dataset)].concat();
        message(LINK, body)
    });
    let file = opened(draft.finish(&links)).unwrap();
    let texts: std::collections::HashSet<&str> = file.names().collect();
    assert_eq!(texts.len(), names.len());
    for text in
        ["caf\\xE9", "caf\\x5CxE9", "a\\x2Fb", "kernel:0", "a\\b", "\\x", "\\xe9", "é-ü", "日本"]
    {
        assert!(texts.contains(text), "{text} of {texts:?}");
    }
}
