//! Why a file is not a model's package.

use std::io;

use crate::onnx::Malformed;

/// Why a file is not a model's package, or a model does not fit its files.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// It cannot be read.
    #[error("the archive cannot be read")]
    Read(#[from] io::Error),
    /// It is no whole archive.
    #[error("the archive is damaged, or cut short, at byte {0}")]
    Damaged(u64),
    /// It has too many entries.
    #[error("the archive has more than {0} files and folders")]
    TooMany(usize),
    /// A path leads somewhere else.
    #[error("the archive has the path {0:?}: paths must be relative, and without \"..\"")]
    Path(String),
    /// A link, a device or a sparse file.
    #[error("{0:?} in the archive is a link or a special file: only files and folders are taken")]
    NoFile(String),
    /// Two files have one path.
    #[error("{0:?} is in the archive twice")]
    Twice(String),
    /// No file is a model.
    #[error("the archive has no file whose name ends in .onnx")]
    NoModel,
    /// Several files are models.
    #[error("the archive has several models ({}): one is taken", .0.join(", "))]
    SeveralModels(Vec<String>),
    /// The model is none.
    #[error("the model in the archive is not an ONNX model: {0}")]
    NoOnnx(#[from] Malformed),
    /// The model does not name these files.
    #[error("the archive has {}, which the model does not name: leave it out", .0.join(", "))]
    Unnamed(Vec<String>),
    /// The model names a file that is not there.
    #[error("tensor {tensor:?} has its data in {file:?}, which is not in the archive")]
    Missing {
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
    },
    /// The model names a file elsewhere.
    #[error(
        "tensor {tensor:?} has its data in {file:?}: the path must be relative to the model, and \
         without \"..\""
    )]
    Elsewhere {
        /// The tensor.
        tensor: String,
        /// The path that it names.
        file: String,
    },
    /// The model does not say where a tensor's data is.
    #[error(
        "tensor {0:?} has its data in another file, but location, offset or length is missing, \
         stands there twice, or is not a number"
    )]
    Vague(String),
    /// A tensor's data ends behind its file's end.
    #[error(
        "tensor {tensor:?} has its data in {length} bytes of {file:?} from {offset} on: the file has \
         {bytes} bytes"
    )]
    Outside {
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
        /// The beginning of the data.
        offset: u64,
        /// Its bytes.
        length: u64,
        /// The bytes of the file.
        bytes: u64,
    },
    /// A tensor needs more bytes than it has.
    #[error("tensor {tensor:?} has {length} bytes in {file:?}, but needs {needed}")]
    TooShort {
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
        /// The bytes of its data.
        length: u64,
        /// The bytes that its shape and type need.
        needed: u64,
    },
}
