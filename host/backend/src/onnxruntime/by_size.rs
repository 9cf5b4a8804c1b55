//! Instances with a session for each allowed size of batches.
//!
//! On CUDA, ONNX Runtime keeps what cuDNN prepared for the shape of the last run only. A session
//! that meets one shape prepares it once, in its first run.

use std::sync::Arc;

use gristmill_core::{Interrupt, Model, ModelError, ModelInfo, NamedTensor, Tensor};

use crate::inspect::Inspected;
use crate::options::{Batching, LoadOptions, ProviderKind};

/// One instance of a model.
struct BySize<M> {
    /// A session for batches up to each size, ascending.
    sessions: Vec<(usize, M)>,
}

/// The sizes for which an instance has a session each. Empty: it has one for all sizes.
pub(super) fn session_sizes<'a>(
    provider: ProviderKind,
    info: &ModelInfo,
    inspected: &Inspected,
    options: &'a LoadOptions,
) -> &'a [usize] {
    // Whether rows form batches is known only after a trial on the loaded model.
    let may_form = info.has_open_rows() && options.batching != Batching::Off && !info.has_texts();
    match provider == ProviderKind::Cuda && inspected.has_convolutions() && may_form {
        true => &options.allowed_batch_sizes,
        false => &[],
    }
}

/// The instances of which `sessions` has one session for each of `sizes`, which are ascending. If
/// `sizes` is empty, each session is an instance.
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

impl<M> BySize<M> {
    fn fitting(&mut self, inputs: &[Tensor]) -> &mut M {
        let rows = inputs.first().map_or(0, Tensor::rows);
        let fits = self.sessions.iter().position(|(size, _)| *size >= rows);
        let at = fits.unwrap_or(self.sessions.len() - 1);
        &mut self.sessions[at].1
    }
}

impl<M: Model> Model for BySize<M> {
    /// The session of the next allowed size runs a batch. Parts of a batch that failed are not
    /// padded: they take the same way.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.fitting(inputs).run(inputs)
    }

    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        self.fitting(inputs).run_with(inputs, optional)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        let all: Vec<_> = self.sessions.iter().filter_map(|(_, each)| each.interrupt()).collect();
        Some(Arc::new(all))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use gristmill_core::{BufferPool, Dtype, TensorInfo};

    use super::*;

    /// Notes its number when it runs, and whether it was told to end.
    struct Numbered {
        number: usize,
        ran: Arc<Mutex<Vec<usize>>>,
        ordered: Arc<Ordered>,
    }

    #[derive(Default)]
    struct Ordered(AtomicBool);

    impl Interrupt for Ordered {
        fn interrupt(&self) {
            self.0.store(true, Ordering::Relaxed);
        }

        fn rearm(&self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    impl Model for Numbered {
        fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
            self.ran.lock().unwrap().push(self.number);
            Ok(Vec::new())
        }

        fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
            Some(self.ordered.clone())
        }
    }

    fn rows(rows: usize) -> Tensor {
        let pool = BufferPool::new(0);
        Tensor::new(Dtype::Uint8, [rows].as_slice().into(), pool.copy_from(&vec![0; rows])).unwrap()
    }

    #[test]
    fn a_batch_runs_on_the_session_of_the_next_size() {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let ordered: Vec<Arc<Ordered>> = (0..6).map(|_| Arc::default()).collect();
        let session =
            |number: usize| Numbered { number, ran: ran.clone(), ordered: ordered[number].clone() };
        let mut instances = instances((0..6).map(session).collect(), &[1, 4, 16]);
        assert_eq!(instances.len(), 2);
        for (instance, expected) in [(0, [0, 1, 1, 2, 2, 2]), (1, [3, 4, 4, 5, 5, 5])] {
            for batch in [1, 3, 4, 5, 16, 20] {
                instances[instance].run(&[rows(batch)]).unwrap();
            }
            assert_eq!(std::mem::take(&mut *ran.lock().unwrap()), expected);
        }
        let are_ordered =
            || ordered.iter().map(|one| one.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let interrupt = instances[1].interrupt().unwrap();
        interrupt.interrupt();
        assert_eq!(are_ordered(), [false, false, false, true, true, true]);
        interrupt.rearm();
        assert_eq!(are_ordered(), [false; 6]);
    }

    #[test]
    fn sessions_by_size_are_for_convolutions_on_cuda() {
        let input = |dtype, dims: &[Option<usize>]| TensorInfo {
            name: "x".into(),
            dtype,
            dims: dims.to_vec(),
        };
        let model = |dtype, dims: &[Option<usize>]| ModelInfo {
            backend: "test",
            inputs: vec![input(dtype, dims)],
            outputs: Vec::new(),
            forms_batches: false,
            optional: Vec::new(),
            equal_dims: Vec::new(),
        };
        let inspected = |operator: &str| Inspected {
            opset: 17,
            operators: ["Relu".to_owned(), operator.to_owned()].into(),
            ..Inspected::default()
        };
        let batches = model(Dtype::Float32, &[None, Some(3)]);
        let (fixed, texts) =
            (model(Dtype::Float32, &[Some(1), Some(3)]), model(Dtype::String, &[None, Some(3)]));
        let options = LoadOptions { allowed_batch_sizes: vec![1, 8], ..LoadOptions::default() };
        let sizes = |provider, info, operator| {
            session_sizes(provider, info, &inspected(operator), &options).to_vec()
        };
        let (cuda, conv) = (ProviderKind::Cuda, "com.microsoft.FusedConv");
        assert_eq!(sizes(cuda, &batches, conv), [1, 8]);
        assert_eq!(sizes(cuda, &batches, "ConvTranspose"), [1, 8]);
        assert_eq!(sizes(ProviderKind::Cpu, &batches, conv), [0; 0]);
        assert_eq!(sizes(cuda, &batches, "MatMul"), [0; 0]);
        assert_eq!(sizes(cuda, &fixed, conv), [0; 0]);
        assert_eq!(sizes(cuda, &texts, conv), [0; 0]);
        // They run before the model serves, unless the configuration names others.
        assert_eq!(options.warm_up_sizes(&[1, 8]), [1, 8]);
        assert_eq!(options.warm_up_sizes(&[]), [1]);
        let named = LoadOptions { warm_up: Some(vec![]), ..options.clone() };
        assert_eq!(named.warm_up_sizes(&[1, 8]), [0; 0]);
    }
}
