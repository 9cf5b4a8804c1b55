//! Requests that share batches, and those that do not.

use super::*;

/// Takes the mean of all rows off each.
fn less_mean(values: &[f32]) -> Vec<f32> {
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    values.iter().map(|value| value - mean).collect()
}

/// Leaves out nines.
fn without_nines(values: &[f32]) -> Vec<f32> {
    values.iter().copied().filter(|value| *value != 9.0).collect()
}

fn declared() -> LaneConfig {
    LaneConfig { rows_are_declared: true, ..LaneConfig::new(8, 64) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_declaration_is_found_and_no_answer_is_wrong() {
    let bench = bench_of(declared(), less_mean);
    let first = bench.occupy().await;
    let pair = [bench.queue("a", &[1.0]).await, bench.queue("b", &[5.0]).await];
    // The first one; both together, one of them again, and each alone.
    bench.finish(5);
    first.await.unwrap().unwrap();
    for task in pair {
        assert_eq!(task.await.unwrap().unwrap(), [0.0]);
    }
    let why = bench.lane.batches_ended().unwrap();
    assert!(
        why.contains("among 2 requests and 0 rows of padding, one got another answer than alone"),
        "{why}"
    );
    assert!(!bench.lane.forms_batches());
    let statistics = bench.lane.statistics();
    assert_eq!((statistics.total.success, statistics.bisections), (3, 0));

    // Requests that come later run alone, whatever their rows.
    bench.started.try_iter().for_each(drop);
    let first = bench.occupy().await;
    let later = [("a", &[1.0][..]), ("b", &[5.0, 7.0])].map(|(tenant, values)| {
        let submission = bench.submission(tenant, values, Duration::from_secs(60));
        let lane = bench.lane.clone();
        tokio::spawn(async move { lane.submit(submission, None).await })
    });
    until("both are queued", || bench.lane.statistics().queued_rows == 2).await;
    bench.finish(3);
    first.await.unwrap().unwrap();
    for (task, expected) in later.into_iter().zip([&[0.0][..], &[-1.0, 1.0]]) {
        let outputs = task.await.unwrap().unwrap().outputs;
        assert_eq!(outputs[0].as_f32().unwrap(), expected);
    }
    let mut runs: Vec<_> = bench.started.try_iter().collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_number_of_rows_ends_batches_also_of_a_proven_model() {
    let bench = bench_of(LaneConfig::new(8, 64), without_nines);
    let first = bench.occupy().await;
    let pair = [bench.queue("a", &[9.0, 3.0]).await, bench.queue("b", &[5.0]).await];
    // The first one; both together, and each alone.
    bench.finish(4);
    first.await.unwrap().unwrap();
    for (task, expected) in pair.into_iter().zip([3.0, 5.0]) {
        assert_eq!(task.await.unwrap().unwrap(), [expected]);
    }
    let why = bench.lane.batches_ended().unwrap();
    assert!(why.contains("3 rows went in, 2 came out"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_declaration_is_found_by_padding_alone() {
    let config = LaneConfig { allowed_batch_sizes: vec![4, 8], ..declared() };
    let bench = bench_of(config, less_mean);
    bench.finish(3);
    let submission = bench.submission("a", &[1.0, 3.0], Duration::from_secs(60));
    let answered = bench.lane.submit(submission, None).await.unwrap();
    assert_eq!(answered.outputs[0].as_f32().unwrap(), [-1.0, 1.0]);
    assert_eq!((answered.batch_rows, answered.batch_tenants), (2, 1));
    let why = bench.lane.batches_ended().unwrap();
    assert!(
        why.contains("among 1 requests and 2 rows of padding, one got another answer than alone"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_number_of_rows_of_a_lone_request_ends_batches() {
    let bench = bench_of(declared(), without_nines);
    bench.finish(1);
    let submission = bench.submission("a", &[9.0, 3.0], Duration::from_secs(60));
    let answered = bench.lane.submit(submission, None).await.unwrap();
    assert_eq!(answered.outputs[0].as_f32().unwrap(), [3.0]);
    let why = bench.lane.batches_ended().unwrap();
    assert!(why.contains("2 rows went in, 1 came out"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_never_cut_on_a_declaration() {
    let bench = bench_of(declared(), less_mean);
    let values: Vec<f32> = (0..20_u8).map(f32::from).collect();
    bench.finish(1);
    let submission = bench.submission("a", &values, Duration::from_secs(60));
    let answered = bench.lane.submit(submission, None).await.unwrap();
    assert_eq!(answered.outputs[0].as_f32().unwrap(), less_mean(&values));
    assert_eq!(bench.started.try_iter().collect::<Vec<_>>(), [20]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_keeps_apart_shares_batches_with_itself_alone() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let mut tasks = Vec::new();
    for (tenant, keeps_apart) in [("a", true), ("b", false), ("a", true), ("c", false), ("d", true)]
    {
        let submission = bench.submission(tenant, &[1.0], Duration::from_secs(60));
        let lane = bench.lane.clone();
        let submission = Submission { keeps_apart, ..submission };
        tasks.push(tokio::spawn(async move { lane.submit(submission, None).await }));
    }
    until("all are queued", || bench.lane.statistics().queued_rows == 5).await;
    bench.finish(4);
    first.await.unwrap().unwrap();
    let mut shared = Vec::new();
    for task in tasks {
        let answered = task.await.unwrap().unwrap();
        shared.push((answered.batch_rows, answered.batch_tenants));
    }
    assert_eq!(shared, [(2, 1), (2, 2), (2, 1), (2, 2), (1, 1)]);
}
