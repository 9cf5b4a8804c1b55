//! The digest of all that a component in Python or JavaScript is made of: the plugin's files, the
//! SDK and the tools. Its file is another one each time, because an interpreter's memory is a part
//! of it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_core::Digest;

use super::files::ASSETS;
use super::{js, python};
use crate::plugin::language::{Language, js_manifest, python_manifest};
use crate::plugin::sdk;

/// Folders that no build reads, unless they are among the assets: of version control, of tests and
/// of tools; and the link to the SDK.
const LEFT_OUT: [&str; 13] = [
    ".git",
    ".hg",
    ".venv",
    ".idea",
    ".vscode",
    ".tox",
    "__pycache__",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "requests",
    "gristmill-plugin",
];

/// The digest of the plugin in `folder`. None for those whose builds are the same each time.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn sources(folder: &Path) -> Result<Option<Digest>> {
    let (name, tools) = match Language::of(folder)? {
        Language::Rust | Language::C => return Ok(None),
        Language::Python if !python::is_component(folder)? => return Ok(None),
        Language::Js if !js::is_component(folder)? => return Ok(None),
        Language::Python => (python::name_of(&python_manifest(folder)?)?, python::COMPONENTIZE_PY),
        // Its tools are pinned in a file of the SDK.
        Language::Js => (js::name_of(&js_manifest(folder)?, folder)?, ""),
    };
    let mut list = format!("1 sdk {} {tools}\n", sdk::version());
    let mut files = Walk { seen: BTreeSet::new(), list: &mut list, out: format!("{name}.wasm") };
    files.folder(folder, Path::new(""))?;
    Ok(Some(Digest::of(list.as_bytes())))
}

struct Walk<'a> {
    /// The folders so far, so that links make no circle.
    seen: BTreeSet<PathBuf>,
    /// A line for each file.
    list: &'a mut String,
    /// The file that the build makes.
    out: String,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, below: &Path) -> Result<()> {
        let failed = || folder.display().to_string();
        if !self.seen.insert(folder.canonicalize().with_context(failed)?) {
            return Ok(());
        }
        let entries = fs::read_dir(folder).with_context(failed)?;
        let names = entries.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<std::io::Result<Vec<_>>>().with_context(failed)?;
        names.sort_unstable();
        for name in names {
            let (path, below) = (folder.join(&name), below.join(&name));
            let failed = || path.display().to_string();
            // A link without a target is not part of the build.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                let is_left_out = LEFT_OUT.iter().any(|left_out| name == *left_out);
                if !is_left_out || below.starts_with(ASSETS) {
                    self.folder(&path, &below)?;
                }
            } else if metadata.is_file() && below.as_os_str() != self.out.as_str() {
                let content = fs::read(&path).with_context(failed)?;
                let shown = below.to_string_lossy();
                let _ = writeln!(self.list, "{} {} {shown}", Digest::of(&content), shown.len());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_digest_follows_each_file_that_a_build_reads() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |path: &str, content: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let now = || sources(folder.path()).unwrap().unwrap();
        let manifest = "[project]\nname = \"sums\"\n[tool.gristmill]";
        write("pyproject.toml", manifest);
        // An archive of sources is the same each time.
        assert_eq!(sources(folder.path()).unwrap(), None);
        write("pyproject.toml", &format!("{manifest}\ncomponent = true"));
        write("app.py", "import words");
        write("lib/words.py", "a = 1");
        fs::write(other.path().join("more.py"), "b = 1").unwrap();
        symlink(other.path(), folder.path().join("linked")).unwrap();
        symlink(folder.path(), folder.path().join("circle")).unwrap();
        symlink("none", folder.path().join("dangling")).unwrap();
        let first = now();
        for left_out in ["sums.wasm", "__pycache__/app.pyc", "requests/a.json", ".git/HEAD"] {
            write(left_out, "x");
            assert_eq!(now(), first, "{left_out}");
        }
        let mut before = first;
        let mut changes = |what: &str| {
            let digest = now();
            assert_ne!(digest, before, "{what}");
            before = digest;
        };
        write("lib/words.py", "a = 2");
        changes("a file");
        fs::write(other.path().join("more.py"), "b = 2").unwrap();
        changes("a file behind a link");
        fs::rename(folder.path().join("lib"), folder.path().join("bil")).unwrap();
        changes("a name");
        write("lib/sums.wasm", "a model of the plugin's");
        changes("a file with the name of the component");
        write("assets/requests/greeting.txt", "hello");
        changes("an asset in a folder with the name of one that is left out");
        write("Cargo.toml", "");
        assert!(sources(folder.path()).is_err(), "of two languages");
    }
}
