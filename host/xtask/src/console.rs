//! `cargo xtask console`: builds the pages that the server has in it: the console, and the page of
//! a tenant (`host/console`).
//!
//! The files are kept in `host/console/dist`, so that a build of the server needs no Node. `cargo
//! xtask test` fails if they are not what the sources give.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::setup::{copy_files, install_node, node_packages};
use crate::shell::{program, root, run};

/// The folder of the sources.
const SOURCES: &str = "host/console";

/// The files that the server has.
const FILES: [&str; 4] = ["app.css", "app.js", "index.html", "try.html"];

/// Build it.
pub(crate) fn build() -> Result<()> {
    build_into(&prepared()?, &root().join(SOURCES).join("dist"))
}

/// Fail if a type is wrong, or if the files are not what the sources give.
pub(crate) fn check() -> Result<()> {
    let sources = prepared()?;
    run(program("node").arg("node_modules/typescript/bin/tsc").current_dir(&sources))?;
    let built = sources.join("dist");
    build_into(&sources, &built)?;
    for file in FILES {
        let kept = fs::read(root().join(SOURCES).join("dist").join(file));
        if kept.ok() != Some(fs::read(built.join(file)).context(file)?) {
            bail!("{SOURCES}/dist/{file} is not what the sources give: run cargo xtask console");
        }
    }
    Ok(())
}

/// Build its tests, which need no browser. Returns their files.
pub(crate) fn tests() -> Result<Vec<PathBuf>> {
    let sources = prepared()?;
    let out = sources.join("tests");
    run(program("node").args(["build.mjs", "--tests"]).arg(&out).current_dir(&sources))?;
    fs::read_dir(out)?.map(|entry| Ok(entry?.path())).collect()
}

/// A copy of the sources beside the packages that they need. The test in a browser runs there, too.
pub(crate) fn prepared() -> Result<PathBuf> {
    install_node()?;
    let folder = node_packages("console", SOURCES)?;
    for part in ["src", "test", "tests"] {
        // Without files that were renamed.
        let _ = fs::remove_dir_all(folder.join(part));
    }
    for part in ["src", "test"] {
        copy_files(&root().join(SOURCES).join(part), &folder.join(part))?;
    }
    for file in ["build.mjs", "tsconfig.json"] {
        fs::copy(root().join(SOURCES).join(file), folder.join(file))?;
    }
    Ok(folder)
}

fn build_into(sources: &Path, out: &Path) -> Result<()> {
    run(program("node").arg("build.mjs").arg(out).current_dir(sources))
}
