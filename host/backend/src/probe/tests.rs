use std::sync::{Arc, Mutex};

use super::*;

/// Remembers the shapes of its inputs, and fails if it is told to.
struct Seen {
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
    fails: bool,
}

impl Model for Seen {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.shapes.lock().unwrap().extend(inputs.iter().map(|input| input.shape().to_vec()));
        assert!(inputs.iter().all(
            |input| input.strings().is_some() || input.as_bytes().iter().all(|byte| *byte == 0)
        ));
        if self.fails { Err(ModelError::new("as told")) } else { Ok(Vec::new()) }
    }
}

fn warm(inputs: &[(Dtype, &[i64])], fails: bool) -> (Vec<Vec<usize>>, String) {
    let inputs = inputs.iter().map(|(dtype, dims)| TensorInfo {
        name: "x".into(),
        dtype: *dtype,
        dims: dims.iter().map(|dim| usize::try_from(*dim).ok()).collect(),
    });
    let info = ModelInfo { backend: "test", inputs: inputs.collect(), outputs: Vec::new() };
    let shapes = Arc::default();
    let seen = Seen { shapes: Arc::clone(&shapes), fails };
    let warm = warm_up(&mut [Box::new(seen)], &info, &BufferPool::new(0));
    let shapes = shapes.lock().unwrap().clone();
    (shapes, warm.err().map_or_else(String::new, |error| error.text))
}

#[test]
fn a_model_runs_once_with_one_row() {
    let inputs: [(_, &[i64]); 2] = [(Dtype::Float32, &[-1, 3]), (Dtype::String, &[-1, -1])];
    let (shapes, why) = warm(&inputs, false);
    assert_eq!(shapes, [vec![1, 3], vec![1, 1]], "{why}");
    let (shapes, _) = warm(&[(Dtype::Float32, &[4, 3])], false);
    assert_eq!(shapes, [[4, 3]], "its rows are fixed");
}

#[test]
fn what_cannot_be_tried_or_fails_says_so() {
    let (shapes, why) = warm(&[(Dtype::Float32, &[-1, i64::MAX, i64::MAX])], false);
    assert!(shapes.is_empty() && why.contains("too large"), "{why}");
    let (_, why) = warm(&[(Dtype::Int64, &[-1])], true);
    assert_eq!(why, "a first run on zeros failed: as told");
}
