//! `gristmill plugin publish`: put a plugin into a registry.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

use super::build::build;
use crate::args::{required, word};
use crate::oci::{self, Reference, RegistryAccess};

pub(crate) fn command() -> Command {
    Command::new("publish")
        .about("Put a plugin into a registry of OCI artifacts")
        .after_help(
            "Examples:\n  \
             gristmill plugin publish reader/ oci://registry.example/acme/reader:1.2\n  \
             cosign sign --key cosign.key registry.example/acme/reader@sha256:...\n  \
             gristmill plugin push oci://registry.example/acme/reader:1.2 --tenant acme\n\n\
             It prints the plugin's name with the digest of its manifest, which is what cosign \
             signs. No server of Gristmill is asked.",
        )
        .args([
            word("plugin", "PLUGIN")
                .help("The file of a plugin, or a folder, which is built first"),
            word("reference", "REFERENCE").help("Its name: oci://REGISTRY/REPOSITORY:TAG"),
        ])
        .args(oci::arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    // The name is checked before the build, which may take a minute.
    let text = required(matches, "reference")?;
    let reference = Reference::of(text)?;
    let reference = reference.with_context(|| {
        format!("{text:?} is not a name: must be oci://REGISTRY/REPOSITORY:TAG")
    })?;
    let plugin = Path::new(required(matches, "plugin")?);
    let file = if plugin.is_dir() { build(plugin, None)?.path } else { plugin.to_owned() };
    let body = std::fs::read(&file).with_context(|| file.display().to_string())?;
    println!("{}", oci::publish(body, &reference, &RegistryAccess::of(matches))?);
    Ok(())
}
