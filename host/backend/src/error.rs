//! Why a model cannot be loaded, and why a library cannot be used.

use std::num::ParseIntError;
use std::path::PathBuf;

use gristmill_core::{Dtype, ErrorCode, ModelError};
use prost::DecodeError;
use tract_onnx::prelude::TractError;

use crate::names::listed;
use crate::options::ProviderKind;
use crate::package::PackageError;

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not an ONNX model.
    #[error("the file is not an ONNX model: {0}")]
    NoModel(#[source] NotOnnx),
    /// Its weights lie in other files, which were not uploaded.
    #[error(
        "the model has weights in other files, which were not uploaded ({}): `gristmill model push` \
         takes the model with the files beside it; other clients upload a tar archive of all of them",
        listed(.0)
    )]
    ExternalData(Vec<String>),
    /// It is a package of a model and its files, but not a right one.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Larger than protobuf allows.
    #[error(
        "the model is {0} bytes large: an ONNX file holds at most 2 GB; export a larger one with \
         external data, and upload its files together"
    )]
    TooLarge(u64),
    /// It learns from what it is asked.
    #[error(
        "a BatchNormalization of the model is in training mode (training_mode), so that it would keep \
         statistics of one request for the next: export the model for inference (model.eval() in \
         PyTorch)"
    )]
    Trains,
    /// Its first run needs more memory than a run may take.
    #[error("its first run needs more memory than it may have: {}", .0.text)]
    OutOfMemory(#[source] ModelError),
    /// No provider can load it; each gives its reason.
    #[error("no backend can run this model (opset {opset}): {}", joined(.reasons))]
    Unusable {
        /// Version of the standard operators that the model asks for.
        opset: i64,
        /// The reason of each provider.
        reasons: Vec<ProviderFailure>,
    },
}

impl LoadError {
    /// The code for clients.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::InvalidModel
    }
}

/// Why a file is not an ONNX model.
#[derive(Debug, thiserror::Error)]
pub enum NotOnnx {
    /// It cannot be decoded.
    #[error("{}", .0.root_cause())]
    Undecodable(TractError),
    /// It describes no computation.
    #[error("it has no graph")]
    NoGraph,
    /// The defaults of its functions' attributes cannot be decoded.
    #[error(transparent)]
    Functions(#[from] DecodeError),
    /// It is an archive that would have to be unpacked.
    #[error(
        "it is a {0} archive: upload a tar archive, or give a folder, a tar or a zip archive to \
         `gristmill model push`"
    )]
    Archive(&'static str),
}

fn joined(failures: &[ProviderFailure]) -> String {
    let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// A provider that cannot load a model.
#[derive(Debug, thiserror::Error)]
#[error("{provider}: {error}")]
pub struct ProviderFailure {
    /// The provider.
    pub provider: ProviderKind,
    /// Its reason.
    #[source]
    pub error: ProviderError,
}

/// Why a provider cannot load a model.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// ONNX Runtime was not found.
    #[error("its library was not found")]
    NoLibrary,
    /// ONNX Runtime refuses the model or an option.
    #[error(transparent)]
    OnnxRuntime(#[from] ort::Error),
    /// tract refuses the model.
    #[error("{0:#}")]
    Tract(TractError),
    /// tract panicked over the model.
    #[error("panicked while loading")]
    Panicked,
    /// The model needs newer operators.
    #[error("opset {opset} is newer than the newest it was tested with, {max}")]
    Opset {
        /// Version of the standard operators that the model asks for.
        opset: i64,
        /// The newest version that the provider was tested with.
        max: i64,
    },
    /// The model uses operators that the provider does not have.
    #[error("it has no operator {0:?}")]
    Operators(Vec<String>),
    /// An input or output is not a tensor.
    #[error("{name:?} is a {actual}, only tensors can be served")]
    NotATensor {
        /// The input or output.
        name: String,
        /// Its type, in the provider's words.
        actual: String,
    },
    /// An input or output has an element type that this host does not have.
    #[error("{name:?} has element type {actual}")]
    ElementType {
        /// The input or output.
        name: String,
        /// Its element type, in the provider's words.
        actual: String,
    },
    /// An input or output has an element type that the provider does not take.
    #[error("{name:?}: {dtype} tensors are not supported yet")]
    Unsupported {
        /// The input or output.
        name: String,
        /// Its element type.
        dtype: Dtype,
    },
    /// The option `device_id` is not a number.
    #[error("device_id is {value:?}: must be a number")]
    DeviceId {
        /// The option's value.
        value: String,
        /// Why it is not a number.
        #[source]
        source: ParseIntError,
    },
}

/// The ONNX Runtime library cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("ONNX Runtime library {path}: {reason}")]
pub struct LibraryError {
    /// The library's file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub reason: LibraryFault,
}

/// Why an ONNX Runtime library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryFault {
    /// It would write to the home directory.
    #[error("{0} is not 1: ONNX Runtime would write to the home directory")]
    Telemetry(&'static str),
    /// The file cannot be found.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The file cannot be loaded, or is an older version than is needed.
    #[error(transparent)]
    Load(#[from] ort::LoadDynamicError),
    /// It cannot be set up.
    #[error(transparent)]
    SetUp(#[from] ort::Error),
}
