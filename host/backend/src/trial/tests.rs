use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use gristmill_core::{Dtype, Interrupt, TensorInfo};

use super::*;

/// A model that computes its output from the rows of its input, which have two fractions.
struct Computed<F>(F);

impl<F: FnMut(&[[f32; 2]]) -> Vec<[f32; 2]> + Send> Model for Computed<F> {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let rows: &[[f32; 2]] = bytemuck::cast_slice(inputs[0].as_f32().unwrap());
        let rows = (self.0)(rows);
        let buffer = BufferPool::new(0).copy_from(bytemuck::cast_slice(&rows));
        let shape = [rows.len(), 2];
        Ok(vec![Tensor::new(Dtype::Float32, shape.as_slice().into(), buffer).unwrap()])
    }
}

/// A model whose runs wait without work until they are ended, as on a machine without a free core.
struct Waiting {
    ends: Arc<EndsWaiting>,
    ended: Receiver<()>,
}

struct EndsWaiting(Sender<()>);

impl Interrupt for EndsWaiting {
    fn interrupt(&self) {
        let _ = self.0.send(());
    }

    fn rearm(&self) {}
}

impl Model for Waiting {
    fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let _ = self.ended.recv();
        Err(ModelError::new("it was ended"))
    }

    fn ran_on_caller(&self) -> bool {
        true
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(self.ends.clone())
    }
}

fn certificate(compute: impl FnMut(&[[f32; 2]]) -> Vec<[f32; 2]> + Send) -> Certificate {
    certificate_within(compute, Duration::from_secs(600))
}

fn certificate_within(
    compute: impl FnMut(&[[f32; 2]]) -> Vec<[f32; 2]> + Send,
    within: Duration,
) -> Certificate {
    certificate_of(&mut Computed(compute), within)
}

fn certificate_of(model: &mut dyn Model, within: Duration) -> Certificate {
    let tensor = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, Some(2)],
    };
    let info = ModelInfo {
        backend: "test",
        inputs: vec![tensor("x")],
        outputs: vec![tensor("y")],
        forms_batches: false,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    let pool = BufferPool::new(0);
    Trial { model, info: &info, pool: &pool, slack: 1.0, within }.run()
}

fn assert_dependent(certificate: &Certificate, text: &str) {
    let Certificate::Dependent { why } = certificate else { panic!("{certificate:?}") };
    assert!(why.contains(text), "{why}");
}

#[test]
fn rows_that_do_not_influence_each_other_are_independent() {
    let doubled = certificate(|rows| rows.iter().map(|row| row.map(|one| one + one)).collect());
    let Certificate::Independent { influence, runs } = doubled else { panic!("{doubled:?}") };
    assert!(influence == 0.0 && runs > 30, "{influence} {runs}");
}

#[test]
fn an_influence_is_found_whatever_brings_it() {
    let mean = |rows: &[[f32; 2]]| {
        let sum: f32 = rows.iter().map(|row| row[0]).sum();
        rows.iter().map(|row| [row[0] - 0.001 * sum, row[1]]).collect()
    };
    assert_dependent(&certificate(mean), "output \"y\" of a row changes by");
    let place =
        |rows: &[[f32; 2]]| (0..).zip(rows).map(|(at, row)| [row[0], row[1] + at as f32]).collect();
    assert_dependent(&certificate(place), "output \"y\" of a row");
    // A row changes only beside rows that are not numbers.
    let poisoned = |rows: &[[f32; 2]]| {
        let is_poisoned = rows.iter().flatten().any(|one| one.is_nan());
        let factor = if is_poisoned { f32::NAN } else { 1.0 };
        rows.iter().map(|row| row.map(|one| one * factor)).collect()
    };
    assert_dependent(&certificate(poisoned), "is another one");
    // Only the size of a large batch does.
    let large = |rows: &[[f32; 2]]| {
        let more = if rows.len() > 32 { 0.1 } else { 0.0 };
        rows.iter().map(|row| row.map(|one| one + more)).collect()
    };
    assert_dependent(&certificate(large), "among 33 rows");
}

#[test]
fn rows_that_come_or_go_are_not_independent() {
    let kept = |rows: &[[f32; 2]]| rows.iter().copied().filter(|row| row[0] > 0.0).collect();
    assert_dependent(&certificate(kept), "came out of \"y\"");
}

#[test]
fn what_differs_from_run_to_run_or_needs_too_long_is_undecided() {
    let mut runs = 0.0;
    let counted = certificate(|rows| {
        runs += 1.0;
        rows.iter().map(|row| [row[0], row[1] + runs]).collect()
    });
    let Certificate::Undecided { why } = counted else { panic!("{counted:?}") };
    assert!(why.contains("differs from run to run"), "{why}");
    let late = certificate_within(|rows| rows.to_vec(), Duration::ZERO);
    let Certificate::Undecided { why } = late else { panic!("{late:?}") };
    assert!(why.contains("raise batch_proof_ms"), "{why}");
}

#[test]
fn a_busy_machine_leaves_a_trial_unfinished() {
    let (sender, ended) = channel();
    let mut model = Waiting { ends: Arc::new(EndsWaiting(sender)), ended };
    let certificate = certificate_of(&mut model, Duration::from_millis(20));
    let Certificate::Unfinished { why } = &certificate else { panic!("{certificate:?}") };
    assert!(why.contains("less than a tenth of a core"), "{why}");
    assert!(!certificate.is_independent());
}
