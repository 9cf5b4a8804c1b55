//! Noticing that files have changed, by their times and lengths.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::build::ASSETS;

/// The interval at which files are looked at.
const INTERVAL: Duration = Duration::from_millis(200);

/// Folders that builds write to. Nothing below the folder of the assets is one of a build's files.
const BUILT: [&str; 5] = ["target", "node_modules", "__pycache__", "venv", ".venv"];

/// The extensions of files that builds write beside the sources.
const BUILT_EXTENSIONS: [&str; 2] = ["wasm", "tar"];

/// Maximum files that are looked at: a link may lead to all of a disk.
const FILES_MAX: usize = 20_000;

/// Whether builds, or tools, write what has this name.
fn is_built(path: &Path) -> bool {
    let is_built = |end: &OsStr| BUILT_EXTENSIONS.iter().any(|built| end == *built);
    BUILT.contains(&&*path.file_name().unwrap_or_default().to_string_lossy())
        || path.extension().is_some_and(is_built)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Files with their times and lengths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Files {
    /// The files now: each of `paths`, or all files below it that builds do not write.
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let (mut files, mut folders) = (Self::default(), BTreeSet::new());
        paths.iter().for_each(|path| files.add(path, &path.join(ASSETS), &mut folders));
        files
    }

    /// Add a file, or the files of a folder unless it is one of `folders`: a link can lead back.
    fn add(&mut self, path: &Path, assets: &Path, folders: &mut BTreeSet<PathBuf>) {
        let Ok(about) = fs::metadata(path) else { return };
        if !about.is_dir() {
            self.0.insert(path.to_owned(), (about.modified().ok(), about.len()));
            return;
        }
        let Ok(real) = path.canonicalize() else { return };
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        // The first way to a folder counts, each time the same one.
        paths.sort_unstable();
        if !folders.insert(real) {
            return;
        }
        for path in paths {
            // A link is what it leads to.
            let leads_out = || path.canonicalize().is_ok_and(|real| is_built(&real));
            let is_source = path.starts_with(assets) || !is_built(&path) && !leads_out();
            if is_source && !is_hidden(&path) && self.0.len() < FILES_MAX {
                self.add(&path, assets, folders);
            }
        }
    }

    /// Wait until `paths` differ from these files. Returns the files as they are then.
    pub(super) fn wait_for_change(&self, paths: &[PathBuf]) -> Self {
        loop {
            std::thread::sleep(INTERVAL);
            let now = Self::of(paths);
            if now != *self {
                return now;
            }
        }
    }

    /// The files that are new, gone or different in `now`.
    pub(super) fn changed<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a Path> {
        let gone = self.0.keys().filter(|path| !now.0.contains_key(*path));
        let differs = now.0.iter().filter(|(path, about)| self.0.get(*path) != Some(*about));
        differs.map(|(path, _)| path).chain(gone).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn changes_are_noticed_except_in_what_builds_write() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let paths = [folder.path().to_owned()];
        write("src/lib.rs", "one");
        let before = Files::of(&paths);
        write("target/debug/lib.rlib", "built");
        write("plugin.wasm", "built");
        write("plugin.tar", "built");
        write("__pycache__/app.pyc", "built");
        write(".git/index", "index");
        assert_eq!(Files::of(&paths), before);
        write("src/lib.rs", "longer");
        let changed = Files::of(&paths);
        assert_ne!(changed, before);
        write("assets/vocab.tar", "1");
        write("assets/target/x.wasm", "1");
        let with_assets = Files::of(&paths);
        assert_eq!(changed.changed(&with_assets).count(), 2);
        let changed = with_assets;
        write("requests/new.json", "1");
        let now = Files::of(&paths);
        let new: Vec<_> = changed.changed(&now).collect();
        assert_eq!(new, [folder.path().join("requests/new.json")]);
        let gone: Vec<_> = now.changed(&changed).collect();
        assert_eq!(gone, new);
    }

    #[test]
    fn linked_folders_are_watched_and_links_that_lead_back_end() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), folder.path().join("dist")).unwrap();
        symlink(folder.path(), folder.path().join("back")).unwrap();
        let paths = [folder.path().to_owned()];
        let before = Files::of(&paths);
        fs::write(other.path().join("index.js"), "one").unwrap();
        let now = Files::of(&paths);
        let new: Vec<_> = before.changed(&now).collect();
        assert_eq!(new, [folder.path().join("dist/index.js")]);
    }

    #[test]
    fn a_file_that_is_named_is_watched_even_if_builds_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plugin.wasm");
        let none = Files::of(std::slice::from_ref(&file));
        fs::write(&file, "built").unwrap();
        assert_ne!(Files::of(&[file]), none);
    }
}
