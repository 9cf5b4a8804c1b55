//! `gristmill plugin check`: what a component imports, exports and needs, and how long it takes to
//! compile.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use gristmill_client::block_on;
use gristmill_core::{BufferPool, Digest};
use gristmill_sandbox::{CheckedComponent, ComponentError, Sandbox, SandboxConfig};

use super::build::{Built, build};
use super::children;
use super::report::{Compiled, Report};
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
        .arg(
            Arg::new("plugin")
                .value_name("PLUGIN")
                .default_value(".")
                .help("The file of a component or core module, or a folder, which is built first"),
        )
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let plugin = matches.get_one::<String>("plugin").context("PLUGIN is missing")?;
    let plugin = PathBuf::from(plugin);
    let (path, checked) = if plugin.is_dir() {
        let Built { path, checked } = build(&plugin, None)?;
        (path, checked.context(ComponentError::Archive)?)
    } else {
        let checked = check_file(&plugin)?;
        (plugin, checked)
    };
    eprintln!("compiling (up to a minute for Python and JavaScript)");
    let compiled = compile(&checked).with_context(|| path.display().to_string())?;
    Report { path: &path, checked: &checked, compiled: Some(compiled) }.print(Output::of(matches));
    Ok(())
}

fn check_file(path: &Path) -> Result<CheckedComponent> {
    let file = std::fs::read(path).with_context(|| path.display().to_string())?;
    children::check(file, path)
}

/// Compile it on one core, and check it against the contract.
fn compile(checked: &CheckedComponent) -> Result<Compiled> {
    let cache = tempfile::tempdir()?;
    let usual = SandboxConfig::new(cache.path().to_owned());
    let config = SandboxConfig { concurrent_calls: 1, compiler: children::compiler(), ..usual };
    let sandbox = Sandbox::new(&config, BufferPool::new(0))?;
    let component = &checked.component;
    let started = Instant::now();
    let load =
        async { anyhow::Ok(sandbox.load(Digest::of(component), component.clone().into()).await?) };
    let plugin = block_on(load)?;
    let time = started.elapsed();
    Ok(Compiled { time, initial_memory_bytes: plugin.initial_memory_bytes() })
}
