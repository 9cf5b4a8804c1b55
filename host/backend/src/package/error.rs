//! Why a file is not a model's package.

use std::io;

use crate::names::{listed, shown};
use crate::onnx::Malformed;
use crate::onnx::weights::Unclear;

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
    #[error(
        "the archive has more than {0} files and folders: pack the model alone, with the files that \
         it names"
    )]
    TooMany(usize),
    /// A model has its data in too many files.
    #[error(
        "the model and its data have more than {0} files: save it with all tensors in one file, as \
         with `onnx.save_model(model, path, save_as_external_data=True)`"
    )]
    Scattered(usize),
    /// A path leads somewhere else.
    #[error(
        "the archive has the path {}: paths must be relative, not empty, and without \"..\" and NUL",
        shown(.0)
    )]
    Path(String),
    /// A link, a device or a sparse file.
    #[error(
        "{} in the archive is a link or a special file: only files and folders are taken",
        shown(.0)
    )]
    NoFile(String),
    /// Two files have one path.
    #[error("{} is in the archive twice: leave one out", shown(.0))]
    Twice(String),
    /// No file is a model.
    #[error("the archive has no file whose name ends in .onnx")]
    NoModel,
    /// Several files are models.
    #[error("the archive has several models ({}): pack one of them alone", listed(.0))]
    SeveralModels(Vec<String>),
    /// The model is none.
    #[error("the model in the archive is not an ONNX model: {0}")]
    NoOnnx(#[from] Malformed),
    /// The model does not name these files.
    #[error("the archive has {}, which the model does not name: leave it out", listed(.0))]
    Unnamed(Vec<String>),
    /// The model names a file that is not there.
    #[error(
        "tensor {} has its data in {}, which is not in the archive",
        shown(.tensor),
        shown(.file)
    )]
    Missing {
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
    },
    /// The model names a file elsewhere.
    #[error(
        "tensor {} has its data in {}: the path must be relative to the model, not empty, and \
         without \"..\" and NUL",
        shown(.tensor),
        shown(.file)
    )]
    Elsewhere {
        /// The tensor.
        tensor: String,
        /// The path that it names.
        file: String,
    },
    /// The model has a tensor's data in a file with the name of a model.
    #[error(
        "tensor {} has its data in {}: a file that ends in .onnx is a model; save the model with \
         another name for its data",
        shown(.tensor),
        shown(.file)
    )]
    InModel {
        /// The tensor.
        tensor: String,
        /// The path that it names.
        file: String,
    },
    /// The model does not say where a tensor's data is.
    #[error("tensor {} has its data in another file, but its {unclear}", shown(.tensor))]
    Unclear {
        /// The tensor.
        tensor: String,
        /// Why.
        unclear: Unclear,
    },
    /// A tensor's data ends behind its file's end.
    #[error(
        "tensor {} has its data in {length} bytes of {} from {offset} on: the file has {bytes} bytes; \
         offset and length must stay within it",
        shown(.tensor),
        shown(.file)
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
    /// A tensor has another number of bytes than it needs.
    #[error(
        "tensor {} has {length} bytes in {}, but needs {needed}: length must be that, or be left out",
        shown(.tensor),
        shown(.file)
    )]
    OtherLength {
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
