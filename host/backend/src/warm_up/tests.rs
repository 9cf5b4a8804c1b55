use std::sync::{Arc, Mutex};

use gristmill_core::{Dtype, Interrupt, Tensor, TensorInfo};

use super::*;

/// Remembers the shapes of its inputs, and fails or takes long if it is told to.
#[derive(Clone, Default)]
struct Seen {
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
    fails_from: Option<usize>,
    /// The smallest dimension that it takes.
    dim_min: usize,
    is_over_limit: bool,
    /// How long the first run takes, and each further one.
    takes: [Duration; 2],
    can_be_ended: bool,
}

/// Ends nothing: the runs of the tests are short.
struct Ends;

impl Interrupt for Ends {
    fn interrupt(&self) {}

    fn rearm(&self) {}
}

impl Model for Seen {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let mut shapes = self.shapes.lock().unwrap();
        let (began, takes) = (Instant::now(), self.takes[usize::from(!shapes.is_empty())]);
        while began.elapsed() < takes {
            std::hint::spin_loop();
        }
        shapes.extend(inputs.iter().map(|input| input.shape().to_vec()));
        assert!(
            inputs
                .iter()
                .all(|input| input.texts().is_some()
                    || input.as_bytes().iter().all(|byte| *byte == 0))
        );
        let rows = inputs.first().map_or(0, Tensor::rows);
        let kind = match self.is_over_limit {
            true => ModelErrorKind::OverLimit,
            false => ModelErrorKind::Failed,
        };
        let is_small = |input: &Tensor| input.shape()[1..].iter().any(|dim| *dim < self.dim_min);
        match self.fails_from {
            _ if inputs.iter().any(is_small) => Err(ModelError::new("too small")),
            Some(from) if rows >= from => Err(ModelError { kind, text: "as told".into() }),
            _ => Ok(Vec::new()),
        }
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        self.can_be_ended.then(|| Arc::new(Ends) as _)
    }
}

/// The shapes that two instances saw, and the warnings.
fn warm(
    inputs: &[(Dtype, &[i64])],
    sizes: &[usize],
    model: &Seen,
) -> (Vec<Vec<usize>>, Result<Vec<String>, ModelError>) {
    let tensor = |dtype: Dtype, dims: &[i64]| TensorInfo {
        name: "x".into(),
        dtype,
        dims: dims.iter().map(|dim| usize::try_from(*dim).ok()).collect(),
    };
    let inputs: Vec<_> = inputs.iter().map(|(dtype, dims)| tensor(*dtype, dims)).collect();
    let outputs = vec![tensor(Dtype::Float32, &[-1])];
    let forms_batches = inputs.iter().all(|input: &TensorInfo| input.dims[0].is_none());
    let info = ModelInfo {
        backend: "test",
        inputs,
        outputs,
        forms_batches,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    let warm_up = WarmUp { info: &info, pool: &BufferPool::new(0), sizes };
    let outcome = warm_up.run(&mut [Box::new(model.clone()), Box::new(model.clone())]);
    let shapes = std::mem::take(&mut *model.shapes.lock().unwrap());
    (shapes, outcome)
}

const ROWS: [(Dtype, &[i64]); 1] = [(Dtype::Float32, &[-1, 3])];

#[test]
fn each_instance_runs_each_size_once_and_the_smallest_first() {
    let (shapes, outcome) = warm(&ROWS, &[8, 1, 8], &Seen::default());
    assert_eq!(shapes, [[1, 3], [1, 3], [8, 3], [8, 3]]);
    assert!(outcome.unwrap().is_empty());
    let (shapes, outcome) = warm(&ROWS, &[], &Seen::default());
    assert!(shapes.is_empty() && outcome.unwrap().is_empty());
}

#[test]
fn dimensions_besides_rows_that_may_vary_have_the_first_size_that_the_model_takes() {
    let inputs: [(_, &[i64]); 2] = [(Dtype::Float32, &[-1, -1, 3]), (Dtype::String, &[-1, -1])];
    let (shapes, outcome) = warm(&inputs, &[2], &Seen::default());
    assert_eq!(shapes[..2], [vec![2, 1, 3], vec![2, 1]]);
    assert!(outcome.unwrap().is_empty());
    let picture: [(_, &[i64]); 1] = [(Dtype::Float32, &[-1, 3, -1, -1])];
    let (shapes, outcome) =
        warm(&picture, &[2], &Seen { dim_min: 3, can_be_ended: true, ..Seen::default() });
    // One row shows which size the model takes.
    let expected = [[1, 3, 1, 1], [1, 3, 64, 64], [2, 3, 64, 64], [2, 3, 64, 64]];
    assert_eq!(shapes, expected);
    assert!(outcome.unwrap().is_empty());
    // A request may be smaller, so a lack of memory refuses nothing.
    let large = Seen { dim_min: 3, can_be_ended: true, fails_from: Some(4), ..Seen::default() };
    let (_, outcome) = warm(&picture, &[2, 4], &Seen { is_over_limit: true, ..large });
    assert_eq!(outcome.unwrap(), ["a first run on 4 rows of zeros as told"]);
}

#[test]
fn a_model_whose_rows_form_no_batches_runs_once() {
    let fixed: [(_, &[i64]); 1] = [(Dtype::Float32, &[4, 3])];
    let (shapes, outcome) = warm(&fixed, &[1, 8], &Seen::default());
    assert_eq!(shapes, [[4, 3], [4, 3]]);
    assert_eq!(outcome.unwrap(), ["warm_up: its rows form no batches, so it ran once"]);
    let (shapes, outcome) = warm(&fixed, &[1], &Seen::default());
    assert!(shapes.len() == 2 && outcome.unwrap().is_empty());
}

#[test]
fn a_size_that_cannot_be_tried_or_fails_is_a_warning() {
    let huge: [(_, &[i64]); 1] = [(Dtype::Float32, &[-1, i64::MAX, i64::MAX])];
    let (shapes, outcome) = warm(&huge, &[1], &Seen::default());
    let warnings = outcome.unwrap();
    assert!(shapes.is_empty() && warnings[0].contains("too large"), "{warnings:?}");
    let fails = Seen { fails_from: Some(4), ..Seen::default() };
    let (shapes, outcome) = warm(&ROWS, &[2, 4, 6], &fails);
    // The other instance is not tried in vain.
    assert_eq!(shapes, [[2, 3], [2, 3], [4, 3], [6, 3]]);
    let expected =
        [4, 6].map(|rows| format!("a first run on {rows} rows of zeros failed: as told"));
    assert_eq!(outcome.unwrap(), expected);
}

#[test]
fn a_run_over_its_memory_limit_refuses_the_model() {
    let fails = Seen { fails_from: Some(4), is_over_limit: true, ..Seen::default() };
    let error = warm(&ROWS, &[1, 4], &fails).1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::OverLimit);
    assert_eq!(error.text, "a first run on 4 rows of zeros: as told");
}

#[test]
fn runs_that_cannot_be_ended_are_left_out_if_they_would_take_long() {
    let second = Duration::from_millis(20);
    // 1000 rows would take 20 s, if the first run says it.
    let slow = Seen { takes: [second; 2], ..Seen::default() };
    let (shapes, outcome) = warm(&ROWS, &[1, 1000], &slow);
    assert_eq!(shapes, [[1, 3], [1, 3], [1, 3]]);
    let warnings = outcome.unwrap();
    let expected = "a first run on 1000 rows of zeros was left out: it could take longer than 10 s";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
    // Only the first run of all is slow.
    let tuned = Seen { takes: [second, Duration::ZERO], ..Seen::default() };
    let (shapes, outcome) = warm(&ROWS, &[1, 1000], &tuned);
    assert_eq!((shapes.len(), outcome.unwrap().len()), (5, 0), "{shapes:?}");
    let ended = Seen { can_be_ended: true, ..slow };
    let (shapes, outcome) = warm(&ROWS, &[1, 1000], &ended);
    assert_eq!((shapes.len(), outcome.unwrap().len()), (4, 0), "{shapes:?}");
}
