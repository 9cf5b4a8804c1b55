//! What a full queue refuses, by which limit, and what it takes all the same.

use std::time::Duration;

use super::{Bench, Submission, SubmitError, bench_with};
use crate::{Full, LaneConfig, QueueLimits, QueuePolicy};

const PATIENCE: Duration = Duration::from_secs(60);

impl Bench {
    /// The limit that keeps so many rows of the tenant out of the queue.
    async fn full(&self, tenant: &str, rows: usize) -> Full {
        let submission = self.submission(tenant, &vec![1.0; rows], PATIENCE);
        match self.lane.submit(submission).await {
            Err(SubmitError::QueueFull(full)) => full,
            other => panic!("{rows} rows of {tenant}: {other:?}"),
        }
    }
}

/// A row is four bytes: both limits are of four rows in all and of three of one tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_part_is_full_before_the_queue_is_in_rows_and_in_bytes() {
    let limits = |rows, bytes| QueueLimits { rows, bytes };
    let most = usize::MAX;
    for (queue, tenant_queue, unit, size) in [
        (limits(4, most), limits(3, most), "rows", 1),
        (limits(64, 16), limits(64, 12), "bytes", 4),
    ] {
        let config = LaneConfig { queue, tenant_queue, ..LaneConfig::new(8, 64) };
        let bench = bench_with(config);
        let first = bench.occupy().await;
        let a = bench.queue("a", &[1.0; 3]).await;
        let (own, all) = (3 * size, 4 * size);
        assert_eq!(bench.full("a", 1).await, Full::Tenant { queued: own, max: own, unit });
        // More than is left for all, of a tenant that has nothing queued.
        assert_eq!(bench.full("b", 2).await, Full::Lane { queued: own, max: all, unit });
        let b = bench.queue("b", &[2.0]).await;
        assert_eq!(bench.full("c", 1).await, Full::Lane { queued: all, max: all, unit });
        assert_eq!(bench.lane.statistics().refused, 3);
        bench.finish(2);
        first.await.unwrap().unwrap();
        assert_eq!(a.await.unwrap().unwrap(), [2.0; 3]);
        assert_eq!(b.await.unwrap().unwrap(), [4.0]);
        // What was taken out of the queue leaves room.
        bench.finish(1);
        bench.lane.submit(bench.submission("a", &[1.0; 3], PATIENCE)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_level_refuses_and_the_other_levels_do_not() {
    let small = QueuePolicy { max_requests: Some(2), ..QueuePolicy::default() };
    let levels = vec![QueuePolicy::default(), small];
    let bench = bench_with(LaneConfig { levels, default_level: 1, ..LaneConfig::new(8, 64) });
    let first = bench.occupy().await;
    // Requests count, whatever their rows and tenants.
    let a = bench.queue("a", &[1.0; 3]).await;
    let b = bench.queue("b", &[2.0]).await;
    assert_eq!(bench.full("a", 1).await, Full::Level { requests: 2, max: 2 });
    assert_eq!(bench.full("c", 1).await, Full::Level { requests: 2, max: 2 });
    let urgent = bench.submission("a", &[3.0], PATIENCE);
    let urgent = bench.enqueue(Submission { priority: Some(1), ..urgent }).await;
    bench.finish(2);
    first.await.unwrap().unwrap();
    assert_eq!(a.await.unwrap().unwrap(), [2.0; 3]);
    assert_eq!(b.await.unwrap().unwrap(), [4.0]);
    let outputs = urgent.await.unwrap().unwrap().outputs;
    assert_eq!(outputs[0].tensor.as_f32().unwrap(), [6.0]);
}
