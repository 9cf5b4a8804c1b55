//! Instances with a session for each allowed size of batches.
//!
//! On CUDA, ONNX Runtime keeps what cuDNN prepared for the shape of the last run only. A session
//! that meets one shape prepares it once, in its first run.

use std::sync::Arc;

use gristmill_core::{Interrupt, Model, ModelError, Tensor};

/// One instance of a model.
struct BySize<M> {
    /// A session for batches up to each size, ascending.
    sessions: Vec<(usize, M)>,
}

/// The instances of which `sessions` has one session for each of `sizes`, which are ascending. If
/// any size is allowed, `sizes` is empty and each session is an instance.
pub(super) fn instances<M: Model + 'static>(
    sessions: Vec<M>,
    sizes: &[usize],
) -> Vec<Box<dyn Model>> {
    let boxed = |session| Box::new(session) as Box<dyn Model>;
    if sizes.is_empty() {
        return sessions.into_iter().map(boxed).collect();
    }
    let count = sessions.len() / sizes.len();
    let mut sessions = sessions.into_iter();
    let mut next = || BySize { sessions: sizes.iter().copied().zip(&mut sessions).collect() };
    (0..count).map(|_| Box::new(next()) as Box<dyn Model>).collect()
}

impl<M: Model> Model for BySize<M> {
    /// The session of the next allowed size runs a batch. Parts of a batch that failed are not
    /// padded: they take the same way.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let rows = inputs.first().map_or(0, Tensor::rows);
        let fits = self.sessions.iter().position(|(size, _)| *size >= rows);
        let at = fits.unwrap_or(self.sessions.len() - 1);
        self.sessions[at].1.run(inputs)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        let all: Vec<_> = self.sessions.iter().filter_map(|(_, each)| each.interrupt()).collect();
        Some(Arc::new(all))
    }
}
