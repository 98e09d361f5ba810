//! Chunks and their indices.

use miniz_oxide::deflate::compress_to_vec_zlib;
use zt::{File, Limits, Memory, OpenOptions, Slice, VerifyOptions};

use crate::checksum::fletcher32;
use crate::draft::{
    Draft, FILL_VALUE, FILTERS, LAYOUT, Message, UNDEFINED, beside, bytes, bytes_beside, code, int,
    link, message, opened, opened_with,
};

/// Two chunks of two `i32`.
fn values(draft: &mut Draft) -> [u64; 2] {
    [draft.put(bytes!(1i32, 2i32)), draft.put(bytes!(3i32, 4i32))]
}

/// The layout of such chunks with one of the newer indices and its parameters.
fn indexed(index: u8, parameters: &[u8], address: u64) -> Vec<u8> {
    let head = bytes!(4u8, 2u8, 0u8, 2u8, 1u8, 2u8, 4u8, index);
    [head, parameters.to_vec(), bytes!(address)].concat()
}

fn read(file: &File) -> Vec<i32> {
    file.tensor("x").unwrap().to_vec().unwrap()
}

/// A file of three values with a tree of version 1: the type and the level of its root, and the first
/// elements of its entries.
fn tree1(node_type: u8, level: u8, entries: &[u64], len: u32) -> File {
    beside(|draft| {
        let chunks = values(draft);
        let count = u16::try_from(entries.len()).unwrap();
        let mut node =
            [b"TREE".to_vec(), bytes!(node_type, level, count, UNDEFINED, UNDEFINED)].concat();
        for (first, chunk) in entries.iter().zip(chunks) {
            node.extend(bytes!(len, 0u32, *first, 0u64, chunk));
        }
        node.extend(bytes!(0u64, 4u64, 0u64));
        let root = draft.put(node);
        draft.chunked(bytes!(3u8, 2u8, 2u8, root, 2u32, 4u32))
    })
}

#[test]
fn a_tree_has_its_type_and_every_chunk_once() {
    assert_eq!(read(&tree1(1, 0, &[0, 2], 8)), [1, 2, 3]);
    // A chunk is beyond the shape if the dataset shrank later.
    assert_eq!(read(&tree1(1, 0, &[0, 4], 8)), [1, 2, 0]);
    for (file, expected) in [
        (tree1(0, 0, &[0, 2], 8), "header"),
        (tree1(1, 64, &[0, 2], 8), "header"),
        // A node of another type.
        (tree1(1, 1, &[0, 2], 8), "header"),
        // Two chunks at one place, an invalid place, and a chunk that is too short.
        (tree1(1, 0, &[2, 2], 8), "header"),
        (tree1(1, 0, &[0, 1], 8), "header"),
        (tree1(1, 0, &[0, 2], 7), "shape-size-mismatch"),
    ] {
        assert_eq!(code(&file, "x"), expected);
    }
}

#[test]
fn a_node_is_one_level_below_its_parent() {
    let nested = |above: u8, level: u8| {
        beside(|draft| {
            let [first, second] = values(draft);
            let node = |level: u8, child: u64, more: &[u8]| {
                let head = bytes!(1u8, level, 1u16, UNDEFINED, UNDEFINED);
                let entry = bytes!(8u32, 0u32, 0u64, 0u64, child);
                [b"TREE", &*head, &entry, more, &bytes!(0u64, 4u64, 0u64)].concat()
            };
            let leaf = draft.put(node(level, first, &[]));
            let root = draft.put(node(above, leaf, &bytes!(second)));
            draft.chunked(bytes!(3u8, 2u8, 2u8, root, 2u32, 4u32))
        })
    };
    assert_eq!(read(&nested(1, 0)), [1, 2, 0]);
    assert_eq!(code(&nested(1, 1), "x"), "header");
    // The leaf is valid, but at the wrong level.
    assert_eq!(code(&nested(2, 0), "x"), "header");
}

#[test]
fn a_single_chunk_needs_no_index() {
    let file = beside(|draft| {
        let [first, _] = values(draft);
        let mut messages = draft.dataset(int(4, 8), &[2], &[]);
        messages[2] = message(LAYOUT, indexed(1, &[], first));
        messages
    });
    assert_eq!(read(&file), [1, 2]);
}

/// A fixed array: the versions and clients of its two structures.
fn fixed_array(header: [u8; 2], block: [u8; 2], is_written: bool) -> File {
    beside(|draft| {
        let [first, second] = values(draft);
        let body = [&block[..], &bytes!(0u64, first, second)].concat();
        let block = draft.put_checked(&[b"FADB", &body]);
        let block = if is_written { block } else { UNDEFINED };
        let body = [&header[..], &bytes!(8u8, 10u8, 2u64, block)].concat();
        let array = draft.put_checked(&[b"FAHD", &body]);
        draft.chunked(indexed(3, &[10], array))
    })
}

#[test]
fn structures_of_a_fixed_array_agree() {
    assert_eq!(read(&fixed_array([0, 0], [0, 0], true)), [1, 2, 3]);
    assert_eq!(read(&fixed_array([0, 0], [0, 0], false)), [0, 0, 0]);
    for (header, block, expected) in
        [([1, 0], [0, 0], "version"), ([0, 0], [1, 0], "version"), ([0, 0], [0, 1], "header")]
    {
        assert_eq!(code(&fixed_array(header, block, true), "x"), expected);
    }
}

#[test]
fn invalid_sizes_of_an_extensible_array_are_refused() {
    // Bits of an index, elements in the index block and a data block, pointers, bits of a page.
    let array = |sizes: [u8; 5], is_written: bool| {
        beside(|draft| {
            let [first, second] = values(draft);
            let pointers = vec![u8::MAX; 8 * (2 * 3 + 27)];
            let elements = bytes!(0u8, 0u8, 0u64, first, second);
            let block = draft.put_checked(&[b"EAIB", &elements, &pointers]);
            let block = if is_written { block } else { UNDEFINED };
            let head = [&[0, 0, 8][..], &sizes, &bytes!(0u128, 0u128, 2u64, 2u64, block)];
            let array = draft.put_checked(&[b"EAHD", &head.concat()]);
            let mut messages = draft.chunked(indexed(4, &sizes, array));
            // The dataset may grow without limit.
            messages[0].body = bytes!(1u8, 1u8, 1u8, 0u8, 0u32, 3u64, u64::MAX);
            messages
        })
    };
    let sizes = [32, 2, 4, 4, 10];
    assert_eq!(read(&array(sizes, true)), [1, 2, 3]);
    assert_eq!(read(&array(sizes, false)), [0, 0, 0]);
    for (at, size) in [(0, 65), (0, 1), (2, 3), (2, 0), (3, 3), (4, 64)] {
        let mut sizes = sizes;
        sizes[at] = size;
        assert_eq!(code(&array(sizes, true), "x"), "header", "{sizes:?}");
    }
}

/// An array with data blocks of one element and more, and pages of so many bits. The index block has no
/// elements.
fn extensible(
    page_bits: u8,
    end: u64,
    blocks: impl FnOnce(&mut Draft, [u64; 2]) -> Vec<u64>,
) -> File {
    beside(|draft| {
        let chunks = values(draft);
        let blocks = blocks(draft, chunks);
        let sizes = [32, 0, 1, 4, page_bits];
        let mut pointers: Vec<u8> = blocks.iter().flat_map(|it| it.to_le_bytes()).collect();
        pointers.resize(8 * (2 * 3 + 29), u8::MAX);
        let block = draft.put_checked(&[b"EAIB", &bytes!(0u8, 0u8, 0u64), &pointers]);
        let statistics = bytes!(0u128, 0u128, end, 2u64, block);
        let array = draft.put_checked(&[b"EAHD", &[0, 0, 8], &sizes, &statistics]);
        let mut messages = draft.chunked(indexed(4, &sizes, array));
        messages[0].body = bytes!(1u8, 1u8, 1u8, 0u8, 0u32, 3u64, u64::MAX);
        messages
    })
}

#[test]
fn data_blocks_of_an_extensible_array_end_where_it_does() {
    let data = |draft: &mut Draft, elements: Vec<u8>| {
        draft.put_checked(&[b"EADB", &bytes!(0u8, 0u8, 0u64, 0u32), &elements])
    };
    // A block as long as a page has no pages.
    let file = extensible(0, 1, |draft, [first, _]| vec![data(draft, bytes!(first))]);
    assert_eq!(read(&file), [1, 2, 0]);
    // Nothing is read after the last element.
    let file = extensible(10, 5, |draft, [first, second]| {
        let one = data(draft, bytes!(first));
        let two = data(draft, bytes!(second, UNDEFINED));
        vec![one, two, UNDEFINED, 1 << 40]
    });
    assert_eq!(read(&file), [1, 2, 3]);
}

#[test]
fn invalid_fields_of_a_tree_of_version_2_are_refused() {
    const PLAIN: u8 = 10;
    let tree = |make: fn(&mut Draft, &[Vec<u8>]) -> u64| {
        beside(|draft| {
            let [first, _] = values(draft);
            let records = [bytes!(first, 0u64), bytes!(UNDEFINED, 1u64)];
            let root = make(draft, &records);
            draft.chunked(indexed(5, &[0, 0, 0, 0, 0, 0], root))
        })
    };
    let sound = |draft: &mut Draft, records: &[Vec<u8>]| draft.tree2(PLAIN, records);
    // The second chunk was never written.
    assert_eq!(read(&tree(sound)), [1, 2, 0]);
    let head = |version: u8, node_type: u8, len: u16, depth: u16| {
        bytes!(version, node_type, 512u32, len, depth, 0u16)
    };
    let empty = |draft: &mut Draft, head: Vec<u8>| draft.tree2_of(&head, UNDEFINED, 0);
    let file = |head: Vec<u8>| {
        beside(|draft| {
            let root = empty(draft, head);
            draft.chunked(indexed(5, &[0, 0, 0, 0, 0, 0], root))
        })
    };
    assert_eq!(read(&file(head(0, PLAIN, 16, 0))), [0, 0, 0]);
    for (head, expected) in [
        (head(1, PLAIN, 16, 0), "version"),
        (head(0, 11, 16, 0), "header"),
        (head(0, PLAIN, 0, 0), "header"),
        (head(0, PLAIN, 16, 33), "header"),
    ] {
        assert_eq!(code(&file(head), "x"), expected);
    }
}

/// One chunk of two values with a filter.
fn filtered(filter: &[u8], stored: &[u8], chunk: u32) -> File {
    through(&[filter], stored, chunk, 0)
}

/// The same with several filters. The mask has those that were skipped.
fn through(filters: &[&[u8]], stored: &[u8], chunk: u32, mask: u32) -> File {
    beside(|draft| single(draft, filters, stored, chunk, mask))
}

fn single(
    draft: &mut Draft,
    filters: &[&[u8]],
    stored: &[u8],
    chunk: u32,
    mask: u32,
) -> Vec<Message> {
    const SINGLE_IS_FILTERED: u8 = 2;
    let address = draft.put(stored);
    let len = stored.len() as u64;
    let layout =
        bytes!(4u8, 2u8, SINGLE_IS_FILTERED, 2u8, 4u8, chunk, 4u32, 1u8, len, mask, address);
    let mut messages: Vec<Message> = draft.dataset(int(4, 8), &[2], &[]);
    messages[2] = message(LAYOUT, layout);
    let count = u8::try_from(filters.len()).unwrap();
    messages.push(message(FILTERS, [&[2, count], &*filters.concat()].concat()));
    messages
}

#[test]
fn chunks_are_decoded_with_their_filters() {
    const VALUES: [i32; 2] = [0x0403_0201, 0x0807_0605];
    let plain = VALUES.map(i32::to_le_bytes).concat();
    let checksummed = [plain.clone(), bytes!(fletcher32(&plain))].concat();
    let fletcher = bytes!(3u16, 0u16, 0u16);
    assert_eq!(read(&filtered(&fletcher, &checksummed, 2)), VALUES);
    // As HDF5 before 1.6.3 writes it.
    let [a, b, c, d] = fletcher32(&plain).to_le_bytes();
    let swapped = [&plain[..], &[b, a, d, c]].concat();
    assert_eq!(read(&filtered(&fletcher, &swapped, 2)), VALUES);
    let reversed = [&plain[..], &[d, c, b, a]].concat();
    assert_eq!(code(&filtered(&fletcher, &reversed, 2), "x"), "digest-mismatch");
    // Shuffling one element, or bytes, changes nothing.
    for element_len in [8u32, 1] {
        let shuffle = bytes!(2u16, 0u16, 1u16, element_len);
        assert_eq!(read(&filtered(&shuffle, &plain, 2)), VALUES);
    }
    for (file, expected) in [
        (filtered(&fletcher, &checksummed[..3], 2), "deflate"),
        (
            filtered(&fletcher, &[checksummed[..8].to_vec(), vec![0; 4]].concat(), 2),
            "digest-mismatch",
        ),
        (filtered(&fletcher, &checksummed, 3), "shape-size-mismatch"),
        (filtered(&bytes!(1u16, 0u16, 0u16), &plain, 2), "deflate"),
        (filtered(&fletcher, &checksummed, 1 << 29), "decompression-limit"),
    ] {
        assert_eq!(code(&file, "x"), expected);
    }
}

/// Every chunk may skip an optional filter.
#[test]
fn an_unknown_filter_that_every_chunk_skips_is_allowed() {
    const OPTIONAL: u16 = 1;
    let plain = bytes!(5i32, 6i32);
    let checksummed = [plain.clone(), bytes!(fletcher32(&plain))].concat();
    let fletcher = bytes!(3u16, 0u16, 0u16);
    let zfp = |flags: u16| bytes!(32013u16, 0u16, flags, 0u16);
    let file = |flags, mask| through(&[&fletcher, &zfp(flags)], &checksummed, 2, mask);
    assert_eq!(read(&file(OPTIONAL, 0b10)), [5, 6]);
    for (flags, mask) in [(OPTIONAL, 0), (OPTIONAL, 0b01), (0, 0b10)] {
        let file = file(flags, mask);
        assert_eq!(code(&file, "x"), "unsupported");
        assert!(file.tensor("x").is_err(), "told before it is read");
    }
}

/// Each costs a pass over the chunk: thirty shuffles of 64 MiB, from 65 KB, took a minute.
#[test]
fn a_filter_is_in_a_pipeline_once() {
    const OPTIONAL: u16 = 1;
    let plain = bytes!(5i32, 6i32);
    let shuffle = bytes!(2u16, 0u16, 1u16, 8u32);
    let unknown = bytes!(300u16, 0u16, OPTIONAL, 0u16);
    for (filter, name) in [(shuffle, "shuffle (2)"), (unknown, "300")] {
        let file = through(&[&filter, &filter], &plain, 2, 0b11);
        assert_eq!(code(&file, "x"), "unsupported");
        let error = file.tensor("x").unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// HDF5 allows as many. The chunk skips all of them.
#[test]
fn a_pipeline_has_32_filters_at_most() {
    const OPTIONAL: u16 = 1;
    let plain = bytes!(5i32, 6i32);
    let unknown = |id: u16| bytes!(id, 0u16, OPTIONAL, 0u16);
    let filters: Vec<_> = (300..332).map(unknown).collect();
    let filters: Vec<_> = filters.iter().map(Vec::as_slice).collect();
    assert_eq!(read(&through(&filters, &plain, 2, u32::MAX)), [5, 6]);
}

/// Compressed data may be a little longer than the values, because other filters add bytes.
#[test]
fn the_output_of_a_filter_may_be_little_longer_than_the_chunk() {
    let deflate = bytes!(1u16, 0u16, 0u16);
    let deflated = |bytes: &[u8]| compress_to_vec_zlib(bytes, 6);
    let plain = bytes!(5i32, 6i32);
    let checksummed = [plain.clone(), bytes!(fletcher32(&plain))].concat();
    let fletcher = bytes!(3u16, 0u16, 0u16);
    let file = through(&[&fletcher, &deflate], &deflated(&checksummed), 2, 0);
    assert_eq!(read(&file), [5, 6]);
    // LZF literals, 32 at a time.
    let lzf = bytes!(32000u16, 0u16, 0u16, 0u16);
    let bytes: Vec<u8> = (1..=251).cycle().take(1 << 18).collect();
    let pieces = bytes.chunks(32).map(|piece| [&[31], piece].concat());
    let stored = deflated(&pieces.collect::<Vec<_>>().concat());
    let file = through(&[&lzf, &deflate], &stored, 1 << 16, 0);
    assert_eq!(read(&file), [0x0403_0201, 0x0807_0605]);
    // Twice as many are refused.
    let file = filtered(&deflate, &deflated(&vec![0; 2 << 16]), 1 << 14);
    assert_eq!(code(&file, "x"), "deflate");
}

/// LZF of zeros: one literal, then copies of 264 bytes.
fn lzf_zeros(count: usize) -> Vec<u8> {
    let again = [0xE0, 255, 0].repeat((count - 1) / 264);
    let rest = u8::try_from((count - 1) % 264).unwrap();
    let end = vec![0; usize::from(rest)];
    let end: Vec<u8> = end.iter().flat_map(|zero| [0, *zero]).collect();
    [vec![0, 0], again, end].concat()
}

/// Zeros compressed twice would give 16 MiB from some hundred bytes.
#[test]
fn a_chunk_is_limited_to_the_ratio_of_one_compression() {
    let deflate = bytes!(1u16, 0u16, 0u16);
    let once = |values: u32| compress_to_vec_zlib(&vec![0; 4 * values as usize], 9);
    let file = filtered(&deflate, &once(1 << 20), 1 << 20);
    assert_eq!(read(&file), [0, 0]);
    let lzf = bytes!(32000u16, 0u16, 0u16, 0u16);
    let twice = |values: usize| compress_to_vec_zlib(&lzf_zeros(4 * values), 9);
    let file = through(&[&lzf, &deflate], &twice(1 << 10), 1 << 10, 0);
    assert_eq!(read(&file), [0, 0]);
    let file = through(&[&lzf, &deflate], &twice(1 << 22), 1 << 22, 0);
    assert_eq!(code(&file, "x"), "decompression-limit");
    // The whole chunk counts, although only two of its values are in the shape.
    let file = filtered(&deflate, &once(2), 24 << 20);
    assert_eq!(code(&file, "x"), "decompression-limit");
    assert!(file.tensor("x").is_err());
}

/// A length that no file of this length can have is refused at once, others when the chunk is read.
#[test]
fn a_filtered_chunk_is_limited_by_its_stored_bytes() {
    let deflate = bytes!(1u16, 0u16, 0u16);
    let error = filtered(&deflate, &[0; 4], 1 << 20).tensor("x").unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
    assert!(error.to_string().contains("4194304"));
    for (values, expected) in [(1032, "deflate"), (1033, "decompression-limit")] {
        let file = filtered(&deflate, &[0; 4], values);
        assert!(file.tensor("x").is_ok());
        assert_eq!(code(&file, "x"), expected);
    }
    // A chunk without filters is only read as far as needed, and this one was never written.
    let file = beside(|draft| {
        let head = bytes!(1u8, 0u8, 0u16, UNDEFINED, UNDEFINED, 0u64, 4u64, 0u64);
        let root = draft.put([b"TREE", &*head].concat());
        draft.chunked(bytes!(3u8, 2u8, 2u8, root, 1u32 << 20, 4u32))
    });
    assert_eq!(read(&file), [0, 0, 0]);
}

/// Filled values and decoded chunks may be as long as the limit.
#[test]
fn values_above_the_limit_of_the_caller_are_refused() {
    let plain = bytes!(5i32, 6i32);
    let checksummed = [plain.clone(), bytes!(fletcher32(&plain))].concat();
    let fletcher = bytes!(3u16, 0u16, 0u16);
    let piped = bytes_beside(|draft| single(draft, &[&fletcher], &checksummed, 2, 0));
    let unpiped = bytes_beside(|draft| {
        let chunks = values(draft);
        let tree = bytes!(1u8, 0u8, 1u16, UNDEFINED, UNDEFINED, 8u32, 0u32);
        let tree = [b"TREE", &*tree, &bytes!(0u64, 0u64, chunks[0], 0u64, 4u64, 0u64)];
        let root = draft.put(tree.concat());
        draft.chunked(bytes!(3u8, 2u8, 2u8, root, 2u32, 4u32))
    });
    for (bytes, limit, expected) in [(piped, 8, &[5, 6][..]), (unpiped, 12, &[1, 2, 0])] {
        let opened = |decoded_len: u64| {
            let limits = Limits::default().with_decoded_len(decoded_len);
            let options = OpenOptions::new().limits(limits);
            opened_with(Memory::new(bytes.clone()), options).unwrap()
        };
        assert_eq!(read(&opened(limit)), expected);
        let error = opened(limit - 1).tensor("x").unwrap_err();
        assert_eq!(error.code(), "decompression-limit");
        let text = error.to_string();
        assert!(text.contains(&(limit - 1).to_string()), "{text}");
    }
}

/// The address of the index counts as their place.
#[test]
fn chunked_values_are_listed_in_the_order_of_the_file() {
    let mut draft = Draft::new();
    let first = draft.dataset(int(4, 8), &[1], &[0; 4]);
    let [_, chunk] = values(&mut draft);
    let mut chunked = draft.dataset(int(4, 8), &[2], &[]);
    chunked[2].body = indexed(1, &[], chunk);
    let last = draft.dataset(int(4, 8), &[1], &[0; 4]);
    let objects = [last, chunked, first].map(|messages| draft.object(&messages));
    let links = ["last", "chunked", "first"].map(String::from).into_iter();
    let links: Vec<_> = links.zip(objects).map(|(name, at)| link(&name, at)).collect();
    let file = opened(draft.finish(&links)).unwrap();
    let names: Vec<_> = file.entries().iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["first", "chunked", "last"]);
}

/// Writers may skip all filters for chunks that are partly outside the shape.
#[test]
fn chunks_on_the_edge_may_be_plain() {
    const PLAIN_EDGES: u8 = 1;
    let file = beside(|draft| {
        let inner = bytes!(1i32, 2i32);
        let inner = [inner.clone(), bytes!(fletcher32(&inner))].concat();
        let (inner, edge) = (draft.put(inner), draft.put(bytes!(3i32, 4i32)));
        // The length of a chunk takes two bytes.
        let elements = bytes!(inner, 12u16, 0u32, edge, 8u16, 0u32);
        let block = draft.put_checked(&[b"FADB", &[0, 1], &bytes!(0u64), &elements]);
        let array = bytes!(0u8, 1u8, 14u8, 10u8, 2u64, block);
        let array = draft.put_checked(&[b"FAHD", &array]);
        let mut layout = indexed(3, &[10], array);
        layout[2] = PLAIN_EDGES;
        let mut messages = draft.chunked(layout);
        messages.push(message(FILTERS, bytes!(2u8, 1u8, 3u16, 0u16, 0u16)));
        messages.push(message(FILL_VALUE, bytes!(3u8, 0u8)));
        messages
    });
    assert_eq!(read(&file), [1, 2, 3]);
}

/// A dataset of 16 rows with `columns` bytes each, in chunks of 64 MiB. Only the first may be written, with
/// 128 KiB that are not deflate.
fn wide(columns: u64, is_written: bool) -> File {
    const COLUMNS: u32 = 4 << 20;
    const STORED: u32 = 128 << 10;
    let chunks = usize::try_from(columns / u64::from(COLUMNS)).unwrap();
    beside(|draft| {
        let chunk = draft.put(vec![0xFF; STORED as usize]);
        let first = if is_written { chunk } else { UNDEFINED };
        let others = vec![0xFF; 17 * (chunks - 1)];
        let elements = [bytes!(first, STORED, 0u8, 0u32), others].concat();
        let block = draft.put_checked(&[b"FADB", &[0, 1], &bytes!(0u64), &elements]);
        let array =
            draft.put_checked(&[b"FAHD", &bytes!(0u8, 1u8, 17u8, 10u8, chunks as u64, block)]);
        let head = bytes!(4u8, 2u8, 0u8, 3u8, 4u8, 16u32, COLUMNS, 1u32, 3u8, 10u8);
        let mut messages = draft.dataset(int(1, 0), &[16, columns], &[]);
        messages[2] = message(LAYOUT, [head, bytes!(array)].concat());
        messages.push(message(FILTERS, bytes!(2u8, 1u8, 1u16, 0u16, 0u16)));
        messages
    })
}

/// Rows of 256 MiB and more are gathered one by one, and the chunks are decoded for each.
#[test]
fn chunks_that_are_decoded_several_times_count_each_time() {
    // A row of chunks is a band of 256 MiB: each chunk is decoded once, and this one is not valid.
    assert_eq!(code(&wide(16 << 20, true), "x"), "deflate");
    // Sixteen times is more than the limit for the file.
    let often = wide(256 << 20, true);
    assert_eq!(often.tensor("x").unwrap().shape(), [16, 256 << 20]);
    let error = often.tensor("x").unwrap().bytes("data").unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
    assert!(error.to_string().contains("1073741824"), "{error}");
}

/// Files of some hundred bytes with 160 MB of values in one piece, and 4 GiB in chunks.
#[test]
fn values_that_were_never_written_are_made_piece_by_piece() {
    const COUNT: u64 = 40_000_000;
    let plain = beside(|draft| {
        let mut messages = draft.dataset(int(4, 8), &[COUNT], &[]);
        messages[2].body = bytes!(3u8, 1u8, UNDEFINED, 0u64);
        messages.push(message(FILL_VALUE, bytes!(3u8, 1u8 << 5, 4u32, -7i32)));
        messages
    });
    let tensor = plain.tensor("x").unwrap();
    let last = Slice::parse_list("-2:").unwrap();
    let part = tensor.slice(&last).unwrap();
    assert_eq!(*part.as_slice::<i32>().unwrap(), [-7, -7]);
    assert!(plain.verify(&VerifyOptions::default()).unwrap().is_ok());
    let chunked = wide(256 << 20, false);
    let tensor = chunked.tensor("x").unwrap();
    let part = Slice::parse_list("15,9:12").unwrap();
    let part = tensor.slice(&part).unwrap();
    assert_eq!(*part.as_slice::<u8>().unwrap(), [0; 3]);
}

/// A chunk is decoded as a whole, so a larger one must have at least a 64th of its bytes.
#[test]
fn chunks_above_64_mib_have_a_smaller_ratio() {
    const MIB: u32 = 1 << 18;
    let deflate = bytes!(1u16, 0u16, 0u16);
    let zeros = |mib: usize| compress_to_vec_zlib(&vec![0; mib << 20], 6);
    assert_eq!(read(&filtered(&deflate, &zeros(64), 64 * MIB)), [0, 0]);
    let large = filtered(&deflate, &[0; 130 << 10], 128 * MIB);
    assert_eq!(code(&large, "x"), "decompression-limit");
    // Found when the chunk is read, if the file is long enough for one.
    let stored = zeros(72);
    let padded = beside(|draft| {
        draft.put(vec![0; 1 << 20]);
        single(draft, &[&deflate], &stored, 72 * MIB, 0)
    });
    assert!(padded.tensor("x").is_ok());
    assert_eq!(code(&padded, "x"), "decompression-limit");
    let stored = [stored, vec![0; 512 << 10]].concat();
    assert_eq!(read(&filtered(&deflate, &stored, 72 * MIB)), [0, 0]);
}
