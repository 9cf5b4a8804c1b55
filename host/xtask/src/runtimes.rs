//! Building the shared runtimes of languages into `target/runtimes`.
//!
//! componentize-py makes a component of CPython, the SDK and `sdk/python/runtime`. Its modules are
//! linked when an instance is made, so binaryen merges them into one, in which all is known: the
//! places of data and functions are constants, and calls between modules are direct. The program
//! `examples/runtime` of the sandbox does what is before and behind the merge.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::setup;
use crate::shell::{output, program, root, run, step, target};

/// The package of npm with wasm-merge and wasm-opt.
const BINARYEN: &str = "132.0.0";

/// What both tools may write. The sandbox takes no compact imports.
const FEATURES: [&str; 2] = ["-all", "--disable-compact-imports"];

/// All that is known when the modules are one is made constant.
const PASSES: [&str; 6] = [
    "--duplicate-import-elimination",
    "--remove-unused-module-elements",
    "--propagate-globals-globally",
    "--simplify-globals-optimizing",
    "--directize",
    "--remove-unused-module-elements",
];

/// Build the runtimes, with the server that is in the target folder.
pub(crate) fn run_task() -> Result<()> {
    setup::build_server()?;
    build()
}

/// Build the runtime of Python, unless it is newer than all that it is made of.
pub(crate) fn build() -> Result<()> {
    let (sdk, made) = (root().join("sdk/python"), target().join("runtimes"));
    let file = made.join("python.wasm");
    let finisher = target().join("debug/examples/runtime");
    if is_newer(&file, &[&sdk.join("runtime"), &sdk.join("src"), &root().join("wit"), &finisher])? {
        return Ok(());
    }
    step("building the runtime of Python (a minute)");
    let work = target().join("tmp/python-runtime");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    setup::install_runtime_tools()?;
    let binaryen = install_binaryen()?;
    let (component, library) = (work.join("component.wasm"), work.join("library"));
    // The library's module writes its file into its own folder.
    fs::create_dir_all(&library)?;
    fs::copy(sdk.join("runtime/library_app.py"), library.join("library_app.py"))?;
    componentize("library_app", "gristmill:plugin/processor", &[&library], &work.join("unused"))?;
    let (app, package) = (sdk.join("runtime"), sdk.join("src"));
    componentize("runtime_app", "gristmill:runtime/python", &[&app, &package], &component)?;
    let flat = work.join("flat");
    let listed = output(program(&finisher).arg("flatten").arg(&component).arg(&flat))?;
    let (merged, optimised) = (work.join("merged.wasm"), work.join("optimised.wasm"));
    run(program("node")
        .arg(binaryen.join("wasm-merge"))
        .args(listed.lines())
        .args(["--rename-export-conflicts", "-g", "-o"])
        .arg(&merged)
        .args(FEATURES))?;
    // Only the exports that the component needs are left: the passes remove what no export uses.
    let cut = work.join("cut.wasm");
    run(program(&finisher).arg("cut").arg(&merged).arg(&cut))?;
    run(program("node")
        .arg("--stack-size=4000")
        .arg(binaryen.join("wasm-opt"))
        .arg(&cut)
        .args(FEATURES)
        .args(PASSES)
        .args(["-g", "-o"])
        .arg(&optimised))?;
    fs::create_dir_all(&made)?;
    let unfinished = work.join("python.wasm");
    let mut finish = program(&finisher);
    finish.arg("finish").arg(&component).arg(&optimised).arg(library.join("library.tar"));
    run(finish.arg(&unfinished))?;
    fs::rename(&unfinished, &file)?;
    Ok(fs::remove_dir_all(work)?)
}

fn componentize(app: &str, world: &str, paths: &[&Path], out: &Path) -> Result<()> {
    let sdk = root().join("sdk/python");
    let mut build = program(setup::install_componentize_py()?);
    build.arg("-d").arg(root().join("wit")).arg("-d").arg(sdk.join("runtime/wit"));
    build.args(["-w", world, "componentize", app]);
    for path in paths {
        build.arg("-p").arg(path);
    }
    // Python writes compiled modules beside its sources otherwise.
    run(build.env("PYTHONDONTWRITEBYTECODE", "1").arg("-o").arg(out))
        .with_context(|| format!("componentize-py cannot build {app}"))
}

/// The folder with binaryen's programs.
fn install_binaryen() -> Result<std::path::PathBuf> {
    let folder = target().join(format!("binaryen-{BINARYEN}"));
    let programs = folder.join("node_modules/binaryen/bin");
    if !programs.join("wasm-merge").exists() {
        step(&format!("installing binaryen {BINARYEN}"));
        fs::create_dir_all(&folder)?;
        let package = format!("binaryen@{BINARYEN}");
        run(program("npm")
            .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&folder)
            .arg(package))?;
    }
    Ok(programs)
}

/// Whether the file is newer than all files in these places.
fn is_newer(file: &Path, places: &[&Path]) -> Result<bool> {
    let Ok(made) = fs::metadata(file).and_then(|about| about.modified()) else {
        return Ok(false);
    };
    let mut places: Vec<_> = places.iter().map(|path| path.to_path_buf()).collect();
    while let Some(place) = places.pop() {
        let about = fs::metadata(&place).with_context(|| place.display().to_string())?;
        if about.is_dir() {
            let entries = fs::read_dir(&place)?.map(|entry| Ok(entry?.path()));
            let inner = entries.collect::<Result<Vec<_>>>()?;
            places.extend(inner.into_iter().filter(|path| !path.ends_with("__pycache__")));
        } else if about.modified()? > made {
            return Ok(false);
        }
    }
    Ok(true)
}
