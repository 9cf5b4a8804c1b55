//! `gristmill plugin content`: what was uploaded, as the server gives it back: sources as files, a
//! component as its file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use gristmill_sandbox::{Archive, is_archive};

use super::within::refuse_full;
use crate::admin::{self, Admin};
use crate::args::{option, text, word};
use crate::names;

/// The media type of a plugin's file.
const WASM: &str = "application/wasm";

pub(crate) fn command() -> Command {
    Command::new("content")
        .about("Write the files of a plugin that is live: its sources, or its component")
        .after_help(
            "Examples:\n  \
             gristmill plugin content digits --tenant acme                 into the folder digits\n  \
             gristmill plugin content digits --tenant acme --folder live\n  \
             diff -r live plugins/digits\n\n\
             A plugin in Python or JavaScript that was pushed from a folder is its sources. Of any \
             other the folder gets the component, NAME.wasm. Give the token in \
             GRISTMILL_ADMIN_TOKEN rather than with --token.",
        )
        .args([
            word("plugin", "PLUGIN").help("The plugin's name"),
            names::tenant_flag("The plugin's tenant"),
            option("folder", "DIR")
                .help("The folder to make; an existing one must be empty [default: PLUGIN]"),
        ])
        .args(admin::arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let tenant = names::given_tenant(matches)?;
    let plugin = names::required(matches, "plugin", "PLUGIN")?;
    let folder = PathBuf::from(text(matches, "folder").unwrap_or(plugin.as_str()));
    refuse_full(&folder)?;
    let file = admin.file(&format!("tenants/{tenant}/plugins/{plugin}/content"), WASM);
    let file = file.with_context(|| format!("cannot read {tenant}/{plugin}"))?;
    if !is_archive(&file) {
        write(&folder, &format!("{plugin}.wasm"), &file)?;
        println!("{} has the component of {tenant}/{plugin}", folder.display());
        return Ok(());
    }
    // It refuses paths that would lead out of the folder.
    let Archive { manifest, files } = Archive::read(&file)?;
    for (path, content) in &files {
        write(&folder, path, content)?;
    }
    let language = manifest.language.name();
    println!("{} has the sources of {tenant}/{plugin}, in {language}", folder.display());
    Ok(())
}

fn write(folder: &Path, path: &str, content: &[u8]) -> Result<()> {
    let path = folder.join(path);
    let shown = || path.display().to_string();
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(shown)?;
    }
    // The folder was empty: what is there now is of somebody else, or differs in case only.
    let written = File::create_new(&path).and_then(|mut file| file.write_all(content));
    written.with_context(shown)
}
