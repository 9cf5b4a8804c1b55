//! Finding the ONNX Runtime library.
//!
//! The library's code runs with the rights of this process. A library that nobody named, and that
//! is not in the data directory, is taken only if no other user can change it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folders of a Python environment that may have those of its versions.
const LIBRARIES: [&str; 2] = ["lib", "lib64"];

/// The folders of a version that may have its packages: pip's, and that of Debian's pip.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// The folder of the libraries in the packages `onnxruntime` and `onnxruntime-gpu`.
const IN_PACKAGE: &str = "onnxruntime/capi";

/// The permissions to write of the file's group and of all users, and the bit that lets a folder's
/// users change only their own entries.
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The places where the ONNX Runtime library may be.
#[derive(Clone, Debug, Default)]
pub struct LibrarySearch {
    /// The library that the configuration names. If it cannot be used, that is an error.
    pub configured: Option<PathBuf>,
    /// The data directory, whose folder `onnxruntime/` is searched.
    pub data_directory: Option<PathBuf>,
}

impl LibrarySearch {
    /// The library to use: the configured one, else that in `ORT_DYLIB_PATH`, else one in the data
    /// directory, else that of the Python package that is installed with this program.
    pub fn find(&self) -> Option<PathBuf> {
        if let Some(path) = &self.configured {
            return Some(path.clone());
        }
        if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
            return Some(path.into());
        }
        let folder = self.data_directory.as_ref().map(|directory| directory.join("onnxruntime"));
        folder.and_then(|folder| library_in(&folder)).or_else(safe_installed_library)
    }
}

/// The ONNX Runtime library directly in `directory`: the file name varies with version and system.
pub fn library_in(directory: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libonnxruntime.so")
            || name.starts_with("libonnxruntime.dylib")
            || name == "onnxruntime.dll"
    };
    let entries = fs::read_dir(directory).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}

/// The library of the Python package that is installed with this program, without links: pip puts
/// this program into `bin/` of the environment that has the package. Callers must ask
/// [`is_safe_library`].
pub fn installed_library() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    library_of_environment(program.parent()?.parent()?)?.canonicalize().ok()
}

fn safe_installed_library() -> Option<PathBuf> {
    let library = installed_library()?;
    if is_safe_library(&library) {
        return Some(library);
    }
    tracing::warn!(
        library = %library.display(),
        "this library is not used, because another user can change it; onnxruntime_library can \
         name it"
    );
    None
}

/// The library of the newest Python in an environment.
fn library_of_environment(prefix: &Path) -> Option<PathBuf> {
    let folders = LIBRARIES.map(|folder| prefix.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let versions = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let minor = path.file_name()?.to_str()?.strip_prefix("python3.")?;
        // A Python without the global lock, such as `python3.14t`, has a folder of its own.
        let minor = minor.trim_end_matches('t').parse::<u32>().ok()?;
        Some((minor, path))
    });
    let mut versions: Vec<_> = versions.collect();
    versions.sort();
    let mut packages = versions
        .iter()
        .rev()
        .flat_map(|(_, version)| PACKAGES.map(|packages| version.join(packages).join(IN_PACKAGE)));
    packages.find_map(|folder| library_in(&folder))
}

/// Whether no other user but root can change this file, or put another one in its place.
pub fn is_safe_library(file: &Path) -> bool {
    let caller = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    file.ancestors().all(|path| {
        let Ok(about) = fs::symlink_metadata(path) else { return false };
        let (mode, is_sticky) = (about.mode(), about.is_dir() && about.mode() & STICKY != 0);
        let by_group = mode & WRITABLE_BY_GROUP != 0 && ![0, group].contains(&about.gid());
        let by_others = by_group || mode & WRITABLE_BY_ALL != 0;
        [0, caller].contains(&about.uid()) && (is_sticky || !by_others)
    })
}

#[cfg(test)]
mod tests {
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
    }

    #[test]
    fn the_newest_python_of_an_environment_has_the_library() {
        let environment = tempfile::tempdir().unwrap();
        let found = || library_of_environment(environment.path());
        assert_eq!(found(), None);
        for (packages, is_newest) in [
            ("lib/python3.9/site-packages", true),
            ("lib/python3/dist-packages", false),
            ("lib64/python3.13/site-packages", true),
            ("lib/python3.12/dist-packages", false),
            ("lib/python3.14t/site-packages", true),
        ] {
            let folder = environment.path().join(packages).join(IN_PACKAGE);
            fs::create_dir_all(&folder).unwrap();
            let library = folder.join("libonnxruntime.so.1.31.1");
            fs::write(&library, "").unwrap();
            assert_eq!(found() == Some(library), is_newest, "{packages}");
        }
    }
}
