//! Lists the files of the SDKs and of the contract, which the library embeds (`src/plugin/sdk.rs`):
//! `gristmill plugin new` and `build` work without a clone of this repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The files and folders that a plugin's build or its unit tests need, and the templates. The SDKs'
/// own tests are left out.
const PARTS: [&str; 20] = [
    "wit",
    "sdk/rust/Cargo.toml",
    "sdk/rust/src",
    "sdk/rust/template",
    "sdk/python/pyproject.toml",
    "sdk/python/README.md",
    "sdk/python/src",
    "sdk/python/template",
    "sdk/js/build",
    "sdk/js/package.json",
    "sdk/js/src",
    "sdk/js/template",
    "sdk/js/types",
    "sdk/c/bindings",
    "sdk/c/build.sh",
    "sdk/c/host",
    "sdk/c/include",
    "sdk/c/src",
    "sdk/c/template",
    "sdk/c/test.sh",
];

/// Folders that are left out: the old contracts, and what tools leave.
const LEFT_OUT: [&str; 5] = ["0.1.0", "0.2.0", "__pycache__", "node_modules", "target"];

fn main() -> io::Result<()> {
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
        add_files(&root.join(part), &mut files)?;
    }
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        let path = file.strip_prefix(&root).map_err(io::Error::other)?;
        let (path, file) = (path.display().to_string(), file.display().to_string());
        let _ = writeln!(list, "    File {{ path: {path:?}, content: include_bytes!({file:?}) }},");
    }
    list.push(']');
    fs::write(Path::new(&variable("OUT_DIR")?).join("sdk_files.rs"), list)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        let is_built = path.extension().is_some_and(|end| end == "wasm" || end == "pyc");
        files.extend((!is_built).then(|| path.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
            add_files(&path.join(name), files)?;
        }
    }
    Ok(())
}
