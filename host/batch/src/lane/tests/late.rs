//! The charge of runs that end after their request.

use gristmill_core::{Late, LateSink, ModelUse, Named, Receipt, Record, Sink};

use super::*;

/// Counts what is charged late.
#[derive(Default)]
struct Uses(Mutex<Vec<ModelUse>>);

/// A sink of requests with such a counter.
#[derive(Default)]
struct Charged(Arc<Uses>);

impl Named for Charged {}

impl Sink for Charged {
    fn record(&self, _: &Record, _: Duration) {}

    fn add_late(&self, late: &mut Late, _: &str) {
        late.add(self.0.clone());
    }
}

impl LateSink for Uses {
    fn ran_late(&self, used: ModelUse) {
        self.0.lock().unwrap().push(used);
    }
}

impl Charged {
    fn rows(&self) -> Vec<usize> {
        self.0.0.lock().unwrap().iter().map(|used| used.rows).collect()
    }
}

/// Submit on a task. Returns it, and the sink of the request's receipt.
fn send(
    bench: &Bench,
    values: &[f32],
) -> (tokio::task::JoinHandle<Result<Answered, SubmitError>>, Arc<Charged>) {
    let (lane, charged) = (bench.lane.clone(), Arc::new(Charged::default()));
    let (submission, sink) = (bench.submission("a", values, BOUND), charged.clone());
    let task = tokio::spawn(async move {
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(sink);
        lane.submit(submission, Some(&receipt)).await
    });
    (task, charged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_client_left_is_charged_when_it_ends() {
    let bench = bench(8, 64);
    let (task, charged) = send(&bench, &[1.0; 3]);
    until("it runs", || bench.started.try_recv().is_ok()).await;
    let (queued, not_charged) = send(&bench, &[1.0; 2]);
    until("another one is queued", || bench.lane.statistics().queued_rows == 2).await;
    for task in [task, queued] {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    assert!(charged.rows().is_empty());
    bench.finish(1);
    until("it is charged", || charged.rows() == [3]).await;
    assert!(charged.0.0.lock().unwrap()[0].time > Duration::ZERO);
    // What no batch took used nothing.
    let (next, late_charge) = send(&bench, &[1.0]);
    bench.finish(1);
    let answer = within("an answer", next).await.unwrap().unwrap();
    assert_eq!((answer.used.rows, late_charge.rows()), (1, vec![]));
    assert_eq!((charged.rows(), not_charged.rows()), (vec![3], vec![]));
}

/// One part was served and another one runs when the client leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_an_abandoned_request_that_ran_is_charged() {
    let bench = bench(2, 64);
    let (task, charged) = send(&bench, &[1.0; 5]);
    bench.finish(1);
    let mut begun = 0;
    let both_began = || {
        begun += bench.started.try_iter().count();
        begun == 2
    };
    until("the second part runs", both_began).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    until("the served part is charged", || charged.rows() == [2]).await;
    bench.finish(1);
    until("the other one is charged", || charged.rows() == [2, 2]).await;
    until("the rest is forgotten", || bench.lane.statistics().queued_rows == 0).await;
}

/// The error says what all parts used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_a_request_is_charged_although_one_fails() {
    let bench = bench(2, 64);
    let (task, charged) = send(&bench, &[1.0, 1.0, 1.0, 1.0, -1.0]);
    bench.finish(3);
    let error = within("an answer", task).await.unwrap().unwrap_err();
    assert!(matches!(error, SubmitError::Failed { .. }), "{error}");
    assert_eq!((error.used().rows, charged.rows()), (5, vec![]));
}
