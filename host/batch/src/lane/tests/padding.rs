//! Rows of different lengths.

use gristmill_core::{CutOutput, PadValue, PaddedInput, PaddedLength, Padding};

use super::*;
use crate::Elements;

/// Doubles each place of its rows, and adds them up. Notes the shapes that it ran.
struct Doubling {
    pool: BufferPool,
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
    /// How many places too few its first output has for rows of 16 places.
    lacks: usize,
}

impl Model for Doubling {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let (values, shape) = (inputs[0].as_f32().unwrap(), inputs[0].shape().to_vec());
        self.shapes.lock().unwrap().push(shape.clone());
        let (rows, length) = (shape[0], shape[1]);
        let sums: Vec<f32> = values.chunks(length).map(|row| row.iter().sum()).collect();
        let kept = if length == 16 { length - self.lacks } else { length };
        let places = values.chunks(length).flat_map(|row| row[..kept].iter().map(|one| one * 2.0));
        let places: Vec<f32> = places.collect();
        Ok(vec![floats(&self.pool, [rows, kept], &places), floats(&self.pool, [rows, 1], &sums)])
    }
}

/// A tensor with these numbers.
fn floats(pool: &BufferPool, shape: [usize; 2], values: &[f32]) -> Tensor {
    let buffer = pool.copy_from(bytemuck::cast_slice(values));
    Tensor::new(Dtype::Float32, shape.as_slice().into(), buffer).unwrap()
}

/// An input or output of any number of rows.
fn described(name: &str, size: Option<usize>) -> TensorInfo {
    TensorInfo { name: name.into(), dtype: Dtype::Float32, dims: vec![None, size] }
}

/// A lane of such a model, the shapes that it ran, and the pool of its tensors.
type PaddedLane = (Lane, Arc<Mutex<Vec<Vec<usize>>>>, BufferPool);

/// A lane of such a model that pads to 4 and to 16 with 0, in which two rows wait for each other.
fn lane(lacks: usize) -> PaddedLane {
    lane_with(lacks, 0, [4, 16], LaneConfig::new(8, 64))
}

/// The same with another number that fills rows up, and with other buckets and settings.
fn lane_with(lacks: usize, value: i128, buckets: [usize; 2], config: LaneConfig) -> PaddedLane {
    let (pool, shapes) = (BufferPool::new(1 << 20), Arc::default());
    let model = Doubling { pool: pool.clone(), shapes: Arc::clone(&shapes), lacks };
    let element = PadValue::Whole(value).element(Dtype::Float32).unwrap();
    let inputs = vec![PaddedInput { input: 0, axis: 1, element }];
    let padding = Padding {
        lengths: vec![PaddedLength { buckets: buckets.to_vec(), inputs }],
        outputs: vec![CutOutput { output: 0, axis: 1, length: 0 }],
    };
    let config =
        LaneConfig { padding, max_queue_delay: BOUND, preferred_batch_sizes: vec![2], ..config };
    let parts = LaneParts {
        name: "doubling",
        info: ModelInfo {
            outputs: vec![described("places", None), described("sum", Some(1))],
            ..info()
        },
        instances: vec![Box::new(model)],
        config,
        pool: pool.clone(),
    };
    (Lane::new(parts).unwrap(), shapes, pool)
}

/// A row of so many ones.
fn row(pool: &BufferPool, tenant: &str, length: usize) -> Submission {
    let tensor = floats(pool, [1, length], &vec![1.0; length]);
    let inputs = vec![NamedTensor { name: "x".into(), tensor }];
    Submission { inputs, ..submission(pool, tenant, &[], Duration::from_secs(60)) }
}

/// Two rows of these lengths in one batch. Both get their own outputs.
async fn together(lane: &Lane, pool: &BufferPool, lengths: [usize; 2]) -> [Answered; 2] {
    let [one, other] = lengths.map(|length| row(pool, &format!("t{length}"), length));
    let both = async { tokio::join!(lane.submit(one, None), lane.submit(other, None)) };
    let (one, other) = within("both are answered", both).await;
    let answers = [one.unwrap(), other.unwrap()];
    for (answer, length) in answers.iter().zip(lengths) {
        let [places, sum] = [0, 1].map(|at| &answer.outputs[at]);
        assert_eq!(places.shape(), [1, length]);
        assert_eq!(places.as_f32().unwrap(), vec![2.0; length]);
        assert_eq!(sum.as_f32().unwrap(), [length as f32]);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_one_bucket_share_a_batch_and_get_their_own_lengths() {
    let (lane, shapes, pool) = lane(0);
    let answers = together(&lane, &pool, [5, 12]).await;
    assert!(answers.iter().all(|answer| (answer.batch_rows, answer.batch_tenants) == (2, 2)));
    assert!(answers.iter().all(|answer| answer.used.rows == 1));
    // In a run of 16 places each, both cost the same.
    assert_eq!(answers[0].used.time, answers[1].used.time);
    let statistics = lane.statistics();
    assert_eq!(statistics.elements, Elements { real: 17, padding: 15 });
    // Rows of one length need no padding. The first padded batch was checked.
    together(&lane, &pool, [7, 7]).await;
    assert_eq!(*shapes.lock().unwrap(), [[2, 16], [1, 5], [2, 7]]);
    assert_eq!(lane.statistics().elements, Elements { real: 31, padding: 15 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_other_buckets_and_longer_ones_wait_for_their_like() {
    let (lane, shapes, pool) = lane(0);
    let pairs = async {
        tokio::join!(
            together(&lane, &pool, [3, 4]),
            together(&lane, &pool, [17, 17]),
            together(&lane, &pool, [5, 16]),
        )
    };
    pairs.await;
    let mut shapes = shapes.lock().unwrap().clone();
    // One that is run again alone is a check.
    shapes.retain(|shape| shape[0] == 2);
    shapes.sort_unstable();
    assert_eq!(shapes, [[2, 4], [2, 16], [2, 17]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_would_be_filled_up_far_run_by_length() {
    // Two more rows pad the batch.
    let config = LaneConfig { allowed_batch_sizes: vec![4, 8], ..LaneConfig::new(8, 64) };
    let (lane, shapes, pool) = lane_with(0, 0, [16, 17_000], config);
    together(&lane, &pool, [1001, 1000]).await;
    assert_eq!(*shapes.lock().unwrap(), [[4, 1000], [4, 1001]]);
    let statistics = lane.statistics();
    assert_eq!(statistics.elements, Elements { real: 2001, padding: 0 });
    assert_eq!((statistics.bisections, lane.padding_ended()), (0, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_far_from_their_bucket_wait_for_rows_of_their_length() {
    let (lane, shapes, pool) = lane_with(0, 0, [16, 512], LaneConfig::new(8, 64));
    let pairs =
        async { tokio::join!(together(&lane, &pool, [18, 30]), together(&lane, &pool, [18, 30])) };
    pairs.await;
    let mut shapes = shapes.lock().unwrap().clone();
    shapes.sort_unstable();
    assert_eq!(shapes, [[2, 18], [2, 30]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_a_check_refutes_ends_padding_alone() {
    // Ones fill rows up, and their sums are counted.
    let (lane, shapes, pool) = lane_with(0, 1, [4, 16], LaneConfig::new(8, 64));
    together(&lane, &pool, [5, 12]).await;
    let why = lane.padding_ended().unwrap();
    assert!(why.contains("filled up to one length, one got another answer than alone"), "{why}");
    assert!(lane.forms_batches() && lane.batches_ended().is_none());
    together(&lane, &pool, [7, 7]).await;
    assert_eq!(*shapes.lock().unwrap(), [[2, 16], [1, 5], [1, 5], [1, 12], [2, 7]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_declaration_a_refuted_claim_ends_padding_alone_and_the_next_batch_is_checked() {
    let config = LaneConfig { rows_are_declared: true, ..LaneConfig::new(8, 64) };
    let (lane, shapes, pool) = lane_with(0, 1, [4, 16], config);
    together(&lane, &pool, [7, 7]).await;
    together(&lane, &pool, [5, 12]).await;
    assert!(lane.padding_ended().is_some());
    assert!(lane.forms_batches() && lane.batches_ended().is_none());
    for _ in 0..2 {
        together(&lane, &pool, [7, 7]).await;
    }
    // The first batch of each kind is checked, and the first one after the end of padding.
    let mut expected: Vec<[usize; 2]> = vec![[2, 7], [1, 7], [2, 16], [1, 5], [1, 5], [1, 12]];
    expected.extend([[2, 7], [1, 7], [2, 7]]);
    assert_eq!(*shapes.lock().unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_of_another_length_ends_padding_and_hurts_nobody() {
    let (lane, shapes, pool) = lane(1);
    let answers = together(&lane, &pool, [5, 12]).await;
    assert!(answers.iter().all(|answer| (answer.batch_rows, answer.batch_tenants) == (1, 1)));
    assert_eq!(*shapes.lock().unwrap(), [[2, 16], [1, 5], [1, 12]]);
    let why = lane.padding_ended().unwrap();
    assert!(why.contains("dimension 1 of an output is 15"), "{why}");
    assert!(lane.batches_ended().is_none());
    assert_eq!(lane.statistics().elements, Elements { real: 17, padding: 0 });
}

/// Adds its rows up, each place times its number. Notes the shapes that it ran.
struct Sums {
    pool: BufferPool,
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl Model for Sums {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let [ids, mask] = [0, 1].map(|at| inputs[at].as_f32().unwrap());
        let shape = inputs[0].shape().to_vec();
        self.shapes.lock().unwrap().push(shape.clone());
        let rows = ids.chunks(shape[1]).zip(mask.chunks(shape[1]));
        let of_row = |(ids, mask): (&[f32], &[f32])| -> f32 {
            (1..).zip(ids.iter().zip(mask)).map(|(at, (id, mark))| at as f32 * (id + mark)).sum()
        };
        let sums: Vec<f32> = rows.map(of_row).collect();
        Ok(vec![floats(&self.pool, [shape[0], 1], &sums)])
    }
}

/// A lane of such a model, whose inputs `ids` and `mask` are filled up to 4, 8 and 16 with 0.
fn sums(config: LaneConfig) -> PaddedLane {
    let (pool, shapes) = (BufferPool::new(1 << 20), Arc::default());
    let model = Sums { pool: pool.clone(), shapes: Arc::clone(&shapes) };
    let element = PadValue::Whole(0).element(Dtype::Float32).unwrap();
    let inputs = [0, 1].map(|input| PaddedInput { input, axis: 1, element: element.clone() });
    let length = PaddedLength { buckets: vec![4, 8, 16], inputs: inputs.to_vec() };
    let padding = Padding { lengths: vec![length], outputs: Vec::new() };
    let parts = LaneParts {
        name: "sums",
        info: ModelInfo {
            inputs: vec![described("ids", None), described("mask", None)],
            outputs: vec![described("sum", Some(1))],
            ..info()
        },
        instances: vec![Box::new(model)],
        config: LaneConfig { padding, ..config },
        pool: pool.clone(),
    };
    (Lane::new(parts).unwrap(), shapes, pool)
}

/// A request of rows that have so many places and are marked up to these lengths. Returns the sums
/// that it should get, too.
fn texts(pool: &BufferPool, places: usize, lengths: &[usize]) -> (Submission, Vec<f32>) {
    let shape = [lengths.len(), places];
    let place = |row: usize, at: usize| if at < lengths[row] { (row + at + 1) as f32 } else { 0.0 };
    let mark = |row: usize, at: usize| f32::from(u8::from(at < lengths[row]));
    let each = |value: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        let rows = (0..lengths.len()).flat_map(|row| (0..places).map(move |at| (row, at)));
        rows.map(|(row, at)| value(row, at)).collect()
    };
    let tensor = |name: &str, values: &[f32]| NamedTensor {
        name: name.into(),
        tensor: floats(pool, shape, values),
    };
    let inputs = vec![tensor("ids", &each(&place)), tensor("mask", &each(&mark))];
    let sum = |row: usize| {
        (0..lengths[row]).map(|at| (at + 1) as f32 * (place(row, at) + mark(row, at))).sum()
    };
    let sums = (0..lengths.len()).map(sum).collect();
    (Submission { inputs, ..submission(pool, "a", &[], Duration::from_secs(60)) }, sums)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_their_client_filled_up_run_at_their_own_lengths() {
    for (lengths, expected) in [
        // Rows of one bucket run together at the length of the longest of them.
        (&[3, 16, 2, 9][..], &[[2, 3], [2, 16]][..]),
        (&[16, 4, 5, 1, 6], &[[1, 16], [2, 4], [2, 6]]),
        (&[5], &[[1, 5]]),
        // A batch holds eight rows.
        (&[2; 10], &[[2, 2], [8, 2]]),
        // Too little would be left out, and an empty row is no beginning of a row.
        (&[16, 15, 16, 5], &[[4, 16]]),
        (&[3, 0, 16], &[[3, 16]]),
    ] {
        let (lane, shapes, pool) = sums(LaneConfig::new(8, 64));
        let (request, sums) = texts(&pool, 16, lengths);
        let answer = lane.submit(request, None).await.unwrap();
        assert_eq!(answer.outputs[0].as_f32().unwrap(), sums, "{lengths:?}");
        assert_eq!(answer.used.rows as usize, lengths.len());
        let mut shapes = shapes.lock().unwrap().clone();
        shapes.sort_unstable();
        assert_eq!(shapes, expected, "{lengths:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_declared_model_stay_together() {
    let config = LaneConfig { rows_are_declared: true, ..LaneConfig::new(8, 64) };
    let (lane, shapes, pool) = sums(config);
    let (request, sums) = texts(&pool, 16, &[3, 16, 2]);
    let answer = lane.submit(request, None).await.unwrap();
    assert_eq!(answer.outputs[0].as_f32().unwrap(), sums);
    assert_eq!(*shapes.lock().unwrap(), [[3, 16]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_as_long_as_their_rows_keep_what_the_model_makes_of_padding() {
    let (lane, shapes, pool) = lane(0);
    let mut places = vec![1.0_f32; 32];
    places[3..16].fill(0.0);
    let inputs = vec![NamedTensor { name: "x".into(), tensor: floats(&pool, [2, 16], &places) }];
    let request = Submission { inputs, ..submission(&pool, "a", &[], Duration::from_secs(60)) };
    let answer = lane.submit(request, None).await.unwrap();
    assert_eq!(answer.outputs[0].shape(), [2, 16]);
    assert_eq!(*shapes.lock().unwrap(), [[2, 16]]);
}
