//! The proof of a model: a child process loads it and runs it once before the server does.

use gristmill_core::ModelErrorKind;

use crate::backends::Backends;
use crate::error::{LoadError, ProviderFailure};
use crate::inspect::inspect;
use crate::options::{LoadOptions, ProviderKind};
use crate::probe;

/// The outcome of a [proof](Backends::prove).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// The providers that loaded and ran it, the best first.
    pub providers: Vec<ProviderKind>,
    /// The reasons of the others, each with its provider.
    pub failed: Vec<String>,
}

impl Backends {
    /// Load a model on the processor and run it once. The process must have set its own limits
    /// before.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn prove(&self, onnx: &[u8], options: &LoadOptions) -> Result<Proven, LoadError> {
        let inspected = inspect(onnx)?;
        let mut providers = self.wanted(&options.providers);
        let on_gpu = providers.contains(&ProviderKind::Cuda);
        // CUDA reserves far more address space than it uses.
        providers.retain(|kind| *kind != ProviderKind::Cuda);
        let one = LoadOptions { instances: 1, threads: 1, inter_op_threads: 1, ..options.clone() };
        let (mut proven, mut failures) = (Proven::default(), Vec::new());
        for kind in providers {
            // Without a configured list, tract is used only for models that ONNX Runtime cannot
            // load.
            if options.providers.is_empty() && !proven.providers.is_empty() {
                break;
            }
            let mut loaded = match self.load_on(kind, onnx, &one, &inspected) {
                Ok(loaded) => loaded,
                Err(error) => {
                    failures.push(ProviderFailure { provider: kind, error });
                    continue;
                }
            };
            let Some(model) = loaded.instances.first_mut() else { continue };
            match probe::run_once(model.as_mut(), &loaded.info, &self.pool) {
                Err(error) if error.kind != ModelErrorKind::Failed => {
                    return Err(LoadError::OutOfMemory(error));
                }
                // A model may fail on zeros and still serve real inputs.
                Ok(()) | Err(_) => proven.providers.push(kind),
            }
        }
        if proven.providers.is_empty() && !on_gpu {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: failures });
        }
        proven.failed = failures.iter().map(ToString::to_string).collect();
        Ok(proven)
    }
}
