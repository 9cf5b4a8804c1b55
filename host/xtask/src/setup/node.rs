//! Packages of npm that tasks need, which stay out of the sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{program, root, run, step, target};

/// Install the packages that the lists in the folder `wanted` of the repository name into
/// `target/<name>`. Returns that folder.
pub(crate) fn node_packages(name: &str, wanted: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    let lists = ["package.json", "package-lock.json"];
    let wanted = root().join(wanted);
    let list = fs::read(wanted.join(lists[1]))?;
    // Written when all is installed.
    let stamp = folder.join("installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == list) {
        return Ok(folder);
    }
    step(&format!("installing the packages of {}", wanted.display()));
    fs::create_dir_all(&folder)?;
    for name in lists {
        fs::copy(wanted.join(name), folder.join(name))?;
    }
    let mut npm = program("npm");
    npm.args(["ci", "--include=dev", "--no-audit", "--no-fund", "--silent"]);
    run(npm.current_dir(&folder))?;
    fs::write(stamp, list)?;
    Ok(folder)
}

/// Copy the files of a folder, and those of its folders, but for packages.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            fs::copy(entry.path(), to)?;
        } else if entry.file_name() != "node_modules" {
            copy_files(&entry.path(), &to)?;
        }
    }
    Ok(())
}
