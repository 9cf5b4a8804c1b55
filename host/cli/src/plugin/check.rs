//! `gristmill plugin check`: what a plugin imports, exports and needs, and how long a server takes
//! to load it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use gristmill_sandbox::is_archive;

use super::build::{Built, build};
use super::report::Checked;
use super::{children, loading, report};
use crate::args::required;
use crate::output::{self, Output};

pub(crate) fn command() -> Command {
    Command::new("check")
        .about("Show what a plugin imports, exports and needs, and compile it as a server does")
        .after_help(
            "Examples:\n  \
             gristmill plugin check digits.wasm\n  \
             gristmill plugin check plugins/rust/digits       build it first\n  \
             gristmill plugin check digits.wasm --output json\n\n\
             The limits are those of a server without configuration. No server is needed.",
        )
        .args([
            Arg::new("plugin")
                .value_name("PLUGIN")
                .default_value(".")
                .help("The file of a plugin, or a folder, which is built first"),
            output::argument(),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let plugin = required(matches, "plugin")?;
    let plugin = PathBuf::from(plugin);
    let (path, checked) = if plugin.is_dir() {
        let Built { path, checked } = build(&plugin, None)?;
        (path, checked)
    } else {
        let file = std::fs::read(&plugin).with_context(|| plugin.display().to_string())?;
        let checked = match is_archive(&file) {
            true => Checked::Archive(file),
            false => Checked::Component(children::check(file, &plugin)?),
        };
        (plugin, checked)
    };
    eprintln!("compiling (up to a minute for JavaScript, and for Python the first time)");
    let loaded = loading::load(checked.file()).with_context(|| path.display().to_string())?;
    report::print(&path, &checked, Some(&loaded), Output::of(matches))
}
