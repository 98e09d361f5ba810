//! Writes the files that `cargo xtask interop` has the official Python packages read.
//!
//! ```text
//! cargo run -p zt-conformance --example interop_write -- FOLDER
//! ```
//!
//! Beside each `NAME.zt` comes the truth, `NAME.json`: what the official readers must find. It is
//! made from the values below, side by side with the bytes and without any reader of ours, so that
//! a fault of writer and reader that cancel out still shows.

mod contents;
mod object;

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use zt::{Attributes, File, WriteOptions};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS};

use object::Object;

/// One file and everything that is in it.
struct Planned {
    name: &'static str,
    options: WriteOptions,
    attributes: Option<(Attributes, serde_json::Value)>,
    objects: Vec<Object>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("usage: interop_write FOLDER")?;
    for file in contents::files() {
        write_whole(&folder, &file)?;
        write_truth(&folder, &file)?;
    }
    let streamed = contents::streamed();
    write_in_pieces(&folder, &streamed)?;
    write_truth(&folder, &streamed)?;
    let exported = contents::exported();
    write_safetensors(&folder, &exported)?;
    write_truth(&folder, &exported)
}

fn write_truth(folder: &Path, file: &Planned) -> Result<(), Box<dyn Error>> {
    let mut objects = serde_json::Map::new();
    for object in &file.objects {
        objects.insert(object.name.clone(), object.truth()?);
    }
    let attributes = file.attributes.as_ref().map(|(_, truth)| truth);
    let truth = json!({ "attributes": attributes, "objects": objects });
    let path = folder.join(file.name).with_extension("json");
    Ok(fs::write(path, serde_json::to_vec_pretty(&truth)?)?)
}

/// Object by object, as most programs write.
fn write_whole(folder: &Path, file: &Planned) -> Result<(), Box<dyn Error>> {
    let path = folder.join(file.name).with_extension("zt");
    let mut writer = file.options.clone().empty_names(true).create(path)?;
    if let Some((attributes, _)) = &file.attributes {
        writer.set_attributes(attributes.clone())?;
    }
    for object in &file.objects {
        writer.add(&object.name, object)?;
    }
    Ok(writer.finish()?)
}

/// Component by component, in pieces that fit neither elements nor frames.
fn write_in_pieces(folder: &Path, file: &Planned) -> Result<(), Box<dyn Error>> {
    let path = folder.join(file.name).with_extension("zt");
    let mut writer = file.options.clone().create(path)?;
    for object in &file.objects {
        let mut parts = writer.begin(&object.name, &object.shape, object.format)?;
        for (role, column) in &object.components {
            let mut sink = parts.component(*role, column.dtype, column.logical_type())?;
            for piece in column.bytes.chunks(999_983) {
                sink.write_all(piece)?;
            }
            sink.finish()?;
        }
        parts.finish()?;
    }
    Ok(writer.finish()?)
}

/// Through a compressed `.zt` in memory, as a conversion has it.
fn write_safetensors(folder: &Path, file: &Planned) -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::new();
    let mut writer = file.options.clone().to_writer(&mut bytes)?;
    for object in &file.objects {
        writer.add(&object.name, object)?;
    }
    writer.finish()?;
    let path = folder.join(file.name).with_extension("safetensors");
    let ours = Input::from(File::from_bytes(bytes)?);
    let options = ConvertOptions::new(SAFETENSORS).overwrite(true);
    Kinds::builtin().convert_to_path(&[ours], path, &options)?;
    Ok(())
}
