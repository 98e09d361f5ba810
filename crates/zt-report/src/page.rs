//! The page: data, a script and a style in one file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::{Bins, Columns, Delta, FileSummary, Levels, Object, Picture, Report};

/// What `cargo xtask page` makes of `page/`.
const SCRIPT: &str = include_str!("../assets/page.js");
const STYLE: &str = include_str!("../assets/page.css");

/// Bytes of a page for each object, beside the limit.
const PER_OBJECT: usize = 250;
/// Bytes of a name that is too long for the limit.
const NAME: usize = 48;

/// The data of a page.
#[derive(Serialize)]
struct Data<'r> {
    version: u32,
    program: &'static str,
    files: &'r [FileSummary],
    is_sample: bool,
    /// [`Columns`], which are put here as text.
    objects: (),
    /// Histograms by the place of the object.
    histograms: Vec<(usize, Bins<'r>)>,
    /// Histograms in the first of two files.
    before: Vec<(usize, Bins<'r>)>,
    /// Levels of quantized objects.
    levels: Vec<(usize, Levels<'r>)>,
    /// Of a delta, what its objects change.
    deltas: Vec<(usize, &'r Delta)>,
    /// Blocks of matrices.
    pictures: Vec<(usize, Picture<'r>)>,
}

impl Report {
    /// The page as HTML, at most `limit` bytes long and 250 bytes more for each object.
    ///
    /// Histograms and pictures take at most `limit` of it: the largest objects have theirs first. Names are
    /// shortened if the page is too long without any.
    #[must_use]
    pub fn to_html(&self, limit: Option<usize>) -> String {
        let frame_len = frame("", "").len();
        let limit = limit.map_or(usize::MAX, |limit| limit.saturating_sub(frame_len));
        // Without a limit, `limit` is the largest number.
        let longest = limit.saturating_add(PER_OBJECT * self.objects.len());
        let (mut data, mut objects) = (self.data(), self.columns(usize::MAX));
        let head = json(&data).len();
        if head + objects.len() > longest {
            objects = self.columns(NAME);
        }
        let rest = longest.saturating_sub(head + objects.len());
        self.add_details(&mut data, rest.min(limit));
        frame(&self.title(), &joined(&data, &objects))
    }

    /// The data of the page as JSON, with histograms and pictures of at most `details` bytes. Names are whole.
    #[must_use]
    pub fn to_json(&self, details: usize) -> String {
        let mut data = self.data();
        self.add_details(&mut data, details);
        joined(&data, &self.columns(usize::MAX))
    }

    /// The data without details.
    fn data(&self) -> Data<'_> {
        Data {
            version: 1,
            program: concat!("zt ", env!("CARGO_PKG_VERSION")),
            files: &self.files,
            is_sample: self.is_sample,
            objects: (),
            histograms: Vec::new(),
            before: Vec::new(),
            levels: Vec::new(),
            deltas: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Adds the parts that have room in `rest`: those of the largest objects first.
    fn add_details<'r>(&'r self, data: &mut Data<'r>, mut rest: usize) {
        let mut largest: Vec<(usize, &Object)> = self.objects.iter().enumerate().collect();
        largest.sort_by_key(|(_, object)| std::cmp::Reverse(object.decoded));
        for (at, object) in &largest {
            let histogram = object.sketch().and_then(|it| it.histogram.as_ref());
            add(&mut data.histograms, *at, histogram.map(Bins), &mut rest);
            let before = object.before.as_ref().map(Bins);
            add(&mut data.before, *at, before, &mut rest);
            let quantized = object.sketch().and_then(|it| it.quantized.as_ref());
            add(&mut data.levels, *at, quantized.map(Levels::of), &mut rest);
            add(&mut data.deltas, *at, object.delta.as_ref(), &mut rest);
        }
        for (at, object) in largest {
            let blocks = object.sketch().and_then(|it| it.blocks.as_ref());
            add(&mut data.pictures, at, blocks.map(Picture), &mut rest);
        }
    }

    /// The objects as JSON, with names of at most this many bytes.
    fn columns(&self, name: usize) -> String {
        let short: Vec<String> = self.objects.iter().map(|it| abridged(&it.name, name)).collect();
        let names = short.iter().map(|it| &**it).collect();
        escaped(&json(&Columns::of(&self.objects, names)))
    }

    fn title(&self) -> String {
        let paths: Vec<&str> = self.files.iter().map(|it| &*it.path).collect();
        format!("zt report: {}", paths.join(" → "))
    }
}

/// The data with its objects.
fn joined(data: &Data<'_>, objects: &str) -> String {
    // The quotes of a text in it are escaped, so this is the field.
    escaped(&json(data)).replacen(r#""objects":null"#, &format!(r#""objects":{objects}"#), 1)
}

/// Adds a part of the object at this place, if there is one and it is no longer than the rest of the page.
fn add<T: Serialize>(parts: &mut Vec<(usize, T)>, at: usize, part: Option<T>, rest: &mut usize) {
    let Some(part) = part else { return };
    let part = (at, part);
    let len = json(&part).len() + 1; // And a comma.
    if len <= *rest {
        *rest -= len;
        parts.push(part);
    }
}

fn json(value: &impl Serialize) -> String {
    // No map has a key that is not text, and no number is NaN.
    serde_json::to_string(value).unwrap_or_default()
}

/// The text, or its beginning and its end, so that its JSON has at most `limit` bytes.
pub(crate) fn abridged(text: &str, limit: usize) -> String {
    let len = |text: &str| escaped(&json(&text)).len();
    if limit == usize::MAX || len(text) <= limit {
        return text.to_owned();
    }
    let characters = text.chars().count();
    let mut kept = characters.min(limit);
    loop {
        let head: String = text.chars().take(kept / 2).collect();
        let tail: String = text.chars().skip(characters - kept / 2).collect();
        let short = format!("{head}…{tail}");
        if len(&short) <= limit || kept < 2 {
            return short;
        }
        kept /= 2;
    }
}

/// JSON without the characters that end an element of HTML or a line of a script. They occur within texts only.
fn escaped(json: &str) -> String {
    let ends = |character: char| matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    let mut text = String::with_capacity(json.len());
    let mut from = 0;
    for (at, found) in json.match_indices(ends) {
        text.push_str(&json[from..at]);
        text.push_str(&format!("\\u{:04x}", found.chars().next().map_or(0, u32::from)));
        from = at + found.len();
    }
    text.push_str(&json[from..]);
    text
}

fn frame(title: &str, data: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let (script, style) = (hash(SCRIPT), hash(STYLE));
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>This page draws itself with a script of its own, which is switched off. \
         `zt stats` prints the same figures.</noscript>\n<main><h1>{title}</h1></main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style_of_the_page() {
        let page = Report::default().to_html(None);
        for (name, policy) in [("<script>", "script-src"), ("<style>", "style-src")] {
            let (_, text) = page.split_once(name).unwrap();
            let (text, _) = text.split_once("</").unwrap();
            let hash = STANDARD.encode(Sha256::digest(text));
            assert!(page.contains(&format!("{policy} 'sha256-{hash}';")), "{name}");
        }
    }

    #[test]
    fn a_name_is_shortened_to_the_length_of_its_json() {
        for name in ["a".repeat(500), "<".repeat(500), "\u{202e}\"é".repeat(500)] {
            let short = abridged(&name, 48);
            assert!(escaped(&json(&short)).len() <= 48, "{short}");
            assert!(short.len() > 8, "{short}");
        }
        assert_eq!(abridged("layers.0", 48), "layers.0");
    }
}
