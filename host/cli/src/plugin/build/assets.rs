//! The files of a plugin's folder `assets/`, which the plugin opens.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use super::files::{ASSETS, Files};
use crate::plugin::within::inside;

/// The files by their paths in the folder. There are none without the folder.
pub(super) fn assets(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let name = |(path, content): (String, Vec<u8>)| {
        let name = path.strip_prefix(ASSETS).unwrap_or(&path).to_owned();
        (name, content)
    };
    Ok(archived(folder)?.into_iter().map(name).collect())
}

/// The same files, by their paths in an archive of sources.
pub(super) fn archived(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let path = inside(folder, ASSETS.trim_end_matches('/'))?;
    let mut files = Files::default();
    if path.exists() {
        ensure!(path.is_dir(), "{} is not a folder", path.display());
        files.add(&path, ASSETS, false)?;
    }
    Ok(files.found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_files_of_the_folder_are_there_but_links_and_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        assert!(assets(folder.path()).unwrap().is_empty());
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in ["assets/labels.txt", "assets/more/vocab.tar", "assets/.hidden", "app.py"] {
            write(path);
        }
        symlink("/etc/passwd", folder.path().join("assets/link")).unwrap();
        let names: Vec<_> = assets(folder.path()).unwrap().into_keys().collect();
        assert_eq!(names, ["labels.txt", "more/vocab.tar"]);
        let paths: Vec<_> = archived(folder.path()).unwrap().into_keys().collect();
        assert_eq!(paths, ["assets/labels.txt", "assets/more/vocab.tar"]);
    }
}
