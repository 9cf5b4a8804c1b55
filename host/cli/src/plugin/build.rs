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
use gristmill_core::Digest;
use gristmill_sandbox::{Archive, CheckedComponent, add_sources};
use serde_json::json;

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
             It can be deleted at any time.\n\n\
             A plugin in Python with sources = true in [tool.gristmill] is not compiled: its files \
             are written to NAME.tar, and the server loads them into its own Python.",
        )
        .arg(Arg::new("folder").value_name("FOLDER").default_value(".").help("The plugin's folder"))
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FILE")
                .help("The plugin's file [default: NAME.wasm or NAME.tar in its folder]"),
        )
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<String>("folder").context("FOLDER is missing")?;
    let out = matches.get_one::<String>("out").map(PathBuf::from);
    let Built { path, checked } = build(Path::new(folder), out)?;
    match checked {
        Some(checked) => {
            Report { path: &path, checked: &checked, compiled: None }.print(Output::of(matches));
        }
        None => report_archive(&path, Output::of(matches))?,
    }
    Ok(())
}

/// A plugin on disk.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    /// The findings about a component. An archive of sources has none.
    pub(crate) checked: Option<CheckedComponent>,
}

/// Build the plugin in `folder`.
pub(crate) fn build(folder: &Path, out: Option<PathBuf>) -> Result<Built> {
    let language = Language::of(folder)?;
    if matches!(language, Language::Python) && python::is_archive(folder)? {
        return build_archive(folder, out);
    }
    let compile = match language {
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
    let path = path_of(folder, out, &name, "wasm")?;
    std::fs::write(&path, &checked.component).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked: Some(checked) })
}

/// Write the sources of the plugin in `folder` as an archive, which the server loads into the
/// language's shared runtime.
fn build_archive(folder: &Path, out: Option<PathBuf>) -> Result<Built> {
    let (name, archive) = python::archive(folder)?;
    let path = path_of(folder, out, &name, "tar")?;
    std::fs::write(&path, archive.write()?).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked: None })
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

fn report_archive(path: &Path, output: Output) -> Result<()> {
    let file = std::fs::read(path).with_context(|| path.display().to_string())?;
    let Archive { manifest, files } = Archive::read(&file)?;
    let (digest, language) = (Digest::of(&file), manifest.language.name());
    match output {
        Output::Text => {
            println!("archive    {}", path.display());
            println!("size       {} KiB, {} files", file.len().div_ceil(1024), files.len());
            println!("runtime    {language}, loads {}", manifest.app);
            println!("digest     {digest}");
        }
        Output::Json => println!(
            "{}",
            json!({
                "archive": path.display().to_string(),
                "size_bytes": file.len(),
                "files": files.keys().collect::<Vec<_>>(),
                "runtime": language,
                "app": manifest.app,
                "digest": digest.to_string(),
            })
        ),
    }
    Ok(())
}
