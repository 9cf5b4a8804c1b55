//! The folder that all builds of plugins share: the SDKs, the tools of their languages, and the
//! compiled dependencies of plugins in Rust.
//!
//! Each part has the digest or the version of its content in its name and is never changed once it
//! is complete. So two builds can use the folder at the same time, also those of two versions of
//! this program. The servers of `gristmill plugin dev` have their data here, too. The folder can be
//! deleted whenever none of them runs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::folders;

/// The variable that names the folder.
const VARIABLE: &str = "GRISTMILL_BUILD_DIR";

/// The file that is made when a part is complete.
const COMPLETE: &str = "complete";

/// The shared folder.
pub(crate) struct BuildFolder(PathBuf);

impl BuildFolder {
    /// The folder that `GRISTMILL_BUILD_DIR` names, otherwise `gristmill` in the user's cache. It
    /// is made if it is missing.
    pub(crate) fn open() -> Result<Self> {
        let of_user = || Some(folders::of_user("XDG_CACHE_HOME", ".cache")?.join("gristmill"));
        let path = folders::variable(VARIABLE).map(PathBuf::from).or_else(of_user);
        let path = path.with_context(|| {
            format!("no folder for builds: neither {VARIABLE} nor XDG_CACHE_HOME nor HOME is set")
        })?;
        let cannot_be_used = || format!("{} cannot be used ({VARIABLE})", path.display());
        fs::create_dir_all(&path).with_context(cannot_be_used)?;
        // Tools run in other folders, and some of them compare paths.
        Ok(Self(path.canonicalize().with_context(cannot_be_used)?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The folder with the compiled code of runtimes.
    pub(crate) fn runtimes(&self) -> PathBuf {
        self.0.join("runtimes")
    }

    /// The folder of the part `name`. If it is missing or not complete, `install` fills it; another
    /// build that needs the same part waits meanwhile.
    ///
    /// # Errors
    /// Those of `install`, and of the disk.
    pub(crate) fn part(
        &self,
        name: &str,
        install: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.0.join(name);
        let complete = folder.join(COMPLETE);
        if complete.exists() {
            return Ok(folder);
        }
        let _lock = self.lock(name)?;
        if complete.exists() {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        install(&folder)?;
        File::create(&complete).with_context(|| complete.display().to_string())?;
        Ok(folder)
    }

    /// Wait until no other build has the lock `name`. It is held until the result is dropped, or
    /// the process ends.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let (path, lock) = self.lock_file(name)?;
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => eprintln!("waiting for another build ({name})"),
            Err(TryLockError::Error(_)) => {}
        }
        lock.lock().with_context(|| path.display().to_string())?;
        Ok(lock)
    }

    /// The lock `name`, unless another process has it. It is held as that of [`lock`](Self::lock).
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<File>> {
        let (path, lock) = self.lock_file(name)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| path.display().to_string())
            }
        }
    }

    fn lock_file(&self, name: &str) -> Result<(PathBuf, File)> {
        let path = self.0.join(format!("{name}.lock"));
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.with_context(|| path.display().to_string())?;
        Ok((path, lock))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::sync::atomic::{AtomicU32, Ordering};

    use anyhow::bail;

    use super::*;

    #[test]
    fn a_part_is_installed_once() {
        let directory = tempfile::tempdir().unwrap();
        let folder = BuildFolder(directory.path().to_owned());
        let installed = AtomicU32::new(0);
        let part = || {
            folder.part("tool-1", |path| {
                installed.fetch_add(1, Ordering::Relaxed);
                Ok(fs::write(path.join("program"), "1")?)
            })
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(part().unwrap().join("program").exists()));
            }
        });
        assert_eq!(installed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_part_that_is_not_complete_is_installed_anew() {
        let directory = tempfile::tempdir().unwrap();
        let folder = BuildFolder(directory.path().to_owned());
        let failed = folder.part("tool-1", |path| {
            fs::write(path.join("half"), "1")?;
            bail!("no network")
        });
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        let part = folder.part("tool-1", |path| Ok(fs::write(path.join("whole"), "1")?)).unwrap();
        assert!(part.join("whole").exists() && !part.join("half").exists());
    }
}
