//! `gristmill plugin build`: compile a plugin in any language, encode it as a component, check it,
//! and report.

mod c;
mod js;
mod module;
mod python;
mod rust;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_sandbox::{CheckedComponent, add_sources};

use self::module::Module;
pub(crate) use self::sources::sources;
use super::children;
use super::language::Language;
use super::report::Report;
use super::within::inside;
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
             It can be deleted at any time.",
        )
        .arg(Arg::new("folder").value_name("FOLDER").default_value(".").help("The plugin's folder"))
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FILE")
                .help("The component's file [default: NAME.wasm in the plugin's folder]"),
        )
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<String>("folder").context("FOLDER is missing")?;
    let out = matches.get_one::<String>("out").map(PathBuf::from);
    let Built { path, checked } = build(Path::new(folder), out)?;
    Report { path: &path, checked: &checked, compiled: None }.print(Output::of(matches));
    Ok(())
}

/// A component on disk.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    pub(crate) checked: CheckedComponent,
}

/// Build the plugin in `folder`.
pub(crate) fn build(folder: &Path, out: Option<PathBuf>) -> Result<Built> {
    let compile = match Language::of(folder)? {
        Language::Rust => rust::compile,
        Language::Python => python::compile,
        Language::Js => js::compile,
        Language::C => c::compile,
    };
    // Before the build, so that a file that changes meanwhile is not in it.
    let sources = sources(folder)?;
    let Module { name, file, is_of_folder } = compile(folder)?;
    let mut checked = children::check(file, Path::new(&name))?;
    if let Some(sources) = sources.filter(|_| is_of_folder) {
        add_sources(&mut checked.component, sources);
    }
    // Its manifest names the plugin, and someone else may have written that.
    let is_file_name = Path::new(&name).file_name() == Some(name.as_ref());
    ensure!(is_file_name, "the plugin's name is {name:?}: must not be a path");
    let path = match out {
        Some(path) => path,
        None => inside(folder, &format!("{name}.wasm"))?,
    };
    std::fs::write(&path, &checked.component).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked })
}
