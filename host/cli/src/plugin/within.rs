//! Paths that a plugin's own files name. Someone else may have written those files. And folders in
//! which commands make files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The file or folder `path` of `folder`, without links in it.
///
/// # Errors
/// It cannot be found, or it lies outside of the folder, also where a link leads out.
pub(crate) fn within(folder: &Path, path: impl AsRef<Path>) -> Result<PathBuf> {
    // The parent of a mere file name.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let cannot = |path: &Path| format!("cannot find {}", path.display());
    let outer = folder.canonicalize().with_context(|| cannot(folder))?;
    let named = folder.join(path);
    let resolved = named.canonicalize().with_context(|| cannot(&named))?;
    if !resolved.starts_with(&outer) {
        bail!("it lies outside of {}: put a copy there", folder.display());
    }
    Ok(resolved)
}

/// The path of `name` in `folder`, where a file or folder may be made.
///
/// # Errors
/// It is a link that leads out of the folder, or to nothing.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    if path.is_symlink() {
        within(folder, name).with_context(|| path.display().to_string())?;
    }
    Ok(path)
}

/// Refuse a folder with something in it. One that is not there is made later.
///
/// # Errors
/// It is not empty, or cannot be read.
pub(super) fn refuse_full(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!("{} is not empty: name another folder with --folder", folder.display()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{} is not a folder: name another one with --folder", folder.display())
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| folder.display().to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_folder_without_files_is_taken() {
        let outer = tempfile::tempdir().unwrap();
        let (file, missing) = (outer.path().join("file"), outer.path().join("missing"));
        assert!(refuse_full(outer.path()).is_ok() && refuse_full(&missing).is_ok());
        fs::write(&file, "").unwrap();
        for (path, fault) in [(outer.path(), "is not empty"), (&file, "is not a folder")] {
            let error = refuse_full(path).unwrap_err().to_string();
            assert!(error.contains(fault) && error.contains("--folder"), "{error}");
        }
    }

    #[test]
    fn a_path_leads_into_its_folder_or_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("plugin");
        fs::create_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join("data/a.bin"), "").unwrap();
        fs::write(outer.path().join("secret"), "").unwrap();
        symlink("data/a.bin", folder.join("link")).unwrap();
        symlink("../secret", folder.join("way-out")).unwrap();
        let inner = folder.canonicalize().unwrap().join("data/a.bin");
        for path in ["data/a.bin", "./data/../data/a.bin", "link"] {
            assert_eq!(within(&folder, path).unwrap(), inner, "{path}");
        }
        let secret = outer.path().join("secret");
        for path in ["../secret", "data/../../secret", "way-out", secret.to_str().unwrap()] {
            let error = within(&folder, path).unwrap_err().to_string();
            assert!(error.contains("lies outside of"), "{path}: {error}");
        }
        assert!(within(Path::new(""), "Cargo.toml").is_ok(), "tests run in the crate's folder");
        let error = within(&folder, "nothing").unwrap_err().to_string();
        assert!(error.contains("cannot find") && error.contains("plugin/nothing"), "{error}");
        for path in ["nothing", "data", "link"] {
            assert_eq!(inside(&folder, path).unwrap(), folder.join(path));
        }
        symlink("../not-yet-there", folder.join("to-nothing")).unwrap();
        for path in ["way-out", "to-nothing"] {
            let error = inside(&folder, path).unwrap_err().to_string();
            assert!(error.ends_with(&format!("plugin/{path}")), "{path}: {error}");
        }
    }
}
