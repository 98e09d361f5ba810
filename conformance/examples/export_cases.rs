//! Writes the cases of `src/cases` to `corpus/own`, where other programs find them:
//! `cargo run -p zt-conformance --example export_cases`, then `cargo xtask corpus --write`.

use std::{fs, io};

use zt_conformance::{cases, corpus};

fn main() -> io::Result<()> {
    let folder = corpus::folder().join("corpus").join("own");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let cases = cases::all();
    for case in &cases {
        let folder = folder.join(case.folder.as_str());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{}.zt", case.name)), &case.bytes)?;
        fs::write(folder.join(format!("{}.json", case.name)), case.json())?;
    }
    println!("{} cases in {}", cases.len(), folder.display());
    Ok(())
}
