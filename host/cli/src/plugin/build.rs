//! `gristmill plugin build`: compile a plugin, encode it as a component and check it, or write the
//! archive of its sources and load them, and report.

mod assets;
mod c;
mod files;
mod js;
mod module;
mod python;
mod rust;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_sandbox::{Archive, add_assets, add_sources, check_assets};

pub(super) use self::files::ASSETS;
use self::module::Module;
pub(crate) use self::sources::sources;
use super::language::Language;
use super::loading::Loaded;
use super::report::Checked;
use super::within::inside;
use super::{children, loading, report};
use crate::args::{option, required, text};
use crate::output::{self, Output};

pub(crate) fn command() -> Command {
    Command::new("build")
        .about("Build a plugin in Rust, Python, JavaScript or C, and check it")
        .after_help(
            "Examples:\n  \
             gristmill plugin build                           the plugin in this folder\n  \
             gristmill plugin build plugins/rust/digits --out digits.wasm\n\n\
             The folder's files say the language:\n  \
             Rust        Cargo.toml with crate-type = [\"cdylib\"]\n  \
             Python      pyproject.toml with [tool.gristmill]\n  \
             JavaScript  package.json with plugin.js or plugin.ts\n  \
             C           Makefile with WORLD and SOURCES, and plugin.c\n\n\
             A build in Rust runs build.rs and procedural macros, and one in C the Makefile, as cargo \
             and make do, with your rights. Build what you do not trust in a container.\n\n\
             SDKs, componentize-py, packages of npm and compiled crates are kept in one folder for \
             all plugins: GRISTMILL_BUILD_DIR, otherwise gristmill in $XDG_CACHE_HOME or ~/.cache. \
             It can be deleted whenever no `gristmill plugin dev` runs.\n\n\
             The files in the folder assets/ become a part of the plugin, which opens them by their \
             paths in it.\n\n\
             A plugin in Python or JavaScript is not compiled: its files are written to NAME.tar, \
             and the server loads them into its own interpreter. The build loads them, too, and says \
             what is wrong. With component = true in [tool.gristmill], or \"gristmill\": \
             { \"component\": true } in package.json, it is compiled with an interpreter of its own.",
        )
        .args([
            Arg::new("folder").value_name("FOLDER").default_value(".").help("The plugin's folder"),
            option("out", "FILE")
                .short('o')
                .help("The plugin's file [default: NAME.wasm or NAME.tar in its folder]"),
            output::argument(),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = required(matches, "folder")?;
    let out = text(matches, "out").map(PathBuf::from);
    let Built { path, checked } = build(Path::new(folder), out)?;
    let loaded = match &checked {
        Checked::Component(_) => None,
        Checked::Archive(file) => load_sources(file)?,
    };
    report::print(&path, &checked, loaded.as_ref(), Output::of(matches))
}

/// Load sources, as the compiler would look at them in other languages. None if this program has
/// no runtime for them.
fn load_sources(file: &[u8]) -> Result<Option<Loaded>> {
    eprintln!("loading the sources (up to a minute the first time, to compile the runtime)");
    match loading::load(file) {
        Err(error) if loading::is_without_runtime(&error) => {
            eprintln!("the sources were not loaded: {error:#}");
            Ok(None)
        }
        loaded => loaded.map(Some),
    }
}

/// A plugin on disk.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    pub(super) checked: Checked,
}

/// Build the plugin in `folder`.
pub(crate) fn build(folder: &Path, out: Option<PathBuf>) -> Result<Built> {
    let compile = match Language::of(folder)? {
        Language::Rust => rust::compile,
        Language::C => c::compile,
        Language::Python if python::is_component(folder)? => {
            // The lock file is one of the sources.
            python::lock(folder)?;
            python::compile
        }
        Language::Js if js::is_component(folder)? => js::compile,
        Language::Python => return write_archive(folder, out, python::archive(folder)?),
        Language::Js => return write_archive(folder, out, js::archive(folder)?),
    };
    // Before the build, so that a file that changes meanwhile is not in it.
    let sources = sources(folder)?;
    let Module { name, file, is_of_folder } = compile(folder)?;
    let mut checked = children::check(file, Path::new(&name))?;
    add_assets(&mut checked.component, &assets::assets(folder)?)?;
    if let Some(sources) = sources.filter(|_| is_of_folder) {
        add_sources(&mut checked.component, sources);
    }
    let path = path_of(folder, out, &name, "wasm")?;
    std::fs::write(&path, &checked.component).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked: Checked::Component(checked) })
}

/// Write the sources of the plugin in `folder` as an archive, which the server loads into the
/// language's shared runtime.
fn write_archive(
    folder: &Path,
    out: Option<PathBuf>,
    (name, archive): (String, Archive),
) -> Result<Built> {
    let files = archive.files.iter();
    check_assets(files.filter_map(|(path, file)| Some((path.strip_prefix(ASSETS)?, file.len()))))?;
    let (path, file) = (path_of(folder, out, &name, "tar")?, archive.write()?);
    std::fs::write(&path, &file).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked: Checked::Archive(file) })
}

/// Where the plugin is written.
fn path_of(folder: &Path, out: Option<PathBuf>, name: &str, end: &str) -> Result<PathBuf> {
    // Its manifest names the plugin, and someone else may have written that.
    let is_file_name = Path::new(name).file_name() == Some(name.as_ref());
    ensure!(is_file_name, "the plugin's name is {name:?}: must not be a path");
    match out {
        Some(path) => Ok(path),
        None => inside(folder, &format!("{name}.{end}")),
    }
}
