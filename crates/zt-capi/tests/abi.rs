//! The functions in ffi.rs, in zt.h and in abi.txt are the same, and so are their signatures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// One space between words, and none around punctuation but before `*`.
fn in_one_form(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (from, to) in [(" *", "*"), ("* ", "*"), (" (", "("), ("( ", "("), (" )", ")"), (" ,", ",")]
    {
        while text.contains(from) {
            text = text.replace(from, to);
        }
    }
    text.replace('*', " *").replace("* *", "**").replace("(void)", "()")
}

/// The header without comments.
fn header() -> String {
    let mut text = String::new();
    for part in read("include/zt.h").split("/*") {
        text.push_str(part.split_once("*/").map_or("", |(_, code)| code));
    }
    text
}

/// The prototypes of the header.
fn of_header() -> Vec<String> {
    let text = header();
    let functions = text.split(';').filter_map(|it| it.split_once("ZT_API ").map(|it| it.1));
    let functions = functions.filter(|it| it.contains('('));
    let mut found: Vec<_> = functions.map(in_one_form).collect();
    found.sort();
    found
}

/// The functions of ffi.rs as C declares them.
fn of_code() -> Vec<String> {
    let text = read("src/ffi.rs");
    let exported = text.split("#[unsafe(no_mangle)]\n").skip(1);
    let mut found: Vec<_> =
        exported.map(|it| prototype(it.split_once(" {\n").unwrap().0)).collect();
    found.sort();
    found
}

fn prototype(signature: &str) -> String {
    let (_, signature) = signature.split_once("extern \"C\" fn ").unwrap();
    let (name, rest) = signature.split_once('(').unwrap();
    let (parameters, result) = rest.rsplit_once(')').unwrap();
    let result = result.trim().strip_prefix("-> ").map_or("void".to_owned(), c_type);
    let parameters = parameters.replace("Out<'_, ", "Out<");
    let parameters = parameters.split(',').filter(|it| !it.trim().is_empty());
    let parameters = parameters.map(|parameter| {
        let (name, of) = parameter.trim().split_once(": ").unwrap();
        // Its functions change a writer, behind a lock.
        let of = if of == "Option<&zt_writer>" { "*mut zt_writer" } else { of };
        format!("{} {name}", c_type(of))
    });
    let parameters: Vec<_> = parameters.collect();
    in_one_form(&format!("{result} {name}({})", parameters.join(", ")))
}

fn c_type(rust: &str) -> String {
    let inside = |before: &str, after: &str| rust.strip_prefix(before)?.strip_suffix(after);
    if let Some(inner) = inside("Option<&mut ", ">").or(inside("Out<", ">")) {
        return format!("{} *", c_type(inner));
    }
    if let Some(inner) = inside("Option<&", ">").or(inside("*const ", "")) {
        return format!("const {} *", c_type(inner));
    }
    if let Some(inner) = inside("*mut ", "") {
        return format!("{} *", c_type(inner));
    }
    match rust {
        "c_char" => "char",
        "c_void" => "void",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "DLManagedTensorVersioned" => "struct DLManagedTensorVersioned",
        name if name == "bool" || name.starts_with("zt_") => name,
        other => panic!("no type of C for {other}"),
    }
    .to_owned()
}

/// `struct zt_range: uint64_t start; ...` for each struct of the header. Enums are numbers, and pointers to functions
/// are left out.
fn structs_of_header() -> Vec<String> {
    let text = header();
    let bodies =
        text.split("typedef struct ").filter_map(|it| it.split_once("} zt_").map(|it| it.0));
    let mut found: Vec<_> = bodies
        .map(|body| {
            let (name, fields) = body.split_once('{').unwrap();
            let fields =
                fields.split(';').map(in_one_form).filter(|it| !it.is_empty() && !it.contains('('));
            let fields: Vec<_> = fields.collect();
            let fields = fields.join("; ");
            let numbers = ["zt_verify", "zt_compression", "zt_digest"];
            let fields = numbers.iter().fold(fields, |fields, it| fields.replace(it, "uint32_t"));
            format!("struct {}: {fields}", name.trim())
        })
        .collect();
    found.sort();
    found
}

fn structs_of_code() -> Vec<String> {
    let text = read("src/options.rs");
    let bodies = text.split("#[repr(C)]").skip(1).map(|it| it.split_once("pub struct ").unwrap().1);
    let mut found: Vec<_> = bodies
        .map(|body| {
            let (name, fields) = body.split_once(" {").unwrap();
            let fields = fields.split_once("\n}").unwrap().0.lines();
            let fields =
                fields.filter_map(|line| line.trim().strip_prefix("pub ")?.strip_suffix(','));
            let fields = fields.filter(|field| !field.contains("Option<"));
            let fields = fields.map(|field| {
                let (name, of) = field.split_once(": ").unwrap();
                in_one_form(&format!("{} {name}", c_type(of)))
            });
            format!("struct {name}: {}", fields.collect::<Vec<_>>().join("; "))
        })
        .collect();
    found.sort();
    found
}

/// `ZT_OK = 0`, in the order of the header.
fn constants() -> Vec<String> {
    let text = header();
    let enums = text.split("enum {").skip(1).map(|it| it.split_once('}').unwrap().0);
    let constants = enums.flat_map(|body| body.split(','));
    constants.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

#[test]
fn the_header_has_the_numbers_of_the_code() {
    let (found, code) = (constants(), read("src/error.rs"));
    let statuses = code.lines().filter_map(|line| line.strip_prefix("pub const "));
    for status in statuses.map(|line| line.replace(": zt_status", "").replace(';', "")) {
        assert!(found.contains(&status), "{status}");
    }
    let dtypes = zt::DType::ALL.into_iter().zip(1..);
    for dtype in dtypes.map(|(it, number)| format!("ZT_{} = {number}", it.as_str().to_uppercase()))
    {
        assert!(found.contains(&dtype), "{dtype}");
    }
}

#[test]
fn the_header_declares_what_the_library_has() {
    assert_eq!(of_header(), of_code());
    assert_eq!(structs_of_header(), structs_of_code());
}

/// A change of this list is a change for every program that is linked: a line may only be added.
#[test]
fn the_recorded_functions_are_those_of_the_header() {
    let found = [of_header(), structs_of_header(), constants()].concat().join("\n") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("abi.txt"), &found).unwrap();
    }
    assert_eq!(read("abi.txt"), found);
    assert!(of_header().len() <= 60, "{}", of_header().len());
}
