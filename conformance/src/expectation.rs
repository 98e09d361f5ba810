//! A file's JSON held against what was seen of it. `corpus/README.md` has the keys.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::json::not_finite;
use crate::observe::{Refusal, Seen, SeenComponent, SeenObject};

/// What is not as the JSON of a readable file says; empty where all of it is.
#[must_use]
pub fn differences(truth: &Json, seen: &Seen) -> Vec<String> {
    let mut differences = Differences(Vec::new());
    differences.file(truth, seen);
    differences.0
}

/// Whether the JSON of a bad file is borne out: it is refused at its stage or before, with one of its
/// codes, and what it blames is blamed. What is not so, else nothing.
#[must_use]
pub fn missed_refusal(truth: &Json, seen: &Seen) -> Option<String> {
    if seen.is_clean() {
        return Some("accepted".to_owned());
    }
    // Files of real writers that were interrupted say no more than that.
    let Some(error) = truth["error"].as_str() else {
        return seen.refused.is_none().then(|| "opened".to_owned());
    };
    let also = truth["also"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let codes: BTreeSet<String> = also.chain([error]).map(|code| code.replace('_', "-")).collect();
    let at_stage: Vec<&Refusal> = match truth["stage"].as_str() {
        Some("open") => at_opening(seen).collect(),
        Some("read") => at_opening(seen).chain(at_reading(seen)).collect(),
        _ => seen.refusals().collect(),
    };
    let found: BTreeSet<&str> = at_stage.iter().map(|refusal| refusal.code.as_str()).collect();
    if found.is_empty() {
        return Some(format!("not seen at stage {}: {:?}", truth["stage"], seen.problems));
    }
    if !found.iter().any(|code| codes.contains(*code)) {
        return Some(format!("codes {found:?}, expected one of {codes:?}"));
    }
    misplaced_blame(truth, seen, &codes)
}

fn at_opening(seen: &Seen) -> impl Iterator<Item = &Refusal> {
    let faults = seen.objects.values().filter_map(|object| object.fault.as_ref());
    seen.refused.iter().chain(faults)
}

fn at_reading(seen: &Seen) -> impl Iterator<Item = &Refusal> {
    let components = seen.objects.values().flat_map(|object| object.components.values());
    components.filter_map(|component| component.content.as_ref().err().map(|refusal| &**refusal))
}

/// A fault of an object leaves the others alone, and names it.
fn misplaced_blame(truth: &Json, seen: &Seen, codes: &BTreeSet<String>) -> Option<String> {
    let object = truth["object"].as_str()?;
    if let Some(refusal) = &seen.refused {
        // Accepted by the corpus, but ours lists such a file with its fault.
        return Some(format!("refused as a whole: {refusal:?}"));
    }
    let fault = |refusal: &&Refusal| refusal.object.as_deref() != Some(object);
    if let Some(other) = seen.refusals().find(fault) {
        return Some(format!("blames {other:?}, expected {object:?}"));
    }
    let component = truth["component"].as_str()?;
    let of_component = |refusal: &Refusal| {
        // A missing component, or a rule that several share, may be put on the object.
        refusal.component.is_none() || refusal.component.as_deref() == Some(component)
    };
    let blamed = seen.refusals().filter(|refusal| codes.contains(&refusal.code)).any(of_component);
    (!blamed).then(|| format!("does not blame {component:?}: {:?}", seen.problems))
}

struct Differences(Vec<String>);

impl Differences {
    fn note(&mut self, place: &str, expected: &Json, found: &Json) {
        // By their text, so that 1 is not 1.0 and 0.0 not -0.0.
        let (expected, found) = (expected.to_string(), found.to_string());
        if expected != found {
            self.0.push(format!("{place}: expected {expected}, found {found}"));
        }
    }

    fn file(&mut self, truth: &Json, seen: &Seen) {
        for refusal in seen.refusals() {
            self.0.push(format!("refused: {refusal:?}"));
        }
        let layout = truth.get("layout").or(truth.get("container")).unwrap_or(&Json::Null);
        let version = truth.get("version").or(truth.get("manifest_version")).unwrap_or(&Json::Null);
        // "1.2" and "1.1+" are one layout; the version says which of the two a listing calls it.
        let newest = matches!(layout.as_str(), Some("1.2" | "1.1+"));
        let minor = version.as_str().and_then(|version| version.split('.').nth(1));
        let layout = match minor.map_or(Ok(0), str::parse::<u64>) {
            Ok(minor) if newest => json!(if minor < 2 { "1.1" } else { "1.2" }),
            _ => layout.clone(),
        };
        self.note("layout", &layout, &json!(seen.layout));
        self.note("version", version, &json!(seen.version));
        // Files of 1.0 always have attributes, and JSON of real files says null for none in them.
        if !(truth["attributes"].is_null() && seen.attributes == json!({})) {
            self.note("attributes", &truth["attributes"], &seen.attributes);
        }
        if let Some(generator) = truth.get("generator") {
            self.note("generator", generator, &seen.extra["generator"]);
        }
        let objects = truth["objects"].as_object().expect("objects");
        let names: Vec<&String> = objects.keys().collect();
        let seen_names: Vec<&String> = seen.objects.keys().collect();
        if names != seen_names {
            self.0.push(format!("objects: expected {names:?}, found {seen_names:?}"));
            return;
        }
        for (name, truth) in objects {
            self.object(name, truth, &seen.objects[name]);
        }
    }

    fn object(&mut self, name: &str, truth: &Json, seen: &SeenObject) {
        let place = |field: &str| format!("{name:?} {field}");
        self.note(&place("shape"), &truth["shape"], &json!(seen.shape));
        self.note(&place("format"), &truth["format"], &json!(seen.format));
        self.note(&place("attributes"), &truth["attributes"], &seen.attributes);
        if let Some(fields) = truth.get("custom_fields") {
            self.note(&place("extra"), fields, &seen.extra);
        }
        let components = truth["components"].as_object().expect("components");
        let roles: Vec<&String> = components.keys().collect();
        let seen_roles: Vec<&String> = seen.components.keys().collect();
        if roles != seen_roles {
            self.0.push(format!("{name:?}: expected {roles:?}, found {seen_roles:?}"));
            return;
        }
        for (role, component) in components {
            let values = truth["values"].get(role).or(component.get("values"));
            self.component(
                &format!("{name:?}/{role:?}"),
                component,
                values,
                &seen.components[role],
            );
        }
    }

    fn component(
        &mut self,
        place: &str,
        truth: &Json,
        values: Option<&Json>,
        seen: &SeenComponent,
    ) {
        let fields = [
            ("dtype", json!(seen.dtype)),
            ("type", json!(seen.logical_type)),
            ("encoding", json!(seen.encoding)),
        ];
        for (field, found) in fields {
            self.note(&format!("{place} {field}"), &truth[field], &found);
        }
        // Some of the others' JSON keeps the algorithm's case.
        let digest = truth["digest"].as_str().map(str::to_ascii_lowercase);
        self.note(&format!("{place} digest"), &json!(digest), &json!(seen.digest));
        let Ok(content) = &seen.content else { return };
        self.note(&format!("{place} nbytes"), &truth["nbytes"], &json!(content.byte_len));
        self.note(&format!("{place} sha256"), &truth["sha256"], &json!(content.sha256));
        if let Some(hex) = truth.get("hex") {
            self.note(&format!("{place} hex"), hex, &json!(content.shown));
        }
        let whole = content.shown.len() as u64 == 2 * content.byte_len;
        if let Some(values) = values.filter(|_| whole) {
            let found = stored_values(seen.dtype.as_deref(), &content.shown);
            self.note(&format!("{place} values"), values, &found);
        }
    }
}

/// The stored elements, floats as doubles; decoded here rather than by the crates under test.
fn stored_values(dtype: Option<&str>, hex: &str) -> Json {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let width = match dtype {
        Some("f64" | "i64" | "u64") => 8,
        Some("f32" | "i32" | "u32") => 4,
        Some("f16" | "bf16" | "i16" | "u16") => 2,
        _ => 1,
    };
    let value = |element: &[u8]| {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(element);
        let bits = u64::from_le_bytes(wide);
        let unused = 64 - 8 * width as u32;
        match dtype {
            Some("f64") => float(f64::from_bits(bits)),
            Some("f32") => float(f32::from_bits(bits as u32).into()),
            Some("bf16") => float(f32::from_bits((bits as u32) << 16).into()),
            Some("f16") => float(half(bits as u16)),
            Some("i64" | "i32" | "i16" | "i8") => json!((bits << unused).cast_signed() >> unused),
            Some("bool") => json!(bits != 0),
            _ => json!(bits),
        }
    };
    bytes.chunks_exact(width).map(value).collect()
}

fn float(value: f64) -> Json {
    if value.is_finite() { json!(value) } else { json!(not_finite(value)) }
}

fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}
