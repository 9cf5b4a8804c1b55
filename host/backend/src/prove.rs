//! The proof of a model: a child process loads it and runs it once before the server does.

use gristmill_core::ModelErrorKind;

use crate::backends::Backends;
use crate::beliefs::Compared;
use crate::certificate::{Certificate, Certified, PaddingProof, RowProof};
use crate::error::{LoadError, ProviderError, ProviderFailure};
use crate::inspect::{decode, inspect};
use crate::options::{Batching, LoadOptions, ProviderKind};
use crate::rows::Beliefs;
use crate::sizing::{FixedSizes, Sizing, Subject, resident_bytes};
use crate::source::ModelFile;
use crate::{open_rows, probe, rows};

/// The outcome of a [proof](Backends::prove).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proven {
    /// The providers that loaded and ran it, the best first.
    pub providers: Vec<ProviderKind>,
    /// The reasons of the others, each with its provider, but not that ONNX Runtime was not found.
    pub failed: Vec<String>,
    /// What is known of its rows, if its batches are to be proven.
    pub rows: RowProof,
    /// The sizes that were to be chosen, for the first provider.
    pub sizing: Option<Sizing>,
}

/// The reason of a proof without a trial, which is made after a child ended in its trial.
const NO_END: &str = "the trial of its rows needed more time or memory than a child may take";

impl Backends {
    /// Load a model on the processor and run it once. If its batches are to be proven, and
    /// `options` give time for it, also find out whether its rows are independent, and whether they
    /// may be padded as the options say. If not all `sizes` are fixed, choose the others. The
    /// process must have set its own limits before.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn prove<'a>(
        &self,
        file: impl Into<ModelFile<'a>>,
        options: &LoadOptions,
        sizes: Option<&FixedSizes>,
    ) -> Result<Proven, LoadError> {
        let source = open_rows::open(file.into())?;
        let inspected = inspect(&source)?;
        let mut providers = self.wanted(&options.providers);
        let on_gpu = providers.contains(&ProviderKind::Cuda);
        // CUDA reserves far more address space than it uses.
        providers.retain(|kind| *kind != ProviderKind::Cuda);
        let one = LoadOptions { instances: 1, threads: 1, inter_op_threads: 1, ..options.clone() };
        let (mut proven, mut failures) = (Proven::default(), Vec::new());
        let mut beliefs = Beliefs::default();
        if options.batching.is_proven() {
            match rows::analyse(&decode(&source.onnx)?) {
                Ok(believed) => beliefs = believed,
                Err(obstacle) => proven.rows.obstacle = Some(obstacle.to_string()),
            }
        }
        for kind in providers {
            // Without a configured list, tract is used only for models that ONNX Runtime cannot
            // load.
            if options.providers.is_empty() && !proven.providers.is_empty() {
                break;
            }
            let before = resident_bytes();
            let mut loaded = match self.load_on(kind, &source, &one, &inspected) {
                Ok(loaded) => loaded,
                Err(error) => {
                    failures.push(ProviderFailure { provider: kind, error });
                    continue;
                }
            };
            let Some(model) = loaded.instances.first_mut() else { continue };
            match probe::run_once(model.as_mut(), &loaded.info, &self.pool) {
                Err(error)
                    if matches!(
                        error.kind,
                        ModelErrorKind::OutOfMemory | ModelErrorKind::OverLimit
                    ) =>
                {
                    return Err(LoadError::OutOfMemory(error));
                }
                // A model may fail on zeros and still serve real inputs.
                Ok(()) | Err(_) => proven.providers.push(kind),
            }
            let instance_bytes = resident_bytes().saturating_sub(before);
            let has_open_rows = loaded.info.has_open_rows();
            let is_tried = has_open_rows && options.batching.is_proven();
            let mut certificate = is_tried.then(|| match options.trial_time.is_zero() {
                true => Certificate::Undecided { why: NO_END.into() },
                false => self.trial(kind, model.as_mut(), &loaded.info, options.trial_time).run(),
            });
            let is_independent = proven.rows.obstacle.is_none()
                && certificate.as_ref().is_some_and(Certificate::is_independent);
            let forms_batches =
                is_independent || has_open_rows && options.batching == Batching::Declared;
            if !options.padding.is_none() {
                let trial = self.trial(kind, model.as_mut(), &loaded.info, options.trial_time);
                let tried = match options.padding.resolve(&loaded.info) {
                    Ok(padding) if forms_batches => Some(trial.run_padded(kind, &padding)),
                    Ok(_) => None,
                    Err(fault) => Some(Err(fault)),
                };
                proven.rows.padding.extend(tried.map(|tried| {
                    tried.unwrap_or_else(|fault| PaddingProof::refuted(kind, &fault))
                }));
            }
            if let Some(fixed) = sizes.filter(|_| !on_gpu && proven.sizing.is_none()) {
                let (source, inspected) = (&source, &inspected);
                let subject = Subject {
                    backends: self,
                    kind,
                    source,
                    options: &one,
                    inspected,
                    forms_batches,
                    instance_bytes,
                };
                proven.sizing = Some(subject.size(model.as_mut(), &loaded.info, fixed));
            }
            // The comparison loads the model again, and a large one does not fit twice.
            drop(loaded);
            if is_independent {
                let (source, inspected) = (&source, &inspected);
                let compared = Compared { backends: self, kind, source, options: &one, inspected };
                match compared.check(&beliefs) {
                    Ok(()) => {}
                    Err(why) if kind == ProviderKind::Tract => {
                        certificate = Some(Certificate::Undecided { why });
                    }
                    // ONNX Runtime on a GPU reads the graph in the same way.
                    Err(why) => proven.rows.obstacle = Some(why),
                }
            }
            let certified =
                certificate.map(|certificate| Certified { provider: kind, certificate });
            proven.rows.certificates.extend(certified);
        }
        if proven.providers.is_empty() && !on_gpu {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: failures });
        }
        failures.retain(|failure| !matches!(failure.error, ProviderError::NoLibrary));
        proven.failed = failures.iter().map(ToString::to_string).collect();
        Ok(proven)
    }
}
