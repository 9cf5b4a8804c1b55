//! The file of a model, made ready for the runtimes.
//!
//! Invariant: a model reads no file but its own blob. An ONNX file alone that names other files is
//! refused; in a package each tensor's data is a part of the blob (`package`).

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{LoadError, NotOnnx};
use crate::onnx::zip_map;
use crate::package::{Package, PackageError, placed};

/// The largest message of protobuf.
const ONNX_BYTES_MAX: u64 = i32::MAX as u64;

/// A model's file.
#[derive(Clone, Copy, Debug)]
pub enum ModelFile<'a> {
    /// The content of an ONNX file that needs no others.
    Onnx(&'a [u8]),
    /// The path of a [`Package`]. The file must not change while the model is loaded.
    Package(&'a Path),
}

impl ModelFile<'_> {
    /// Check that a file of so many bytes can be an ONNX file.
    ///
    /// # Errors
    /// [`LoadError::TooLarge`]
    pub fn check_onnx_bytes(bytes: u64) -> Result<(), LoadError> {
        if bytes > ONNX_BYTES_MAX { Err(LoadError::TooLarge(bytes)) } else { Ok(()) }
    }
}

impl<'a, B: AsRef<[u8]> + ?Sized> From<&'a B> for ModelFile<'a> {
    fn from(onnx: &'a B) -> Self {
        Self::Onnx(onnx.as_ref())
    }
}

/// What runtimes load.
pub(crate) struct ModelSource<'a> {
    /// The model.
    pub(crate) onnx: Cow<'a, [u8]>,
    /// The file that has its weights, if it is not the model itself.
    pub(crate) weights: Option<Weights<'a>>,
    /// How the model differs from the file.
    pub(crate) warnings: Vec<String>,
}

/// The file with a model's weights. The model names it by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights<'a> {
    pub(crate) folder: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> ModelSource<'a> {
    /// # Errors
    /// [`LoadError::TooLarge`], or the package is not one.
    pub(crate) fn open(file: ModelFile<'a>) -> Result<Self, LoadError> {
        let (onnx, weights) = match file {
            ModelFile::Onnx(onnx) => {
                ModelFile::check_onnx_bytes(onnx.len() as u64)?;
                if let Some(archive) = archive_of(onnx) {
                    return Err(LoadError::NoModel(NotOnnx::Archive(archive)));
                }
                (Cow::Borrowed(onnx), None)
            }
            ModelFile::Package(path) => {
                let weights = Weights::at(path)?;
                let onnx = unpacked(path, weights.name)?;
                (Cow::Owned(onnx), Some(weights))
            }
        };
        // A file that is malformed is refused with more words when it is decoded.
        Ok(match zip_map::cut(&onnx).ok().flatten() {
            Some(zip_map::Cut { model, warnings }) => {
                Self { onnx: Cow::Owned(model), weights, warnings }
            }
            None => Self { onnx, weights, warnings: Vec::new() },
        })
    }
}

impl<'a> Weights<'a> {
    fn at(path: &'a Path) -> Result<Self, PackageError> {
        let folder = path.parent().and_then(Path::to_str);
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (folder, name) else {
            return Err(std::io::Error::other("its path is not UTF-8").into());
        };
        Ok(Self { folder, name })
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> usize {
        let about = Path::new(self.folder).join(self.name).metadata();
        about.map_or(0, |about| about.len() as usize)
    }
}

/// The kind of the packed archive that begins so. No ONNX file does.
pub fn archive_of(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => "zip",
        [0x1f, 0x8b, ..] => "gzip",
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => "bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "Zstandard",
        [b'7', b'z', 0xbc, 0xaf, ..] => "7z",
        _ => return None,
    })
}

/// The model in a package, with its weights in the file `archive`.
fn unpacked(path: &Path, archive: &str) -> Result<Vec<u8>, LoadError> {
    let mut file = File::open(path).map_err(PackageError::from)?;
    let package = Package::read(&mut file)?;
    let model = package.model()?;
    ModelFile::check_onnx_bytes(model.bytes)?;
    let mut onnx = vec![0; model.bytes as usize];
    let reading = file.seek(SeekFrom::Start(model.offset));
    reading.and_then(|_| file.read_exact(&mut onnx)).map_err(PackageError::from)?;
    Ok(placed(&package, onnx, archive)?)
}
