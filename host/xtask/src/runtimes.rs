//! Building the shared runtimes of languages into `target/runtimes`.
//!
//! The language's tool makes a component of the interpreter, the SDK and the language's part of
//! `sdk/*/runtime`. Its modules are linked when an instance is made, so binaryen merges them into
//! one, in which all is known: the places of data and functions are constants, and calls between
//! modules are direct. The program `examples/runtime` of the sandbox does what is before and behind
//! the merge.

pub(crate) mod javascript;
mod made;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};

use self::made::Made;
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

/// Makes the component of a language, in a folder.
type Make = fn(&Path) -> Result<Made>;

/// Build the runtimes of all languages side by side, since their tools use one core each; but for
/// those that are newer than all that they are made of.
pub(crate) fn build() -> Result<()> {
    let languages: [(&str, Vec<PathBuf>, Make); 2] = [
        ("python", python::parts(), python::make),
        ("javascript", javascript::parts(), javascript::make),
    ];
    let common = [root().join("sdk/runtime.wit"), root().join("wit"), finisher()];
    let mut old = Vec::new();
    for (language, parts, make) in languages {
        if !is_newer(&file_of(language), parts.iter().chain(&common))? {
            old.push((language, make));
        }
    }
    if old.is_empty() {
        return Ok(());
    }
    setup::install_runtime_tools()?;
    let binaryen = install_binaryen()?;
    thread::scope(|scope| {
        let build = |(language, make)| {
            let binaryen = &binaryen;
            scope.spawn(move || build_one(language, make, binaryen))
        };
        let building: Vec<_> = old.into_iter().map(build).collect();
        building.into_iter().try_for_each(|building| {
            building.join().map_err(|_| anyhow!("the build of a runtime panicked"))?
        })
    })
}

fn build_one(language: &str, make: Make, binaryen: &Path) -> Result<()> {
    step(&format!("building the runtime of {language} (a minute)"));
    let work = target().join(format!("tmp/{language}-runtime"));
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let unfinished = merged(&make(&work)?, &work, binaryen)?;
    fs::create_dir_all(target().join("runtimes"))?;
    fs::rename(&unfinished, file_of(language))?;
    Ok(fs::remove_dir_all(work)?)
}

fn file_of(language: &str) -> PathBuf {
    target().join(format!("runtimes/{language}.wasm"))
}

/// The program that does what is before and behind the merge.
fn finisher() -> PathBuf {
    target().join("debug/examples/runtime")
}

/// The runtime's file in the folder `work`: the component with one module.
fn merged(of: &Made, work: &Path, binaryen: &Path) -> Result<PathBuf> {
    let (finisher, flat) = (finisher(), work.join("flat"));
    let listed = output(program(&finisher).arg("flatten").arg(&of.component).arg(&flat))?;
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
    let unfinished = work.join("runtime.wasm");
    let mut finish = program(&finisher);
    finish.arg("finish").arg(&of.component).arg(&optimised).arg(&unfinished).args(&of.library);
    run(&mut finish)?;
    Ok(unfinished)
}

/// The folder with binaryen's programs.
fn install_binaryen() -> Result<PathBuf> {
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

/// Folders in which tools leave files.
const MADE: [&str; 2] = ["__pycache__", "node_modules"];

/// Whether the file is newer than all files in these places.
fn is_newer<'a>(file: &Path, places: impl Iterator<Item = &'a PathBuf>) -> Result<bool> {
    let Ok(made) = fs::metadata(file).and_then(|about| about.modified()) else {
        return Ok(false);
    };
    let mut places: Vec<_> = places.cloned().collect();
    while let Some(place) = places.pop() {
        let about = fs::metadata(&place).with_context(|| place.display().to_string())?;
        if about.is_dir() {
            let entries = fs::read_dir(&place)?.map(|entry| Ok(entry?.path()));
            let inner = entries.collect::<Result<Vec<_>>>()?;
            let is_made = |path: &PathBuf| MADE.iter().any(|name| path.ends_with(name));
            places.extend(inner.into_iter().filter(|path| !is_made(path)));
        } else if about.modified()? > made {
            return Ok(false);
        }
    }
    Ok(true)
}
