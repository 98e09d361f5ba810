//! Mutants of a kind as files, for other readers to judge: `cargo xtask verdicts`.
//!
//! ```text
//! mutants KIND COUNT SEED FOLDER
//! ```
//!
//! FOLDER gets NUMBER.KIND for each, and `plan.json` with the recipe of each in this order.
#![allow(clippy::unwrap_used, reason = "a tool of developers")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::json;
use zt::DigestAlgorithm;
use zt_conformance::hash;
use zt_conformance::mutation::{self, Base, Numbers};

/// Files that other readers take long for, or whose many tensors would fill the data.
const LONGEST: usize = 12 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, count, seed, folder] = &arguments[..] else {
        return Err("usage: mutants KIND COUNT SEED FOLDER".into());
    };
    let mut bases = mutation::bases(kind);
    bases.retain(|base| base.bytes.len() <= LONGEST && !base.name.ends_with(".json"));
    let is_sound = |base: &&Base| !base.name.contains("bad_") && !base.name.contains("invalid/");
    let sound: Vec<Base> = bases.iter().filter(is_sound).cloned().collect();
    let mut numbers = Numbers::of(seed.parse()?);
    let mut plan = Vec::new();
    for number in 0..count.parse()? {
        // What was refused before is seldom taken with one more fault.
        let all = numbers.below(8) == 0;
        let (base, other) = (numbers.pick(if all { &bases } else { &sound }), numbers.pick(&bases));
        // JSON's readers keep 53 bits of a number.
        let seed = numbers.draw() >> 16;
        let bytes = mutation::mutant(&base.bytes, &other.bytes, seed);
        plan.push(json!({
            "base": base.name,
            "other": other.name,
            "seed": seed,
            "sha256": hash(DigestAlgorithm::Sha256, &bytes)[..12],
        }));
        let number: usize = number;
        fs::write(Path::new(folder).join(format!("{number}.{kind}")), bytes)?;
    }
    let path = Path::new(folder).join("plan.json");
    Ok(fs::write(path, serde_json::to_vec(&plan)?)?)
}
