//! The archive of a plugin's sources: the files of its folder, the packages in its `paths`, and
//! those that it requires.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use gristmill_sandbox::{Archive, Language, Manifest};

use super::super::files::Files;
use super::Manifest as Project;
use super::packages::packages;
use crate::plugin::language::python_manifest;
use crate::plugin::within::within;

/// The plugin's name, and its sources.
pub(in super::super) fn archive(folder: &Path) -> Result<(String, Archive)> {
    let project = python_manifest(folder)?;
    let packages = packages(folder, &project)?;
    let Project { name, app, paths, .. } = Project::of(&project)?;
    let mut files = Files::default();
    files.add(folder, "", true)?;
    for path in &paths {
        let resolved = within(folder, path)
            .with_context(|| format!("pyproject.toml: tool.gristmill.paths has {path:?}"))?;
        files.add(&resolved, "", false)?;
    }
    if let Some(packages) = packages {
        files.add(&packages, "", false)?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::fs;

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
