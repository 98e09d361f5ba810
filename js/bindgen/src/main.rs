//! `zt-bindgen MODULE.wasm FOLDER`: writes `zt.js` and `zt_bg.wasm` for browsers and node into the folder.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, folder] = &arguments[..] else {
        eprintln!("usage: zt-bindgen MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen
        .input_path(module)
        .out_name("zt")
        // The package has declarations of its own, for its own classes.
        .typescript(false)
        // `__wbg_reset_state`: a new module in place of one that has trapped.
        .reset_state_function(true)
        .web(true)
        .and_then(|bindgen| bindgen.generate(folder));
    if let Err(error) = written {
        eprintln!("zt-bindgen: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
