//! The bytes of a page.
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::formats::{Packing, Quantization};
use zt::ggml::{BlockType, Blocks};
use zt::stats::{BlockKind, Sketch};
use zt::{Csr, DType, Dense, File, QuantizedGroup, ToObject, Writer};
use zt_report::{Report, ReportOptions, Status};

fn file(names: impl IntoIterator<Item = String>) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for (at, name) in (0u32..).zip(names) {
        let values: Vec<f64> = (0..2304).map(|it| f64::from(it * at % 61)).collect();
        let object = Dense::from_slice(&[48, 48], &values).unwrap();
        writer.add(&name, &object).unwrap();
    }
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

#[test]
fn no_text_of_a_file_ends_an_element() {
    let texts =
        ["</script><script>alert(1)</script>", "<!--<script>", "]]>&lt;", "\u{2028}\u{202e}\"'"];
    let file = file(texts.map(str::to_owned));
    let report = Report::of(&file, "<title>&\"</title>.zt", &ReportOptions::new()).unwrap();
    let page = report.to_html(None);
    // The data and the script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<!--").count(), 0);
    assert_eq!(page.matches("</title").count(), 1);
    assert!(!page.contains('\u{2028}'));
}

#[test]
fn a_page_is_no_longer_than_its_limit() {
    for len in [10, 300] {
        let file = file((0..400).map(|at| format!("{at}{}", "<".repeat(len))));
        let report = Report::of(&file, "many.zt", &ReportOptions::new()).unwrap();
        let limit = ReportOptions::new().limit();
        let page = report.to_html(limit);
        assert!(page.len() <= limit.unwrap() + 250 * 400, "{}", page.len());
        // All that fits is there.
        assert!(page.len() + (64 << 10) > limit.unwrap() + 250 * 400, "{}", page.len());
        let whole = report.to_html(ReportOptions::new().detail(true).limit());
        assert!(whole.len() > page.len() + (100 << 10));
    }
}

#[test]
fn names_are_whole_in_the_document_and_never_its_fields() {
    let hostile = [r#""objects":null"#, r#"x\"#, r#"],"objects":null,"y":["#];
    let names = (0..20).map(|at| format!("{at}{}", "n".repeat(1000)));
    let names: Vec<String> = hostile.map(str::to_owned).into_iter().chain(names).collect();
    let file = file(names.clone());
    for path in hostile {
        let report = Report::of(&file, path, &ReportOptions::new().headers(true)).unwrap();
        let document: serde_json::Value = serde_json::from_str(&report.to_json(0)).unwrap();
        assert_eq!(document["files"][0]["path"], path);
        let found = document["objects"]["name"].as_array().unwrap();
        let found: Vec<&str> = found.iter().map(|it| it.as_str().unwrap()).collect();
        assert_eq!(found, names);
    }
}

#[test]
fn a_report_of_headers_reads_no_value() {
    let [a, b] = [&["both", "old"], &["both", "new"]].map(|names| file(names.map(str::to_owned)));
    let options = ReportOptions::new().headers(true);
    let of_one = Report::of(&a, "a.zt", &options).unwrap();
    assert!(of_one.objects.iter().all(|it| it.values.is_none() && it.shape == [48, 48]));
    assert!(!of_one.files[0].is_verified);
    let of_two = Report::compare([&a, &b], ["a.zt", "b.zt"], &options).unwrap();
    let found = of_two.objects.iter().map(|it| (&*it.name, it.change.unwrap().status));
    let expected = [("both", Status::Unread), ("old", Status::Removed), ("new", Status::Added)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(of_two.to_json(usize::MAX).contains(r#"["unread","#));
}

/// The sketch of a file's only object.
fn sketch(object: &impl ToObject, options: &ReportOptions<'_>) -> Sketch {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("only", object).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let mut report = Report::of(&file, "only.zt", options).unwrap();
    report.objects.remove(0).values.unwrap().sketch.unwrap()
}

#[test]
fn the_picture_of_a_sparse_matrix_is_its_pattern() {
    // The lower left and the upper right corner.
    let side = 1024;
    let indptr = [[0u64].as_slice(), &[1; 1023], &[2]].concat();
    let columns = [side - 1, 0];
    let matrix = Csr::new([side, side], &[5f32, 7.0][..], &columns[..], indptr).unwrap();
    let blocks = sketch(&matrix, &ReportOptions::new()).blocks.unwrap();
    assert_eq!((blocks.rows, blocks.columns), (512, 512));
    assert_eq!(blocks.kind, BlockKind::Density);
    let stored = blocks.values.iter().enumerate();
    let stored: Vec<_> = stored.filter(|(_, share)| **share > 0.0).collect();
    assert_eq!(stored, [(511, &0.25), (511 * 512, &0.25)]);
}

#[test]
fn a_picture_has_each_element_while_the_page_has_room() {
    let values: Vec<f32> = (0..500u16 * 100).map(f32::from).collect();
    let matrix = Dense::from_slice(&[500, 100], &values).unwrap();
    let blocks = sketch(&matrix, &ReportOptions::new()).blocks.unwrap();
    assert_eq!((blocks.kind, blocks.rows), (BlockKind::Element, 500));
    assert_eq!(blocks.values, values);
    // Of twenty matrices, only on a larger page.
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for name in 0..20 {
        writer.add(&name.to_string(), &matrix).unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    for (detail, kind, rows) in [(false, BlockKind::MeanAbs, 192), (true, BlockKind::Element, 500)]
    {
        let options = ReportOptions::new().detail(detail);
        let report = Report::of(&file, "many.zt", &options).unwrap();
        for object in &report.objects {
            let sketch = object.values.as_ref().unwrap().sketch.as_ref().unwrap();
            let blocks = sketch.blocks.as_ref().unwrap();
            assert_eq!((blocks.kind, blocks.rows), (kind, rows));
        }
        // All of them are on the page.
        let page = report.to_html(options.limit());
        assert_eq!(page.matches(&format!("[{rows},100,")).count(), 20);
    }
}

#[test]
fn quantized_objects_have_their_levels_and_their_scales() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let quantization = Quantization::new(4, 4, packing);
    let scales = Some((&[8f32, 8.0]).into());
    let group =
        QuantizedGroup::new([8], quantization, &[0x33u8, 0x5f, 0x33, 0x33], &[0.5f32, 2.0], scales);
    let of_group = sketch(&group.unwrap(), &ReportOptions::new()).quantized.unwrap();
    let levels = &of_group.levels;
    assert_eq!((levels.start, levels.width), (3, 1.0));
    assert_eq!(levels.counts, [6, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let scales = of_group.scales.finite.unwrap();
    assert_eq!((scales.min.as_f64(), scales.max.as_f64(), scales.mean), (0.5, 2.0, 1.25));
    // The scale 0.5, and a block of GGUF's.
    let block = [[0x00, 0x38].as_slice(), &[0x80; 16]].concat();
    let q4_0 = BlockType::from_format("gguf.q4_0/1").unwrap();
    let blocks = Blocks::new(q4_0, [1, 32], &block[..]).unwrap();
    let of_blocks = sketch(&blocks, &ReportOptions::new()).quantized.unwrap();
    let levels = &of_blocks.levels;
    assert_eq!((levels.start, levels.counts.len()), (-8, 9));
    assert_eq!((levels.counts[0], levels.counts[8]), (16, 16));
    assert_eq!(of_blocks.scales.finite.unwrap().max.as_f64(), 0.5);
    let dense = Dense::from_slice(&[2], &[1f32, 2.0]).unwrap();
    assert!(sketch(&dense, &ReportOptions::new()).quantized.is_none());
}
