//! `cargo xtask deny`: cargo-deny holds the dependencies against `deny.toml`.

use std::path::PathBuf;

use anyhow::Result;

use crate::shell::{cargo, program, run, step, target};

const VERSION: &str = "0.20.2";

/// Check licences, bans and sources. This needs no network where all crates are downloaded.
pub(crate) fn check() -> Result<()> {
    let deny = install()?;
    // Offline, cargo-deny reads the sources of all crates, of those for other platforms too.
    run(cargo().args(["fetch", "--locked"]))?;
    run(program(deny).args(["--offline", "check", "bans", "licenses", "sources"]))
}

/// Check the advisories, too. Their database is fetched from GitHub.
pub(crate) fn check_with_advisories() -> Result<()> {
    check()?;
    run(program(install()?).args(["check", "advisories"]))
}

/// cargo-deny in `target/cargo-deny`. Compiled without optimisation: that takes 1.5 minutes on 2
/// cores, and the checks take 3 seconds.
fn install() -> Result<PathBuf> {
    let folder = target().join(format!("cargo-deny/{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.exists() {
        step(&format!("installing cargo-deny {VERSION}"));
        let mut install = cargo();
        install.args(["install", "cargo-deny", "--locked", "--debug", "--version", VERSION]);
        install.arg("--root").arg(&folder);
        install.env("CARGO_TARGET_DIR", folder.join("build")).env("CARGO_PROFILE_DEV_DEBUG", "0");
        run(&mut install)?;
        std::fs::remove_dir_all(folder.join("build"))?;
    }
    Ok(program)
}
