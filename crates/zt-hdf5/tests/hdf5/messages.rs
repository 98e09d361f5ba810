//! The messages of a dataset's header, valid and invalid, in each version.

use zt::OpenOptions;

use crate::draft::{
    DATASPACE, DATATYPE, Draft, FILL_VALUE, FILTERS, LAYOUT, LINK, Message, OLD_FILL_VALUE, SHARED,
    UNDEFINED, beside, bytes, bytes_beside, code, dataspace, int, link, message, opened,
    opened_with, strike_every_read,
};

/// A valid dataset of two `i32`.
fn sound(draft: &mut Draft) -> Vec<Message> {
    draft.dataset(int(4, 8), &[2], &bytes!(7i32, 8i32))
}

/// The same dataset with another message of a kind.
fn with(draft: &mut Draft, kind: u16, body: &[u8]) -> Vec<Message> {
    let mut messages = sound(draft);
    messages.retain(|message| message.kind != kind);
    messages.push(message(kind, body));
    messages
}

#[test]
fn unknown_versions_and_invalid_fields_are_refused() {
    let mut wide = dataspace(&[1; 33]);
    wide[1] = 33;
    let nowhere = [bytes!(1u8, 1u8, 9u8, 0u8, 0u32), bytes!(0u64, 2u32)].concat();
    let indexed = |rank: u8, width: u8, rest: &[u8]| [&[4, 2, 0, rank, width], rest].concat();
    for (kind, body, expected) in [
        (DATASPACE, bytes!(3u8, 1u8, 0u8, 0u8, 2u64), "version"),
        (DATASPACE, wide, "header"),
        (LAYOUT, bytes!(6u8, 1u8, 0u64, 8u64), "version"),
        (LAYOUT, bytes!(3u8, 9u8, 0u64, 8u64), "header"),
        // Virtual, which is invalid before version 4.
        (LAYOUT, bytes!(3u8, 3u8, 0u64, 0u32), "header"),
        // Mappings where no heap is, and outside the file.
        (LAYOUT, bytes!(4u8, 3u8, 0u64, 0u32), "header"),
        (LAYOUT, bytes!(4u8, 3u8, 1u64 << 40, 0u32), "bounds"),
        (LAYOUT, nowhere, "header"),
        // Fewer bytes than the shape requires, and a place outside the file.
        (LAYOUT, bytes!(3u8, 0u8, 4u16, 0u32), "shape-size-mismatch"),
        (LAYOUT, bytes!(3u8, 1u8, 0u64, 7u64), "shape-size-mismatch"),
        (LAYOUT, bytes!(3u8, 1u8, 1u64 << 40, 8u64), "bounds"),
        // The width of dimensions, and the index.
        (LAYOUT, indexed(2, 0, &[1, 4, 1]), "header"),
        (LAYOUT, indexed(2, 9, &[1, 4, 1]), "header"),
        (LAYOUT, indexed(2, 1, &[2, 4, 6]), "header"),
        // No dimensions, an empty chunk, empty elements, and another rank than the shape.
        (LAYOUT, indexed(1, 1, &bytes!(4u8, 1u8, 0u64)), "header"),
        (LAYOUT, indexed(2, 1, &bytes!(0u8, 4u8, 1u8, 0u64)), "header"),
        (LAYOUT, indexed(2, 1, &bytes!(2u8, 0u8, 1u8, 0u64)), "header"),
        (LAYOUT, indexed(3, 1, &bytes!(2u8, 2u8, 4u8, 1u8, 0u64)), "header"),
    ] {
        let file = beside(|draft| with(draft, kind, &body));
        assert_eq!(code(&file, "x"), expected, "{kind} {body:?}");
    }
}

#[test]
fn a_dataset_without_a_required_message_is_refused() {
    for kind in [DATASPACE, DATATYPE, LAYOUT] {
        let file = beside(|draft| {
            let mut messages = sound(draft);
            messages.retain(|message| message.kind != kind);
            messages
        });
        assert_eq!(code(&file, "x"), "header", "{kind}");
    }
    // An object that is neither a group nor a dataset, and a root that is not a group.
    assert_eq!(code(&beside(|_| Vec::new()), "x"), "header");
    let mut draft = Draft::new();
    let root = sound(&mut draft);
    assert_eq!(opened(draft.finish(&root)).unwrap_err().code(), "header");
}

#[test]
fn an_unknown_message_that_readers_must_know_is_refused() {
    const MUST_BE_KNOWN: u8 = 0x80;
    const LAST: u16 = 0x18;
    for (kind, flags, is_read) in
        [(LAST, MUST_BE_KNOWN, true), (LAST + 1, 0, true), (LAST + 1, MUST_BE_KNOWN, false)]
    {
        let file = beside(|draft| {
            let mut messages = sound(draft);
            let body = Vec::new();
            messages.push(Message { kind, flags, body });
            messages
        });
        let found = file.tensor("x").map_err(|error| error.code());
        assert_eq!(found.is_ok(), is_read);
        assert_eq!(found.err(), (!is_read).then_some("unsupported"));
    }
}

#[test]
fn a_datatype_may_be_shared() {
    // The reference, and its target: a datatype, nothing, or another reference.
    let found = |head: &[u8], target: &[Message]| {
        beside(|draft| {
            let named = draft.object(target);
            let mut messages = sound(draft);
            messages[1] =
                Message { kind: DATATYPE, flags: SHARED, body: [head, &bytes!(named)].concat() };
            messages
        })
    };
    let named = [message(DATATYPE, int(4, 8))];
    for head in [&[1; 1][..], &[2, 2], &[3, 2]] {
        // Version 1 is padded to 8, and has the offset of a name before the address.
        let version_1 = [&[1][..], &[0; 15]].concat();
        let head = if head == [1] { &version_1 } else { head };
        let file = found(head, &named);
        let values = file.tensor("x").unwrap().to_vec::<i32>().unwrap();
        assert_eq!(values, [7, 8]);
    }
    let elsewhere = [Message { flags: SHARED, ..named[0].clone() }];
    for (head, target, expected) in [
        // Without a heap of shared messages.
        (&[3, 1], &named[..], "header"),
        (&[4, 2], &named, "version"),
        (&[3, 2], &[], "header"),
        (&[3, 2], &elsewhere, "header"),
    ] {
        assert_eq!(code(&found(head, target), "x"), expected);
    }
    // Any message may be shared.
    let file = beside(|draft| {
        let shape = draft.object(&[message(DATASPACE, dataspace(&[2]))]);
        let mut messages = sound(draft);
        messages[0].flags = SHARED;
        messages[0].body = bytes!(3u8, 2u8, shape);
        messages
    });
    assert_eq!(file.tensor("x").unwrap().shape(), [2]);
}

/// Times, limits of attributes, the order of messages, and a length of more bytes.
#[test]
fn headers_of_version_2_have_the_fields_of_their_flags() {
    const ORDER: u8 = 1 << 2;
    const LIMITS: u8 = 1 << 4;
    const TIMES: u8 = 1 << 5;
    for flags in [0, ORDER, LIMITS, TIMES, 1, 2, 3, TIMES | LIMITS | ORDER | 1] {
        let mut draft = Draft::new();
        let mut content = Vec::new();
        for Message { kind, body, .. } in sound(&mut draft) {
            let len = u16::try_from(body.len()).unwrap();
            content.extend(bytes!(kind as u8, len, 0u8));
            content.extend(vec![0; if flags & ORDER != 0 { 2 } else { 0 }]);
            content.extend(body);
        }
        let times = if flags & TIMES != 0 { 16 } else { 0 };
        let limits = if flags & LIMITS != 0 { 4 } else { 0 };
        let len = &bytes!(content.len() as u64)[..1 << (flags & 3)];
        let head = [&[2, flags][..], &vec![9; times + limits], len].concat();
        let x = draft.put_checked(&[b"OHDR", &head, &content]);
        let file = opened(draft.finish(&[link("x", x)])).unwrap();
        let values = file.tensor("x").unwrap().to_vec::<i32>().unwrap();
        assert_eq!(values, [7, 8], "{flags:#x}");
    }
}

/// A read that fails is not a fault of the file, so nothing is listed.
#[test]
fn a_read_that_fails_is_an_error_of_the_whole_file() {
    let bytes = bytes_beside(|draft| {
        let named = draft.object(&[message(DATATYPE, int(4, 8))]);
        let mut messages = sound(draft);
        messages[1].flags = SHARED;
        messages[1].body = bytes!(3u8, 2u8, named);
        let x = draft.object(&messages);
        let inner = draft.object(&[link("x", x)]);
        let path = [&[1, 8, 1, 1][..], b"s", &bytes!(5u16), b"g/x/y"].concat();
        vec![message(LINK, path), link("g", inner), link("x", x)]
    });
    let options = OpenOptions::new();
    strike_every_read(&bytes, |source| opened_with(source, &options).map(drop));
}

#[test]
fn older_layouts_are_read() {
    const CONTIGUOUS: u8 = 1;
    let file = beside(|draft| {
        let values = draft.put(bytes!(3i32, 4i32));
        let head = bytes!(1u8, 1u8, CONTIGUOUS, 0u8, 0u32);
        with(draft, LAYOUT, &[head, bytes!(values, 2u32)].concat())
    });
    assert_eq!(file.tensor("x").unwrap().to_vec::<i32>().unwrap(), [3, 4]);
    let file = beside(|draft| {
        let head = bytes!(2u8, 1u8, 0u8, 0u8, 0u32);
        with(draft, LAYOUT, &[head, bytes!(2u32, 8u32, 5i32, 6i32)].concat())
    });
    assert_eq!(file.tensor("x").unwrap().to_vec::<i32>().unwrap(), [5, 6]);
}

#[test]
fn values_that_were_never_written_are_the_fill_value() {
    let filled = |kind: u16, body: &[u8]| {
        let nowhere = bytes!(3u8, 1u8, UNDEFINED, 0u64);
        beside(|draft| {
            let mut messages = with(draft, LAYOUT, &nowhere);
            messages.push(message(kind, body));
            messages
        })
    };
    let nine = bytes!(4u32, 9i32);
    for (kind, body, value) in [
        (OLD_FILL_VALUE, nine.clone(), 9),
        (FILL_VALUE, [&[1, 2, 2, 1][..], &nine].concat(), 9),
        (FILL_VALUE, [&[2, 2, 2, 1][..], &nine].concat(), 9),
        (FILL_VALUE, [&[3, 1 << 5][..], &nine].concat(), 9),
        // Undefined, with a negative length, and with another length than the elements.
        (FILL_VALUE, bytes!(2u8, 2u8, 2u8, 0u8), 0),
        (FILL_VALUE, bytes!(1u8, 2u8, 2u8, 1u8, -1i32), 0),
        (FILL_VALUE, bytes!(1u8, 2u8, 2u8, 1u8, 2u32, 9u16), 0),
    ] {
        let file = filled(kind, &body);
        let values = file.tensor("x").unwrap().to_vec::<i32>().unwrap();
        assert_eq!(values, [value; 2], "{kind} {body:?}");
    }
    assert_eq!(code(&filled(FILL_VALUE, &[4, 0]), "x"), "version");
}

#[test]
fn unknown_filters_are_refused() {
    let single = bytes!(4u8, 2u8, 0u8, 2u8, 1u8, 2u8, 4u8, 1u8, 0u64);
    let piped = |filters: &[u8]| {
        beside(|draft| {
            let mut messages = with(draft, LAYOUT, &single);
            messages.push(message(FILTERS, filters));
            messages
        })
    };
    for (filters, expected) in [
        (bytes!(3u8, 0u8), "version"),
        (bytes!(2u8, 33u8), "header"),
        // Szip, a registered filter and an unregistered one.
        (bytes!(2u8, 1u8, 4u16, 0u16, 0u16), "unsupported"),
        (bytes!(2u8, 1u8, 32013u16, 0u16, 0u16, 0u16), "unsupported"),
        (bytes!(2u8, 1u8, 300u16, 0u16, 0u16, 0u16), "unsupported"),
    ] {
        assert_eq!(code(&piped(&filters), "x"), expected);
    }
}
