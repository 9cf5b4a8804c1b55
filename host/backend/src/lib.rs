//! Loading and running models: ONNX Runtime where its library is found, tract where it is not or
//! cannot run the model. The only crate that names `ort` or tract.
//!
//! Refuses to know batching, tenants and files other than the ONNX Runtime library: a model comes in
//! as bytes and goes out as [`Model`] instances.
//!
//! Invariant: no `ort` value is ever cloned. In 2.0.0-rc.15 a clone deadlocks in its identity
//! session.

#![forbid(unsafe_code)]

mod onnxruntime;
mod tract;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_core::{BufferPool, Dtype, ErrorCode, Model, ModelInfo};

/// Which backend may run a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// ONNX Runtime where it is there and can, else tract.
    #[default]
    Auto,
    /// ONNX Runtime or none.
    OnnxRuntime,
    /// tract or none.
    Tract,
}

/// How a model is loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub preference: Preference,
    /// Instances to load, each for a thread of its own.
    pub instances: usize,
    /// Threads that one run may use.
    pub threads: usize,
}

/// A model ready to run.
pub struct LoadedModel {
    pub info: ModelInfo,
    pub instances: Vec<Box<dyn Model>>,
}

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No backend takes it; each says why.
    #[error("no backend can run this model: {}", .0.join("; "))]
    Unusable(Vec<String>),
}

impl LoadError {
    pub fn code(&self) -> ErrorCode {
        ErrorCode::InvalidModel
    }
}

/// Where the ONNX Runtime library may lie.
#[derive(Clone, Debug, Default)]
pub struct LibrarySearch {
    /// The configuration's word; if it is there but cannot be used, that is an error.
    pub configured: Option<PathBuf>,
    /// The data directory, whose `onnxruntime/` is looked into.
    pub data_directory: Option<PathBuf>,
}

/// The ONNX Runtime library named by the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("ONNX Runtime library {path}: {why}")]
pub struct LibraryError {
    path: PathBuf,
    why: String,
}

/// The backends of this process.
pub struct Backends {
    onnxruntime: Option<onnxruntime::Runtime>,
    pool: BufferPool,
}

impl Backends {
    /// Look for ONNX Runtime: where the configuration says, in `ORT_DYLIB_PATH`, in the data
    /// directory. Where there is none, tract serves and a warning says so.
    pub fn open(search: &LibrarySearch, pool: BufferPool) -> Result<Arc<Self>, LibraryError> {
        let onnxruntime = match find_library(search) {
            Some(path) => match onnxruntime::Runtime::open(&path) {
                Ok(runtime) => {
                    tracing::info!(library = %path.display(), "models run on ONNX Runtime");
                    Some(runtime)
                }
                Err(why) if search.configured.is_some() => return Err(LibraryError { path, why }),
                Err(why) => {
                    tracing::warn!(library = %path.display(), why, "ONNX Runtime cannot be used, models run on tract, which is several times slower");
                    None
                }
            },
            None => {
                tracing::warn!(
                    "no ONNX Runtime library found (onnxruntime_library, ORT_DYLIB_PATH, or onnxruntime/ in the data directory): models run on tract, which is several times slower"
                );
                None
            }
        };
        Ok(Arc::new(Self { onnxruntime, pool }))
    }

    /// The backends that can serve, best first.
    pub fn available(&self) -> Vec<&'static str> {
        let onnxruntime = self.onnxruntime.is_some().then_some(onnxruntime::NAME);
        onnxruntime.into_iter().chain([tract::NAME]).collect()
    }

    /// Load an ONNX file. Takes long: call this off the request threads.
    pub fn load(&self, onnx: &[u8], options: &LoadOptions) -> Result<LoadedModel, LoadError> {
        let mut reasons = Vec::new();
        if options.preference != Preference::Tract {
            match &self.onnxruntime {
                Some(runtime) => match runtime.load(onnx, options, &self.pool) {
                    Ok(model) => return Ok(model),
                    Err(why) => reasons.push(format!("{}: {why}", onnxruntime::NAME)),
                },
                None => reasons.push(format!("{}: its library is not there", onnxruntime::NAME)),
            }
        }
        if options.preference != Preference::OnnxRuntime {
            match tract::load(onnx, options, &self.pool) {
                Ok(model) => {
                    if let [why] = &reasons[..]
                        && self.onnxruntime.is_some()
                    {
                        tracing::warn!(why, "model runs on tract, which is several times slower");
                    }
                    return Ok(model);
                }
                Err(why) => reasons.push(format!("{}: {why}", tract::NAME)),
            }
        }
        Err(LoadError::Unusable(reasons))
    }
}

fn find_library(search: &LibrarySearch) -> Option<PathBuf> {
    if let Some(path) = &search.configured {
        return Some(path.clone());
    }
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    library_in(&search.data_directory.as_ref()?.join("onnxruntime"))
}

/// The ONNX Runtime library directly in `directory`: the file name varies with version and system.
fn library_in(directory: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libonnxruntime.so")
            || name.starts_with("libonnxruntime.dylib")
            || name == "onnxruntime.dll"
    };
    let entries = std::fs::read_dir(directory).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}

/// What neither backend takes yet, in a sentence.
fn unsupported(dtype: Dtype) -> String {
    format!("{dtype} tensors are not supported yet")
}

/// Run `$body` with `$type` being the Rust type of `$dtype`'s elements; `$other` for those without.
macro_rules! with_element_type {
    ($dtype:expr, $type:ident => $body:expr, $other:pat => $fallback:expr) => {
        match $dtype {
            Dtype::Bool => {
                type $type = bool;
                $body
            }
            Dtype::Uint8 => {
                type $type = u8;
                $body
            }
            Dtype::Int8 => {
                type $type = i8;
                $body
            }
            Dtype::Uint16 => {
                type $type = u16;
                $body
            }
            Dtype::Int16 => {
                type $type = i16;
                $body
            }
            Dtype::Uint32 => {
                type $type = u32;
                $body
            }
            Dtype::Int32 => {
                type $type = i32;
                $body
            }
            Dtype::Uint64 => {
                type $type = u64;
                $body
            }
            Dtype::Int64 => {
                type $type = i64;
                $body
            }
            Dtype::Float16 => {
                type $type = half::f16;
                $body
            }
            Dtype::Float32 => {
                type $type = f32;
                $body
            }
            Dtype::Float64 => {
                type $type = f64;
                $body
            }
            $other => $fallback,
        }
    };
}
use with_element_type;

#[cfg(test)]
mod tests;
