//! Lists the files of the SDKs and of the contract, which the library embeds (`src/plugin/sdk.rs`):
//! `gristmill plugin new` and `build` work without a clone of this repository. The bindings of the
//! C SDK are made here, from the contract.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

/// The files and folders that a plugin's build or its unit tests need, and the templates. The SDKs'
/// own tests are left out.
const PARTS: [&str; 19] = [
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
    "sdk/c/build.sh",
    "sdk/c/host",
    "sdk/c/include",
    "sdk/c/src",
    "sdk/c/template",
    "sdk/c/test.sh",
];

/// Folders that are left out: the old contracts, and what tools leave.
const LEFT_OUT: [&str; 5] = ["0.1.0", "0.2.0", "__pycache__", "node_modules", "target"];

/// Where the C SDK has its bindings.
const BINDINGS: &str = "sdk/c/bindings";

/// The worlds whose type is linked into a plugin in C.
const WORLDS: [&str; 6] =
    ["imports", "preprocessor", "postprocessor", "processor", "handler", "initializer"];

fn main() -> Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
        add_files(&root.join(part), &mut files)?;
    }
    let mut embedded = Vec::new();
    for file in files {
        embedded.push((file.strip_prefix(&root)?.display().to_string(), file));
    }
    let bindings = out.join("bindings");
    make_bindings(&root.join("wit"), &out.join("wit"), &bindings)?;
    for entry in fs::read_dir(&bindings)? {
        let entry = entry?;
        let path = format!("{BINDINGS}/{}", entry.file_name().display());
        embedded.push((path, entry.path()));
    }
    embedded.sort();
    let mut list = String::from("[\n");
    for (path, file) in embedded {
        let file = file.display().to_string();
        writeln!(list, "    File {{ path: {path:?}, content: include_bytes!({file:?}) }},")?;
    }
    list.push(']');
    fs::write(out.join("sdk_files.rs"), list)?;
    Ok(())
}

/// Write the host's functions for C and the types of the worlds into the folder `bindings`. The
/// exports of the worlds are not kept: `sdk/c/src/export_*.c` has them. `copy` is a folder for a
/// contract in which every plugin may import the functions of handlers: a plugin imports those that
/// it calls.
fn make_bindings(wit: &Path, copy: &Path, bindings: &Path) -> Result<()> {
    for folder in [copy, bindings] {
        fs::create_dir_all(folder)?;
        for entry in fs::read_dir(folder)? {
            fs::remove_file(entry?.path())?;
        }
    }
    for world in WORLDS {
        let mut made = bindings_of(wit, world)?;
        let name = format!("{world}_component_type.o");
        let object = made.remove(&name).with_context(|| format!("{world} has no type"))?;
        fs::write(bindings.join(name), object)?;
    }
    for entry in fs::read_dir(wit)? {
        let file = entry?.path();
        if let Some(name) =
            file.file_name().filter(|_| file.extension().is_some_and(|end| end == "wit"))
        {
            let text = fs::read_to_string(&file)?;
            let text =
                text.replace("\nworld imports {\n", "\nworld imports {\n    import models;\n");
            fs::write(copy.join(name), text)?;
        }
    }
    let mut made = bindings_of(copy, "imports")?;
    for name in ["imports.h", "imports.c"] {
        let text = made.remove(name).with_context(|| format!("there is no {name}"))?;
        fs::write(bindings.join(name), text)?;
    }
    Ok(())
}

fn bindings_of(wit: &Path, world: &str) -> Result<Files> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    Ok(files)
}

fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
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
