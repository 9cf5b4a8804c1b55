//! What a process does for another one that is to load a model for the first time.

use crate::{
    Backends, LoadError, LoadOptions, ProviderKind, backend_of, check, onnxruntime, probe,
};

/// What a [proof](Backends::prove) came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// What loaded and ran it, the best first.
    pub providers: Vec<ProviderKind>,
    /// Why others did not.
    pub failed: Vec<String>,
}

impl Backends {
    /// What a process does for another one that is to load a model for the first time: load it on the
    /// processor and run it once, within limits that the process has set itself.
    pub fn prove(&self, onnx: &[u8], options: &LoadOptions) -> Result<Proven, LoadError> {
        let inspected = check(onnx)?;
        let mut providers = self.wanted(&options.providers);
        let on_gpu = providers.contains(&ProviderKind::Cuda);
        // CUDA reserves far more address space than it uses.
        providers.retain(|kind| *kind != ProviderKind::Cuda);
        let one = LoadOptions { instances: 1, threads: 1, inter_op_threads: 1, ..options.clone() };
        let mut proven = Proven::default();
        for kind in providers {
            // As of `candidates`.
            if options.providers.is_empty() && !proven.providers.is_empty() {
                break;
            }
            let backend = backend_of(kind);
            let mut loaded = match self.load_on(kind, onnx, &one, &inspected) {
                Ok(loaded) => loaded,
                Err(why) => {
                    proven.failed.push(format!("{backend}: {why}"));
                    continue;
                }
            };
            let Some(model) = loaded.instances.first_mut() else { continue };
            match probe::run_once(model.as_mut(), &loaded.info, &self.pool) {
                Err(error) if onnxruntime::is_out_of_memory(&error) => {
                    return Err(LoadError::OutOfMemory(error.0));
                }
                // Zeros may be what the model cannot take.
                Ok(()) | Err(_) => proven.providers.push(kind),
            }
        }
        if proven.providers.is_empty() && !on_gpu {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: proven.failed });
        }
        Ok(proven)
    }
}
