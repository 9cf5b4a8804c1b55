//! The requests that a full queue refuses, by which limit, and those that it still takes.

use std::time::Duration;

use super::{Bench, Submission, SubmitError, bench_with};
use crate::{Full, LaneConfig, QueueLimits, QueuePolicy};

const PATIENCE: Duration = Duration::from_secs(60);

impl Bench {
    /// The limit that keeps so many rows of the tenant out of the queue.
    async fn full(&self, tenant: &str, rows: usize) -> Full {
        let submission = self.submission(tenant, &vec![1.0; rows], PATIENCE);
        match self.lane.submit(submission, None).await {
            Err(SubmitError::QueueFull(full)) => full,
            other => panic!("{rows} rows of {tenant}: {other:?}"),
        }
    }
}

/// A row has four bytes. Both limits allow four rows in all and three rows of one tenant.
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
        let (tenant_max, all) = (3 * size, 4 * size);
        assert_eq!(
            bench.full("a", 1).await,
            Full::Tenant { queued: tenant_max, max: tenant_max, unit }
        );
        // The tenant has nothing queued, but the whole queue has too little room.
        assert_eq!(bench.full("b", 2).await, Full::Lane { queued: tenant_max, max: all, unit });
        let b = bench.queue("b", &[2.0]).await;
        assert_eq!(bench.full("c", 1).await, Full::Lane { queued: all, max: all, unit });
        assert_eq!(bench.lane.statistics().refused, 3);
        bench.finish(2);
        first.await.unwrap().unwrap();
        assert_eq!(a.await.unwrap().unwrap(), [2.0; 3]);
        assert_eq!(b.await.unwrap().unwrap(), [4.0]);
        // A batch was taken out of the queue, so there is room.
        bench.finish(1);
        bench.lane.submit(bench.submission("a", &[1.0; 3], PATIENCE), None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_level_refuses_and_the_other_levels_do_not() {
    let small = QueuePolicy { max_requests: Some(2), ..QueuePolicy::default() };
    let levels = vec![QueuePolicy::default(), small];
    let bench = bench_with(LaneConfig { levels, default_level: 1, ..LaneConfig::new(8, 64) });
    let first = bench.occupy().await;
    // This limit counts requests of all tenants; their rows do not matter.
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
    assert_eq!(outputs[0].as_f32().unwrap(), [6.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_settings_hold_once_they_are_in_force_and_lose_no_request() {
    let bench = bench_with(LaneConfig::new(2, 4));
    let first = bench.occupy().await;
    let queued = bench.queue("a", &[1.0]).await;
    let limits = QueueLimits { rows: 1, bytes: usize::MAX };
    let narrow = LaneConfig { queue: limits, max_batch_size: 9, ..LaneConfig::new(2, 4) };
    let narrow = bench.lane.with_config(narrow);
    assert_eq!(narrow.config().max_batch_size, 2, "queued requests are cut to this size");
    let also = bench.queue("a", &[2.0]).await;
    narrow.put_in_force();
    let full = Full::Lane { queued: 2, max: 1, unit: "rows" };
    assert_eq!(bench.full("b", 1).await, full, "also by way of the lane as it was");
    let Bench { lane, started: _started, leave, pool } = bench;
    drop(lane);
    for _ in 0..3 {
        leave.send(()).unwrap();
    }
    first.await.unwrap().unwrap();
    assert_eq!(queued.await.unwrap().unwrap(), [2.0]);
    assert_eq!(also.await.unwrap().unwrap(), [4.0]);
    let submission = super::submission(&pool, "b", &[3.0], PATIENCE);
    narrow.submit(submission, None).await.unwrap();
    let statistics = narrow.statistics();
    assert_eq!((statistics.total.success, statistics.refused), (4, 1), "the counters go on");
}

/// The queue delay is a minute, so only the new settings make the request due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_for_others_is_due_at_once_without_a_queue_delay() {
    let patient = LaneConfig { max_queue_delay: PATIENCE, ..LaneConfig::new(8, 64) };
    let bench = bench_with(patient);
    bench.finish(1);
    let waits = bench.queue("a", &[1.0]).await;
    bench.lane.with_config(LaneConfig::new(8, 64)).put_in_force();
    assert_eq!(waits.await.unwrap().unwrap(), [2.0]);
}
