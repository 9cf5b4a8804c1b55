//! The archive of a plugin's sources: the files of its folder, and the packages in its `paths`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use gristmill_sandbox::{Archive, Language, Manifest};

use super::Manifest as Project;
use crate::plugin::language::python_manifest;
use crate::plugin::within::within;

/// Names of folders that are not part of a plugin: of tests, of tools and of versions.
const LEFT_OUT: [&str; 3] = ["__pycache__", "node_modules", "venv"];

/// Those at the top of a plugin's folder: its requests for `plugin test`, and its tests.
const LEFT_OUT_AT_THE_TOP: [&str; 2] = ["requests", "tests"];

/// Ends of names of files that are not part of a plugin: what builds make.
const BUILT: [&str; 3] = [".pyc", ".tar", ".wasm"];

/// The most bytes of an archive.
const BYTES_MAX: usize = 64 << 20;

/// The plugin's name, and its sources.
pub(in super::super) fn archive(folder: &Path) -> Result<(String, Archive)> {
    let Project { name, app, paths, .. } = Project::of(&python_manifest(folder)?)?;
    let mut files = Files::default();
    files.add(folder, "", true)?;
    for path in &paths {
        let resolved = within(folder, path)
            .with_context(|| format!("pyproject.toml: tool.gristmill.paths has {path:?}"))?;
        files.add(&resolved, "", false)?;
    }
    let manifest = Manifest { language: Language::Python, app };
    let archive = Archive { manifest, files: files.found };
    ensure!(
        archive.has_app(),
        "{} has no {}, which tool.gristmill.app names",
        folder.display(),
        archive.app_file()
    );
    Ok((name, archive))
}

#[derive(Default)]
struct Files {
    found: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl Files {
    /// Add the files of `folder`, whose paths in the archive begin with `below`. Links are left
    /// out: the archive is the same wherever the folder is.
    fn add(&mut self, folder: &Path, below: &str, is_top: bool) -> Result<()> {
        let shown = || folder.display().to_string();
        for entry in fs::read_dir(folder).with_context(shown)? {
            let entry = entry.with_context(shown)?;
            let (name, kind) = (entry.file_name(), entry.file_type().with_context(shown)?);
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let below = format!("{below}{name}");
            let is_left_out =
                LEFT_OUT.contains(&name) || is_top && LEFT_OUT_AT_THE_TOP.contains(&name);
            if kind.is_dir() && !is_left_out {
                self.add(&entry.path(), &format!("{below}/"), false)?;
            }
            let is_test = name.starts_with("test_") && name.ends_with(".py");
            if !kind.is_file() || is_test || BUILT.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            let content =
                fs::read(entry.path()).with_context(|| entry.path().display().to_string())?;
            self.bytes += content.len();
            ensure!(self.bytes <= BYTES_MAX, "the plugin's files have more than {BYTES_MAX} bytes");
            self.found.entry(below).or_insert(content);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn the_archive_has_the_files_that_a_plugin_needs_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, content: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let manifest = "[project]\nname = \"sums\"\n[tool.gristmill]\npaths = [\"lib\"]";
        write("pyproject.toml", manifest);
        write("lib/words/__init__.py", "1");
        assert!(archive(folder.path()).unwrap_err().to_string().contains("has no app.py"));
        for path in ["app.py", "labels.txt", "lib/words/__init__.py", "data/more.json"] {
            write(path, "1");
        }
        for path in
            ["sums.tar", "test_app.py", "requests/a.json", ".git/HEAD", "__pycache__/app.pyc"]
        {
            write(path, "1");
        }
        let (name, first) = archive(folder.path()).unwrap();
        let names: Vec<_> = first.files.keys().map(String::as_str).collect();
        let expected = [
            "app.py",
            "data/more.json",
            "labels.txt",
            "lib/words/__init__.py",
            "pyproject.toml",
            "words/__init__.py",
        ];
        assert_eq!((name.as_str(), names), ("sums", expected.to_vec()));
        write("labels.txt", "2");
        assert_ne!(archive(folder.path()).unwrap().1, first);
    }
}
