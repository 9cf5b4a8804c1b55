//! Where `gristmill plugin test`, `dev` and `new` look for ONNX Runtime, so that a model runs on
//! what its server runs it on.
//!
//! The library's code runs with the caller's rights. So a library that is found in the current
//! folder, above it or beside this program is taken only if no other user can change it.

use std::path::{Path, PathBuf};
use std::process::Command;

use gristmill_backend::{installed_library, is_safe_library, library_in};

use crate::folders;

/// The folders whose `onnxruntime/` may have the library: of a server's data, of a build, and of
/// this program.
const DATA_DIR: &str = "gristmill-data";
const BUILD_DIR: &str = "target";

/// The folder in each of them.
const LIBRARY_DIR: &str = "onnxruntime";

/// Prints where Python's package has its libraries, without loading it.
const PYTHON: &str = "\
import sys
# Python would take a package of the current folder, too.
sys.path = [p for p in sys.path if p]
import importlib.util as u
s = u.find_spec('onnxruntime')
print(s.submodule_search_locations[0] if s else '')";

/// The library of a server or a test. `configured` is the one that the command names. None if a
/// variable names one, or if there is none.
pub(crate) fn find(configured: Option<PathBuf>) -> Option<PathBuf> {
    let is_named = folders::variable("ORT_DYLIB_PATH").is_some();
    if configured.is_some() || is_named {
        return configured;
    }
    let mut folders = here_and_above().into_iter().chain(beside_program());
    let found = folders.find_map(|folder| safe_library_in(&folder));
    found.or_else(|| unless_unsafe(&installed_library()?)).or_else(of_python)
}

/// The folders of data and of builds in the current folder and those above, the nearest first.
fn here_and_above() -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let folders = here
        .ancestors()
        .flat_map(|folder| [DATA_DIR, BUILD_DIR].map(|subfolder| folder.join(subfolder)));
    folders.collect()
}

fn beside_program() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().skip(1).take(2).map(Path::to_owned).collect()
}

/// The library in `onnxruntime/` of a folder, without links, unless another user can change it.
fn safe_library_in(folder: &Path) -> Option<PathBuf> {
    unless_unsafe(&library_in(&folder.join(LIBRARY_DIR))?)
}

/// The library without links, unless another user can change it.
fn unless_unsafe(library: &Path) -> Option<PathBuf> {
    let library = library.canonicalize().ok()?;
    if is_safe_library(&library) {
        return Some(library);
    }
    eprintln!(
        "warning: {} is not used, because another user can change it; ORT_DYLIB_PATH can name it",
        library.display()
    );
    None
}

/// The library of Python's package `onnxruntime`.
fn of_python() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", PYTHON]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(folder.trim());
    folder.is_absolute().then(|| library_in(&folder.join("capi")))?
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_library_that_is_named_is_taken() {
        assert_eq!(find(Some("x.so".into())), Some("x.so".into()));
    }

    #[test]
    fn a_library_that_another_user_can_change_is_not_taken() {
        // In a sticky folder, as that of temporary files, users change only their own entries.
        let folder = tempfile::tempdir().unwrap();
        let build = folder.path().join(BUILD_DIR);
        let library_folder = build.join(LIBRARY_DIR);
        fs::create_dir_all(&library_folder).unwrap();
        let library = library_folder.join("libonnxruntime.so.1");
        fs::write(&library, "").unwrap();
        let paths = [folder.path(), &*build, &*library_folder, &*library];
        let set_mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        paths.iter().for_each(|path| set_mode(path, 0o755));
        let library_found = || safe_library_in(&build);
        let expected = library.canonicalize().unwrap();
        assert_eq!(library_found().as_ref(), Some(&expected));
        for path in paths {
            set_mode(path, 0o757);
            assert_eq!(library_found(), None, "{}", path.display());
            set_mode(path, 0o755);
        }
        // What a link leads to counts.
        let link = folder.path().join("link");
        symlink(&build, &link).unwrap();
        assert_eq!(safe_library_in(&link).as_ref(), Some(&expected));
        set_mode(&library_folder, 0o757);
        assert_eq!(safe_library_in(&link), None);
    }
}
