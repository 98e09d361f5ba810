//! The bytes of a page.
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::stats::BlockKind;
use zt::{Csr, Dense, File, Writer};
use zt_report::{Report, ReportOptions};

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
    let texts = [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "]]>&lt;",
        "\u{2028}\u{202e}\"'",
    ];
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
        assert!(
            page.len() + (64 << 10) > limit.unwrap() + 250 * 400,
            "{}",
            page.len()
        );
        let whole = report.to_html(ReportOptions::new().detail(true).limit());
        assert!(whole.len() > page.len() + (100 << 10));
    }
}

#[test]
fn the_picture_of_a_sparse_matrix_is_its_pattern() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    // The lower left and the upper right corner.
    let indptr = [[0u64].as_slice(), &[1; 95], &[2]].concat();
    let matrix = Csr::new([96, 96], &[5f32, 7.0][..], &[95u64, 0][..], indptr).unwrap();
    writer.add("graph", &matrix).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let report = Report::of(&file, "graph.zt", &ReportOptions::new()).unwrap();
    let stats = report.objects[0].values.as_ref().unwrap();
    let blocks = stats.sketch.as_ref().unwrap().blocks.as_ref().unwrap();
    assert_eq!((blocks.rows, blocks.columns), (48, 48));
    assert_eq!(blocks.kind, BlockKind::Density);
    let stored = blocks.values.iter().enumerate();
    let stored: Vec<_> = stored.filter(|(_, share)| **share > 0.0).collect();
    assert_eq!(stored, [(47, &0.25), (47 * 48, &0.25)]);
}
