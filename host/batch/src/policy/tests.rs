//! Properties over random arrivals in simulated time.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Entry, Policy};

#[derive(Clone, Debug)]
enum Step {
    Push { rows: usize, shape_key: u64, patience_ms: u64, gone: bool },
    Take,
    Wait { ms: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (1..=8_usize, 0..3_u64, 1..50_u64, prop::bool::weighted(0.1)).prop_map(
        |(rows, shape_key, patience_ms, gone)| Step::Push { rows, shape_key, patience_ms, gone },
    );
    let step = prop_oneof![4 => push, 2 => Just(Step::Take), 1 => (1..20_u64).prop_map(|ms| Step::Wait { ms })];
    prop::collection::vec(step, 0..200)
}

#[derive(Debug)]
struct Item {
    id: usize,
    gone: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Every request comes out exactly once, in time and in order within its shape, in batches of one
    /// shape that never go over the maximum.
    #[test]
    fn nothing_is_lost_and_batches_keep_the_rules(steps in steps()) {
        const BATCH_ROWS: usize = 8;
        const QUEUE_ROWS: usize = 64;
        let mut policy = Policy::new(BATCH_ROWS, QUEUE_ROWS);
        let mut now = Instant::now();
        let mut accepted = Vec::new();
        let mut seen = std::collections::BTreeMap::new();
        let mut last_of_shape = [None::<usize>; 3];
        let mut next_id = 0;
        let mut queued = 0;
        // Enough takes at the end to empty any queue.
        let drain = std::iter::repeat_n(Step::Take, QUEUE_ROWS);
        for step in steps.into_iter().chain(drain) {
            match step {
                Step::Wait { ms } => now += Duration::from_millis(ms),
                Step::Push { rows, shape_key, patience_ms, gone } => {
                    let deadline = now + Duration::from_millis(patience_ms);
                    let item = Item { id: next_id, gone };
                    let pushed = policy.push(Entry { rows, shape_key, deadline, item });
                    prop_assert_eq!(pushed.is_ok(), queued + rows <= QUEUE_ROWS);
                    if pushed.is_ok() {
                        accepted.push((next_id, gone));
                        queued += rows;
                    }
                    next_id += 1;
                }
                Step::Take => {
                    let taken = policy.take(now, |item| item.gone);
                    let rows: usize = taken.batch.iter().map(|entry| entry.rows).sum();
                    prop_assert!(rows <= BATCH_ROWS);
                    for entry in &taken.batch {
                        prop_assert_eq!(entry.shape_key, taken.batch[0].shape_key);
                        prop_assert!(entry.deadline > now && !entry.item.gone);
                        let last = &mut last_of_shape[entry.shape_key as usize];
                        prop_assert!(last.is_none_or(|last| last < entry.item.id), "overtaken");
                        *last = Some(entry.item.id);
                    }
                    for entry in taken.batch.iter().chain(&taken.expired) {
                        prop_assert_eq!(seen.insert(entry.item.id, ()), None, "answered twice");
                    }
                    for entry in &taken.expired {
                        prop_assert!(entry.deadline <= now);
                    }
                    queued = policy.queued_rows();
                }
            }
        }
        prop_assert_eq!(policy.queued_rows(), 0);
        for (id, gone) in accepted {
            prop_assert_eq!(seen.contains_key(&id), !gone, "request {}", id);
        }
    }

    /// Work-conserving: a take from a queue that holds anything alive gives a batch, and one that is
    /// as full as the oldest shape allows in order.
    #[test]
    fn the_oldest_alive_request_always_travels(rows in prop::collection::vec((1..=8_usize, 0..3_u64), 1..30)) {
        let mut policy = Policy::new(8, usize::MAX);
        let now = Instant::now();
        for (id, (rows, shape_key)) in rows.iter().enumerate() {
            let deadline = now + Duration::from_secs(1);
            policy.push(Entry { rows: *rows, shape_key: *shape_key, deadline, item: id }).unwrap();
        }
        let mut left: Vec<usize> = (0..rows.len()).collect();
        while !left.is_empty() {
            let batch = policy.take(now, |_| false).batch;
            prop_assert_eq!(batch[0].item, left[0]);
            left.retain(|id| batch.iter().all(|entry| entry.item != *id));
        }
        prop_assert!(policy.take(now, |_| false).batch.is_empty());
    }
}
