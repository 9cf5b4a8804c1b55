//! A model together with the files that hold its weights, in one uncompressed tar archive.
//!
//! Nothing is unpacked: a file lies in the archive as it is, so a tensor's data is a part of the
//! archive, and runtimes map it from there. `write` makes headers, so that the same files always
//! give the same archive.
//!
//! Invariants: no path leads out of the model's folder, nothing is a link, and all files are named
//! by the model. What is read into memory is bounded, but for the model itself.
//!
//! Source: POSIX's `pax`, "ustar Interchange Format" and "pax Extended Header", and GNU tar's `L`.

mod error;
mod header;
mod place;
mod write;

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

pub use self::error::PackageError;
use self::header::{BLOCK, Header, Kind, pax_record};
pub use self::place::files_of;
pub(crate) use self::place::placed;
pub use self::write::{END, header_of, padding_of};

/// The name of the model in the packages that Gristmill makes.
pub const MODEL: &str = "model.onnx";

/// Maximum files and folders, and maximum headers: most programs put an extended one before each.
const ENTRIES_MAX: usize = 4096;
const HEADERS_MAX: usize = 3 * ENTRIES_MAX;

/// Maximum bytes of an extended header, which has a long name.
const EXTENSION_BYTES_MAX: u64 = 64 << 10;

/// The beginning of keys of files that are not stored as they are.
const SPARSE: &[u8] = b"GNU.sparse.";

/// A file in a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFile {
    /// Its path in the package.
    pub name: String,
    /// Where its content begins.
    pub offset: u64,
    /// The bytes of its content.
    pub bytes: u64,
}

/// The files of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// In their order.
    pub parts: Vec<PackageFile>,
}

impl Package {
    /// The bytes at the beginning of a file that [`is_one`](Self::is_one) needs.
    pub const HEAD_BYTES: usize = 512;

    /// Whether a file that begins with `head` is a tar archive. No ONNX file is.
    pub fn is_one(head: &[u8]) -> bool {
        head.get(257..262) == Some(b"ustar")
    }

    /// Read where the files of a package are.
    ///
    /// # Errors
    /// The file is no whole archive, or has something that does not belong into a package.
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, PackageError> {
        let len = file.seek(SeekFrom::End(0))?;
        let (mut parts, mut names) = (Vec::new(), BTreeSet::new());
        // What extended headers say about the next entry.
        let (mut name, mut bytes) = (None, None);
        let (mut at, mut entries, mut headers) = (0, 0, 0);
        while let Some(header) = Header::read(file, at, len)? {
            let is_extension = matches!(header.kind, Kind::Pax | Kind::Global | Kind::LongName);
            entries += usize::from(!is_extension);
            headers += 1;
            if entries > ENTRIES_MAX || headers > HEADERS_MAX {
                return Err(PackageError::TooMany(ENTRIES_MAX));
            }
            let content = at + BLOCK;
            let extended = if is_extension { None } else { bytes.take() };
            let size = extended.unwrap_or(header.bytes);
            let end = content.checked_add(size).filter(|end| *end <= len);
            let end = end.ok_or(PackageError::Damaged(at))?;
            at = end.next_multiple_of(BLOCK);
            match header.kind {
                Kind::Global => {}
                Kind::Pax | Kind::LongName => {
                    if size > EXTENSION_BYTES_MAX {
                        return Err(PackageError::Damaged(content));
                    }
                    let mut text = vec![0; size as usize];
                    file.seek(SeekFrom::Start(content))?;
                    file.read_exact(&mut text)?;
                    if text.windows(SPARSE.len()).any(|part| part == SPARSE) {
                        return Err(PackageError::NoFile("a sparse file".into()));
                    }
                    if header.kind == Kind::Pax {
                        let damaged = || PackageError::Damaged(content);
                        name = pax_record(&text, "path").ok_or_else(damaged)?.or(name);
                        let size = pax_record(&text, "size").ok_or_else(damaged)?;
                        bytes = match size.map(|size| size.parse()) {
                            Some(size) => Some(size.map_err(|_| damaged())?),
                            None => bytes,
                        };
                    } else {
                        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                        name = Some(String::from_utf8_lossy(text).into_owned());
                    }
                }
                Kind::Folder => {
                    plain_path(&name.take().unwrap_or(header.name))?;
                }
                Kind::Other => {
                    return Err(PackageError::NoFile(name.take().unwrap_or(header.name)));
                }
                Kind::File => {
                    let name = plain_path(&name.take().unwrap_or(header.name))?;
                    if !names.insert(name.clone()) {
                        return Err(PackageError::Twice(name));
                    }
                    parts.push(PackageFile { name, offset: content, bytes: size });
                }
            }
        }
        Ok(Self { parts })
    }

    /// The model: the only file whose name ends in `.onnx`.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn model(&self) -> Result<&PackageFile, PackageError> {
        let is_model = |part: &&PackageFile| has_models_name(&part.name);
        let mut models = self.parts.iter().filter(is_model);
        match (models.next(), models.next()) {
            (Some(model), None) => Ok(model),
            (None, _) => Err(PackageError::NoModel),
            (Some(_), Some(_)) => {
                let names = self.parts.iter().filter(is_model).map(|part| part.name.clone());
                Err(PackageError::SeveralModels(names.collect()))
            }
        }
    }

    /// The file of this name.
    pub fn part(&self, name: &str) -> Option<&PackageFile> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// Whether a file with this name is a model.
pub fn has_models_name(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"))
}

/// The path without `.` in it.
///
/// # Errors
/// [`PackageError::Path`] if it is empty, absolute, leads upwards, or has a NUL.
pub fn plain_path(path: &str) -> Result<String, PackageError> {
    let mut plain = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => plain.push(name.to_str().unwrap_or_default()),
            Component::CurDir => {}
            _ => return Err(PackageError::Path(path.to_owned())),
        }
    }
    // A folder may be `.`, a file may not.
    match plain.is_empty() && !matches!(path, "." | "./") || path.contains('\0') {
        true => Err(PackageError::Path(path.to_owned())),
        false => Ok(plain.join("/")),
    }
}

#[cfg(test)]
mod tests;
