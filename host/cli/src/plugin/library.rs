//! Where `gristmill plugin test`, `dev` and `new` look for ONNX Runtime, so that a model runs on
//! what its server runs it on.
//!
//! The library's code runs with the caller's rights. So a library that is only found in a folder
//! above the current one is taken if no other user could have put it there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders whose `onnxruntime/` may have the library: of a server's data, of a build, and of
/// this program.
const DATA_DIR: &str = "gristmill-data";
const BUILD_DIR: &str = "target";

/// The folder in each of them.
const LIBRARY_DIR: &str = "onnxruntime";

/// The permission of all users to write.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Prints where Python's package has its libraries, without loading it.
const PYTHON: &str = "\
import importlib.util as u
s = u.find_spec('onnxruntime')
print(s.submodule_search_locations[0] if s else '')";

/// The library of a server or a test. `configured` is the one that the command names. None if a
/// variable names one, or if there is none.
pub(super) fn find(configured: Option<PathBuf>) -> Option<PathBuf> {
    let is_named = std::env::var_os("ORT_DYLIB_PATH").is_some_and(|path| !path.is_empty());
    if configured.is_some() || is_named {
        return configured;
    }
    let of_program = || {
        let mut folders = beside_program().into_iter();
        folders.find_map(|folder| library_in(&folder.join(LIBRARY_DIR)))
    };
    let mut above = here_and_above().into_iter();
    above.find_map(|folder| safe_library_in(&folder)).or_else(of_program).or_else(of_python)
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

/// The library in `onnxruntime/` of a folder, unless another user can change it.
fn safe_library_in(folder: &Path) -> Option<PathBuf> {
    let library_folder = folder.join(LIBRARY_DIR);
    let library = library_in(&library_folder)?;
    if is_safe(folder) && is_safe(&library_folder) && is_safe(&library) {
        return Some(library);
    }
    eprintln!(
        "warning: {} is not used, because another user can change it; ORT_DYLIB_PATH can name it",
        library.display()
    );
    None
}

/// Whether a file or a folder is the caller's or root's, and not all users may write to it.
fn is_safe(path: &Path) -> bool {
    let caller = rustix::process::geteuid().as_raw();
    fs::metadata(path).is_ok_and(|about| {
        [0, caller].contains(&about.uid()) && about.mode() & WRITABLE_BY_ALL == 0
    })
}

/// ONNX Runtime's library in a folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let names = ["libonnxruntime.so", "libonnxruntime.dylib", "onnxruntime.dll"];
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|prefix| name.starts_with(prefix))
    };
    let entries = fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}

/// The library of Python's package `onnxruntime`.
fn of_python() -> Option<PathBuf> {
    // Python would take a package of the current folder, too.
    let output = Command::new("python3").args(["-c", PYTHON]).current_dir("/").output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(folder.trim());
    folder.is_absolute().then(|| library_in(&folder.join("capi")))?
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_library_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "").unwrap();
        write("libonnxruntime_providers_shared.so");
        assert_eq!(library_in(folder.path()), None);
        write("libonnxruntime.so.1.31.1");
        assert!(library_in(folder.path()).unwrap().ends_with("libonnxruntime.so.1.31.1"));
        assert_eq!(library_in(&folder.path().join("none")), None);
        assert_eq!(find(Some("x.so".into())), Some("x.so".into()));
    }

    #[test]
    fn a_library_that_another_user_can_change_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let library_folder = folder.path().join(LIBRARY_DIR);
        fs::create_dir(&library_folder).unwrap();
        let library = library_folder.join("libonnxruntime.so.1");
        fs::write(&library, "").unwrap();
        let set_mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for path in [folder.path(), library_folder.as_path(), library.as_path()] {
            set_mode(path, 0o755);
        }
        assert_eq!(safe_library_in(folder.path()), Some(library.clone()));
        for path in [folder.path(), library_folder.as_path(), library.as_path()] {
            set_mode(path, 0o757);
            assert_eq!(safe_library_in(folder.path()), None, "{}", path.display());
            set_mode(path, 0o755);
        }
    }
}
