//! The digest of all that a component in Python or JavaScript is made of: the plugin's files, the
//! SDK and the tools. Its file is another one each time, because an interpreter's memory is a part
//! of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_core::Digest;

use super::{files, js, python};
use crate::plugin::language::Language;
use crate::plugin::sdk;

/// The folder with packages that a build in JavaScript reads.
const PACKAGES: &str = "node_modules";

/// The link in it to the SDK, whose digest counts already.
const SDK_LINK: &str = "gristmill-plugin";

/// The digest of the plugin in `folder`. None for those whose builds are the same each time.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn sources(folder: &Path) -> Result<Option<Digest>> {
    let language = Language::of(folder)?;
    let tools = match language {
        Language::Rust | Language::C => return Ok(None),
        Language::Python if !python::is_component(folder)? => return Ok(None),
        Language::Js if !js::is_component(folder)? => return Ok(None),
        Language::Python => python::COMPONENTIZE_PY,
        // Its tools are pinned in a file of the SDK.
        Language::Js => "",
    };
    let mut list = format!("1 sdk {} {tools}\n", sdk::version());
    let mut files = Walk { language, seen: BTreeSet::new(), list: &mut list };
    files.folder(folder, Path::new(""))?;
    Ok(Some(Digest::of(list.as_bytes())))
}

struct Walk<'a> {
    language: Language,
    /// The folders so far, so that links make no circle.
    seen: BTreeSet<PathBuf>,
    /// A line for each file.
    list: &'a mut String,
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
            if self.is_left_out(&below, &name, metadata.is_dir()) {
                continue;
            }
            if metadata.is_dir() {
                self.folder(&path, &below)?;
            } else if metadata.is_file() {
                let content = fs::read(&path).with_context(failed)?;
                let shown = below.to_string_lossy();
                let _ = writeln!(self.list, "{} {} {shown}", Digest::of(&content), shown.len());
            }
        }
        Ok(())
    }

    /// Whether the build does not read the file or folder `name`, whose path is `below`.
    fn is_left_out(&self, below: &Path, name: &OsStr, is_folder: bool) -> bool {
        if self.language == Language::Js && below.iter().any(|part| part == PACKAGES) {
            return name == SDK_LINK;
        }
        let is_top = below.iter().count() == 1;
        files::is_left_out(name, is_folder, is_top)
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
        // The same as an archive of sources leaves out.
        for left_out in [
            "sums.wasm",
            "other.wasm",
            "sums.tar",
            "test_app.py",
            ".DS_Store",
            "__pycache__/app.pyc",
            "requests/a.json",
            "tests/a.py",
            "venv/lib/a.py",
            "node_modules/a.js",
            ".git/HEAD",
        ] {
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
        write("lib/requests/a.py", "a = 1");
        changes("a package with the name of a folder that counts only at the top");
        write("Cargo.toml", "");
        assert!(sources(folder.path()).is_err(), "of two languages");
    }

    #[test]
    fn packages_count_in_javascript_but_for_the_sdk() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, content: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let now = || sources(folder.path()).unwrap().unwrap();
        write("package.json", r#"{ "name": "sums", "gristmill": { "component": true } }"#);
        write("plugin.js", "1");
        let first = now();
        for left_out in ["sums.wasm", "node_modules/gristmill-plugin/a.js", "tests/a.js"] {
            write(left_out, "x");
            assert_eq!(now(), first, "{left_out}");
        }
        let mut before = first;
        for read in ["node_modules/a/tests/a.js", "node_modules/.pnpm/b/b.js", "lib/tests/a.js"] {
            write(read, "x");
            assert_ne!(now(), before, "{read}");
            before = now();
        }
    }
}
