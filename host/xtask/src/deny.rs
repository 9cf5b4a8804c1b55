//! `cargo xtask deny`: cargo-deny holds the dependencies against `deny.toml`.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::shell::{cargo, program, root, run as run_command, step, succeeds, target};

const VERSION: &str = "0.20.2";

/// The folder of the RustSec database, as this version names it.
const DATABASE: &str = "advisory-db-3157b0e258782691";

pub(crate) fn command() -> Command {
    Command::new("deny")
        .about("Check the dependencies: licences, bans and sources, by deny.toml")
        .subcommand(
            Command::new("advisories")
                .about("Check known faults of dependencies as well, by the RustSec database")
                .arg(
                    Arg::new("copy")
                        .value_name("PATH")
                        .value_parser(value_parser!(PathBuf))
                        .help("A copy of the database; otherwise it is fetched from GitHub"),
                ),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand_matches("advisories") {
        None => check(),
        Some(matches) => match matches.get_one::<PathBuf>("copy") {
            None => check_with_advisories(),
            Some(copy) => check_with_copy(copy),
        },
    }
}

/// Check licences, bans and sources. This needs no network where all crates are downloaded.
pub(crate) fn check() -> Result<()> {
    let deny = install()?;
    // Offline, cargo-deny reads the sources of all crates, of those for other platforms too.
    run_command(cargo().args(["fetch", "--locked"]))?;
    run_command(program(deny).args(["--offline", "check", "bans", "licenses", "sources"]))
}

/// Check the advisories alone. False if their database cannot be fetched.
pub(crate) fn look_for_advisories() -> Result<bool> {
    let deny = install()?;
    step("advisories");
    if !succeeds(program(&deny).args(["fetch", "db"])) {
        return Ok(false);
    }
    run_command(program(deny).args(["--offline", "check", "advisories"]))?;
    Ok(true)
}

/// Check the advisories, too. Their database is fetched from GitHub.
fn check_with_advisories() -> Result<()> {
    check()?;
    run_command(program(install()?).args(["check", "advisories"]))
}

/// Check the advisories of a copy of their database, a clone or an unpacked archive. This needs no
/// network.
fn check_with_copy(copy: &Path) -> Result<()> {
    let crates = copy.join("crates").canonicalize();
    let crates = crates.with_context(|| {
        format!("{} is not a copy of the RustSec database: it has no crates/", copy.display())
    })?;
    check()?;
    // As cargo-deny finds what it has fetched.
    let databases = target().join("advisories");
    let database = databases.join(DATABASE);
    if databases.exists() {
        fs::remove_dir_all(&databases)?;
    }
    fs::create_dir_all(database.join(".git"))?;
    symlink(&crates, database.join("crates"))?;
    let fetched = File::create(database.join(".git/FETCH_HEAD"))?;
    fetched.set_modified(time_of(copy, &crates)?)?;
    let rules = fs::read_to_string(root().join("deny.toml")).context("deny.toml")?;
    let advisories = format!("[advisories]\ndb-path = {:?}\n", databases.display().to_string());
    let config = databases.join("deny.toml");
    fs::write(&config, rules.replacen("[advisories]\n", &advisories, 1))?;
    let mut deny = program(install()?);
    run_command(deny.args(["--offline", "check", "--config"]).arg(config).arg("advisories"))
}

/// The time of a copy: when it was fetched, or that of its newest file.
fn time_of(copy: &Path, crates: &Path) -> Result<SystemTime> {
    if let Ok(fetched) = fs::metadata(copy.join(".git/FETCH_HEAD")) {
        return Ok(fetched.modified()?);
    }
    let (mut newest, mut folders) = (SystemTime::UNIX_EPOCH, vec![crates.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            match metadata.is_dir() {
                true => folders.push(entry.path()),
                false => newest = newest.max(metadata.modified()?),
            }
        }
    }
    Ok(newest)
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
        run_command(&mut install)?;
        fs::remove_dir_all(folder.join("build"))?;
    }
    Ok(program)
}
