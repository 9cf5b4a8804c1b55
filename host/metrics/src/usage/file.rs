//! The sums of one hour in a file: a JSON object a line, for each tenant, pipeline and model.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::Builder;

use super::counter::{Key, Use};
use super::hour::Hour;

/// The beginning of the names of files that are not yet complete.
const TEMPORARY: &str = ".new-";

/// The sums of one hour.
pub(crate) type Sums = BTreeMap<Key, Use>;

/// The end of the names of complete files.
const EXTENSION: &str = "jsonl";

/// Why usage cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("usage: {}: {source}", path.display())]
pub struct UsageError {
    path: PathBuf,
    source: io::Error,
}

impl UsageError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self { path: path.to_owned(), source }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    #[serde(rename = "use")]
    used: Use,
}

fn path_of(folder: &Path, hour: Hour) -> PathBuf {
    folder.join(format!("{hour}.{EXTENSION}"))
}

/// The sums of an hour; none if there is no file. A line that cannot be read is left out, and
/// logged.
pub(crate) fn read(folder: &Path, hour: Hour) -> Result<Sums, UsageError> {
    let path = path_of(folder, hour);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Sums::new()),
        Err(error) => return Err(UsageError::at(&path)(error)),
    };
    let mut sums = Sums::new();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (at, line) in lines.enumerate() {
        match serde_json::from_slice::<Line>(line) {
            Ok(Line { key, used }) => sums.entry(key).or_default().add(&used),
            Err(error) => {
                let (file, line) = (path.display(), at + 1);
                tracing::warn!(%file, line, %error, "a line of a tenant's usage cannot be read");
            }
        }
    }
    Ok(sums)
}

/// Replace the file of an hour.
pub(crate) fn write(folder: &Path, hour: Hour, sums: &Sums) -> Result<(), UsageError> {
    let path = path_of(folder, hour);
    let replace = || {
        let mut file = Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
        let mut out = BufWriter::new(file.as_file_mut());
        for (key, used) in sums {
            serde_json::to_writer(&mut out, &Line { key: key.clone(), used: *used })?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        file.persist(&path)?;
        File::open(folder)?.sync_all()
    };
    replace().map_err(UsageError::at(&path))
}

/// Remove files that a killed server was writing.
pub(crate) fn remove_temporary(folder: &Path) -> Result<(), UsageError> {
    for entry in fs::read_dir(folder).map_err(UsageError::at(folder))? {
        let entry = entry.map_err(UsageError::at(folder))?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            fs::remove_file(entry.path()).map_err(UsageError::at(&entry.path()))?;
        }
    }
    Ok(())
}

/// Remove the files of hours before `first`.
pub(crate) fn remove_before(folder: &Path, first: Hour) -> Result<(), UsageError> {
    for entry in fs::read_dir(folder).map_err(UsageError::at(folder))? {
        let path = entry.map_err(UsageError::at(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let hour = name.strip_suffix(EXTENSION).and_then(|name| name.strip_suffix('.'));
        if hour.and_then(|hour| hour.parse::<Hour>().ok()).is_some_and(|hour| hour < first) {
            fs::remove_file(&path).map_err(UsageError::at(&path))?;
        }
    }
    Ok(())
}
