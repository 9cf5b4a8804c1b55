//! Helpers for the unit tests of several files.

use gristmill_batch::{Lane, LaneConfig, LaneParts};
use gristmill_core::{
    BufferPool, Digest, Dtype, Model, ModelError, ModelInfo, Name, Tensor, TensorInfo,
};

/// Answers with its inputs.
struct Echo;

impl Model for Echo {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(inputs.to_vec())
    }
}

/// A lane over a model that answers with its input.
pub(crate) fn echo_lane(config: LaneConfig) -> Lane {
    let tensor = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, Some(1)],
    };
    let info = ModelInfo {
        backend: "test",
        inputs: vec![tensor("x")],
        outputs: vec![tensor("y")],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    Lane::new(LaneParts {
        name: "echo",
        info,
        instances: vec![Box::new(Echo)],
        config,
        pool: BufferPool::new(0),
    })
    .unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

/// One place for figures, and usage that is not kept.
pub(crate) fn figure_parts() -> crate::FigureParts {
    let folder = tempfile::tempdir().unwrap();
    let book = gristmill_metrics::usage::Book::open(folder.path(), 1, std::time::SystemTime::now());
    crate::FigureParts {
        places: gristmill_metrics::Places::new(1).into(),
        book: book.unwrap().into(),
    }
}
