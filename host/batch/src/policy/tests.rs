//! Properties of the policy over random arrivals in simulated time. Each is checked with at least
//! 10^5 arrivals.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use gristmill_core::Name;
use proptest::prelude::*;

use super::{Due, Entry, Policy, Size, Taken};
use crate::config::{LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};
use crate::service_time::ServiceTime;

const LEVELS: usize = 3;
const TENANTS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
struct Arrival {
    tenant: usize,
    level: usize,
    rows: usize,
    shape_key: u64,
    patience_ms: u64,
    timeout_ms: Option<u64>,
    gone: bool,
}

#[derive(Clone, Debug)]
enum PolicyStep {
    Push(Arrival),
    Take,
    Wait { ms: u64 },
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let gone = prop::bool::weighted(0.1);
    let timeout = prop::option::weighted(0.3, 1..20_u64);
    (0..TENANTS.len(), 0..LEVELS, 1..=8_usize, 0..3_u64, 1..80_u64, timeout, gone).prop_map(
        |(tenant, level, rows, shape_key, patience_ms, timeout_ms, gone)| Arrival {
            tenant,
            level,
            rows,
            shape_key,
            patience_ms,
            timeout_ms,
            gone,
        },
    )
}

/// About 250 arrivals for each case.
fn steps() -> impl Strategy<Value = Vec<PolicyStep>> {
    let step = prop_oneof![
        5 => arrival().prop_map(PolicyStep::Push),
        2 => Just(PolicyStep::Take),
        1 => (1..10_u64).prop_map(|ms| PolicyStep::Wait { ms }),
    ];
    prop::collection::vec(step, 300..500)
}

#[derive(Debug)]
struct Item {
    id: usize,
    gone: bool,
}

/// The level that delays requests after their timeout. The other levels reject them.
const DELAYING: usize = 1;

fn config() -> LaneConfig {
    let level = |index| QueuePolicy {
        timeout_action: if index == DELAYING {
            TimeoutAction::Delay
        } else {
            TimeoutAction::Reject
        },
        max_requests: Some(40),
        ..QueuePolicy::default()
    };
    LaneConfig {
        levels: (0..LEVELS).map(level).collect(),
        ageing: Duration::from_millis(30),
        tenant_queue: QueueLimits { rows: 150, bytes: 1000 },
        ..LaneConfig::new(16, 300)
    }
}

fn tenant(index: usize) -> Name {
    TENANTS[index].parse().unwrap()
}

fn entry(id: usize, now: Instant, arrival: &Arrival) -> Entry<Item> {
    Entry {
        tenant: tenant(arrival.tenant),
        weight: 1,
        level: arrival.level,
        rows: arrival.rows,
        bytes: arrival.rows,
        shape_key: arrival.shape_key,
        arrived: now,
        deadline: now + Duration::from_millis(arrival.patience_ms),
        timeout: arrival.timeout_ms.map(|ms| now + Duration::from_millis(ms)),
        item: Item { id, gone: arrival.gone },
    }
}

fn take(policy: &mut Policy<Item>, now: Instant) -> Taken<Item> {
    let mut taken = Taken::default();
    policy.take(now, (&ServiceTime::default(), 1), |item| item.gone, &mut taken);
    taken
}

fn rows(entries: &[Entry<Item>]) -> usize {
    entries.iter().map(|entry| entry.rows).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// The rules for requests and batches:
    /// - a queued request comes out exactly once: in a batch before its deadline, or as expired;
    ///   it may be dropped if its client is gone;
    /// - a batch has one shape and at most `max_batch_size` rows;
    /// - requests of one tenant, level and shape keep their order, except those that were delayed
    ///   after their timeout;
    /// - the queue's limits hold.
    #[test]
    fn nothing_is_lost_and_batches_keep_the_rules(steps in steps()) {
        let config = config();
        let mut policy = Policy::new(config.clone());
        let start = Instant::now();
        let mut now = start;
        let mut accepted = BTreeMap::new();
        let mut seen = BTreeMap::new();
        let mut last = BTreeMap::new();
        let drain = std::iter::repeat_n(PolicyStep::Take, config.queue.rows);
        for (id, step) in steps.into_iter().chain(drain).enumerate() {
            match step {
                PolicyStep::Wait { ms } => now += Duration::from_millis(ms),
                PolicyStep::Push(arrival) => {
                    let Arrival { rows, shape_key, .. } = arrival;
                    let size = Size { rows, bytes: rows, shape_key };
                    let name = tenant(arrival.tenant);
                    let room = policy.has_room(&name, arrival.level, &size);
                    let fits = policy.queued_rows() + arrival.rows <= config.queue.rows;
                    prop_assert!(fits || room.is_err());
                    if room.is_ok() {
                        policy.push(entry(id, now, &arrival));
                        accepted.insert(id, arrival.gone);
                    }
                }
                PolicyStep::Take => {
                    let taken = take(&mut policy, now);
                    prop_assert!(rows(&taken.batch) <= config.max_batch_size);
                    prop_assert!(!taken.batch.is_empty() || policy.queued_rows() == 0,
                        "an idle instance and no batch");
                    for entry in &taken.batch {
                        prop_assert_eq!(entry.shape_key, taken.batch[0].shape_key);
                        prop_assert!(entry.deadline > now && !entry.item.gone);
                        let overstayed = entry.level == DELAYING && entry.timeout.is_none();
                        prop_assert!(overstayed || entry.timeout.is_none_or(|timeout| timeout > now));
                        let stream = (entry.tenant.clone(), entry.level, entry.shape_key);
                        if entry.level != DELAYING {
                            let last = last.insert(stream, entry.item.id);
                            prop_assert!(last.is_none_or(|last| last < entry.item.id), "overtaken");
                        }
                    }
                    for entry in &taken.expired {
                        let timeout = entry.timeout.is_some_and(|timeout| timeout <= now);
                        prop_assert!(entry.deadline <= now || timeout && entry.level != DELAYING);
                    }
                    for entry in taken.batch.into_iter().chain(taken.expired) {
                        prop_assert_eq!(seen.insert(entry.item.id, ()), None, "answered twice");
                    }
                }
            }
        }
        prop_assert_eq!(policy.queued_rows(), 0);
        for (id, gone) in accepted {
            prop_assert!(gone || seen.contains_key(&id), "request {} lost", id);
        }
    }

    /// A sweep removes the requests that are gone or expired, and no others. The others come out in
    /// batches later.
    #[test]
    fn a_sweep_takes_out_the_dead_only(
        arrivals in prop::collection::vec(arrival(), 200..260), ms in 1..80_u64,
    ) {
        let mut policy = Policy::new(LaneConfig {
            levels: config().levels.into_iter().map(|level| QueuePolicy {
                max_requests: None, ..level
            }).collect(),
            ..LaneConfig::new(8, 10_000)
        });
        let start = Instant::now();
        let later = start + Duration::from_millis(ms);
        for (id, arrival) in arrivals.iter().enumerate() {
            policy.push(entry(id, start, arrival));
        }
        let mut dead = Vec::new();
        let mut alive = 0;
        for (id, arrival) in arrivals.iter().enumerate() {
            let rejected = arrival.level != DELAYING && arrival.timeout_ms.is_some_and(|at| at <= ms);
            match arrival {
                Arrival { gone: true, .. } => {}
                _ if rejected || arrival.patience_ms <= ms => dead.push(id),
                _ => alive += arrival.rows,
            }
        }
        let mut swept: Vec<_> =
            policy.sweep(later, |item| item.gone).into_iter().map(|entry| entry.item.id).collect();
        swept.sort_unstable();
        prop_assert_eq!(swept, dead);
        prop_assert_eq!(policy.queued_rows(), alive);
        let mut served = 0;
        while policy.queued_rows() > 0 {
            served += rows(&take(&mut policy, later).batch);
        }
        prop_assert_eq!(served, alive);
    }

    /// Tenants that always have requests queued get rows in proportion to their weights. The sizes
    /// of their requests do not matter.
    #[test]
    fn backlogged_tenants_share_by_weight(
        weights in prop::array::uniform3(1..=4_u32),
        sizes in prop::collection::vec(1..=16_usize, 64),
    ) {
        const BATCHES: usize = 400;
        let mut policy = Policy::new(LaneConfig::new(16, 100_000));
        let now = Instant::now();
        let mut next = 0;
        let mut served = BTreeMap::<Name, usize>::new();
        for _ in 0..BATCHES {
            for (index, weight) in weights.iter().enumerate() {
                while policy.usage.index(&tenant(index)).is_none_or(|at| policy.tiers[0].rows_of(at) < 128) {
                    let size = sizes[(next * 7 + index) % sizes.len()];
                    let arrival = Arrival {
                        tenant: index, level: 0, rows: size, shape_key: 0,
                        patience_ms: 1000, timeout_ms: None, gone: false,
                    };
                    policy.push(Entry { weight: *weight, ..entry(next, now, &arrival) });
                    next += 1;
                }
            }
            for entry in take(&mut policy, now).batch {
                *served.entry(entry.tenant).or_default() += entry.rows;
            }
        }
        let all: usize = served.values().sum();
        let weight_all: u32 = weights.iter().sum();
        for (index, weight) in weights.iter().enumerate() {
            let share = served[&tenant(index)] as f64 / all as f64;
            let fair = f64::from(*weight) / f64::from(weight_all);
            prop_assert!((share - fair).abs() < 0.05, "{} got {share}, {fair} is fair", TENANTS[index]);
        }
    }

    /// The first request of a tenant with nothing queued is in one of the next two batches. It does
    /// not matter how much others have queued, or which shape it has. It may miss the next batch
    /// only if another tenant was served as little.
    #[test]
    fn a_flood_delays_nobody(
        flood in prop::collection::vec((0..2_usize, 1..=16_usize, 0..2_u64), 200..250),
        shape_key in 0..3_u64, rows in 1..=16_usize, before in 1..10_usize,
    ) {
        let mut policy = Policy::new(LaneConfig::new(16, 100_000));
        let now = Instant::now();
        let push = |policy: &mut Policy<Item>, id, tenant, rows, shape_key| {
            let arrival = Arrival {
                tenant, level: 0, rows, shape_key, patience_ms: 1000, timeout_ms: None, gone: false,
            };
            policy.push(entry(id, now, &arrival));
        };
        for (id, (tenant, rows, shape_key)) in flood.iter().enumerate() {
            push(&mut policy, id, *tenant, *rows, *shape_key);
        }
        for _ in 0..before {
            take(&mut policy, now);
        }
        push(&mut policy, usize::MAX, 2, rows, shape_key);
        let served = |policy: &mut Policy<Item>| {
            take(policy, now).batch.iter().any(|entry| entry.item.id == usize::MAX)
        };
        prop_assert!(served(&mut policy) || served(&mut policy));
    }

    /// A higher level is served first. Because of ageing, each level is served in the end, even if
    /// the highest level always has requests.
    #[test]
    fn levels_are_strict_but_none_starves(arrivals in prop::collection::vec(1..LEVELS, 20..40)) {
        let mut policy = Policy::new(LaneConfig {
            levels: vec![QueuePolicy::default(); LEVELS],
            ageing: Duration::from_millis(30),
            ..LaneConfig::new(4, 100_000)
        });
        let mut now = Instant::now();
        let make = |level| Arrival {
            tenant: 0, level, rows: 2, shape_key: 0, patience_ms: 100_000, timeout_ms: None, gone: false,
        };
        for (id, level) in arrivals.iter().enumerate() {
            policy.push(entry(id, now, &make(*level)));
        }
        let began = now;
        let mut waiting = arrivals.len();
        let mut next = arrivals.len();
        while waiting > 0 {
            for _ in 0..3 {
                policy.push(entry(next, now, &make(0)));
                next += 1;
            }
            for entry in take(&mut policy, now).batch {
                if entry.level > 0 {
                    waiting -= 1;
                    let waited = now - began;
                    prop_assert!(waited >= Duration::from_millis(30) * entry.level as u32, "too early");
                }
            }
            now += Duration::from_millis(1);
            prop_assert!(now - began < Duration::from_secs(10), "starved");
        }
    }

    /// With a queue delay, a batch is due exactly when the queue fills a preferred size, or when
    /// its oldest request has waited for the delay. Each shape is judged by itself. The batch has
    /// the largest preferred size that the queue fills. A request whose client is gone counts as
    /// queued until the policy looks at it. It is never in a batch, and no other request waits
    /// longer because of it.
    #[test]
    fn delays_are_exact_and_preferred_sizes_win(
        gaps in prop::collection::vec((0..400_u64, 0..2_u64, prop::bool::weighted(0.2)), 200..260),
    ) {
        const DELAY_US: u64 = 1000;
        const PREFERRED: [usize; 2] = [4, 8];
        let max = 16;
        let mut policy = Policy::new(LaneConfig {
            preferred_batch_sizes: PREFERRED.to_vec(),
            max_queue_delay: Duration::from_micros(DELAY_US),
            ..LaneConfig::new(max, 100_000)
        });
        let start = Instant::now();
        let at = |us: u64| start + Duration::from_micros(us);
        // Of each request: its arrival in microseconds, and whether its client is gone.
        let mut queued: [VecDeque<(u64, bool)>; 2] = Default::default();
        let drop_gone = |queue: &mut VecDeque<(u64, bool)>| {
            while queue.pop_front_if(|(_, gone)| *gone).is_some() {}
        };
        let mut now_us = 0;
        for (id, (gap_us, shape, gone)) in gaps.iter().enumerate() {
            let until = now_us + gap_us;
            // Take all batches that are due before the next arrival.
            loop {
                let due_us = queued.iter().filter_map(|queue| {
                    let (oldest, _) = queue.front()?;
                    Some(if queue.len() >= PREFERRED[0] { *oldest } else { oldest + DELAY_US })
                }).min();
                let due = policy.due(at(now_us));
                match due_us {
                    None => prop_assert_eq!(due, Due::Never),
                    Some(due_us) if due_us > now_us => prop_assert_eq!(due, Due::At(at(due_us))),
                    Some(_) => prop_assert_eq!(due, Due::Now),
                }
                match due_us {
                    Some(due_us) if due_us <= until => {
                        now_us = now_us.max(due_us);
                        let batch = take(&mut policy, at(now_us)).batch;
                        let rooms = queued.each_ref().map(|queue| {
                            let fits = PREFERRED.iter().rev().find(|size| **size <= queue.len());
                            *fits.unwrap_or(&max)
                        });
                        // To begin a batch, the policy looks at the first request of each shape.
                        queued.iter_mut().for_each(drop_gone);
                        if let Some(first) = batch.first() {
                            let shape = first.shape_key as usize;
                            let (room, queue) = (rooms[shape], &mut queued[shape]);
                            let alive = queue.iter().filter(|(_, gone)| !gone).count();
                            prop_assert_eq!(batch.len(), room.min(alive));
                            for entry in &batch {
                                prop_assert!(!entry.item.gone);
                                let waited = at(now_us) - entry.arrived;
                                prop_assert!(waited <= Duration::from_micros(DELAY_US));
                                drop_gone(queue);
                                let (arrived_us, _) = queue.pop_front().unwrap();
                                prop_assert_eq!(entry.arrived, at(arrived_us));
                            }
                            if batch.len() < room {
                                drop_gone(queue);
                            }
                        }
                        let left: usize = queued.iter().map(VecDeque::len).sum();
                        prop_assert_eq!(policy.queued_rows(), left);
                    }
                    _ => break,
                }
            }
            now_us = until;
            let arrival = Arrival {
                tenant: 0, level: 0, rows: 1, shape_key: *shape,
                patience_ms: 100_000, timeout_ms: None, gone: *gone,
            };
            policy.push(entry(id, at(now_us), &arrival));
            queued[*shape as usize].push_back((now_us, *gone));
        }
    }
}

/// The estimate of the rows ahead of a request counts all rows of its own tenant in its level and
/// above. It never counts more rows of others than are queued.
#[test]
fn rows_ahead_are_the_tenants_share() {
    let levels = vec![QueuePolicy::default(); 2];
    let mut policy = Policy::new(LaneConfig { levels, ..LaneConfig::new(16, 100_000) });
    let now = Instant::now();
    let push = |policy: &mut Policy<Item>, id, tenant, level, rows| {
        let arrival = Arrival {
            tenant,
            level,
            rows,
            shape_key: 0,
            patience_ms: 1000,
            timeout_ms: None,
            gone: false,
        };
        policy.push(entry(id, now, &arrival));
    };
    for id in 0..100 {
        push(&mut policy, id, 0, 1, 8);
    }
    let ahead = |policy: &Policy<Item>, of, weight| policy.rows_ahead(&tenant(of), weight, 1);
    assert_eq!(ahead(&policy, 1, 1), 0, "nothing of its own waits");
    assert_eq!(ahead(&policy, 0, 1), 800);
    push(&mut policy, 100, 1, 1, 4);
    assert_eq!(ahead(&policy, 1, 1), 8, "its own and as much of the other's");
    assert_eq!(ahead(&policy, 1, 4), 5, "its weight counts");
    assert_eq!(ahead(&policy, 0, 1), 804, "of the other what there is");
    push(&mut policy, 101, 2, 0, 7);
    assert_eq!(ahead(&policy, 2, 1), 7, "all that waits above");
    assert_eq!(ahead(&policy, 1, 1), 15);
    assert_eq!(policy.rows_ahead(&tenant(1), 1, 0), 0);
}

/// A tenant that is not retained is forgotten when it has nothing queued. Another tenant then uses
/// its place in the tables.
#[test]
fn tenants_that_are_not_kept_are_forgotten_and_their_places_used_again() {
    let mut policy = Policy::new(LaneConfig::new(4, 100_000));
    let now = Instant::now();
    let push = |policy: &mut Policy<Item>, id: usize, name: &str, rows| {
        let arrival = Arrival {
            tenant: 0,
            level: 0,
            rows,
            shape_key: 0,
            patience_ms: 1000,
            timeout_ms: None,
            gone: false,
        };
        policy.push(Entry { tenant: name.parse().unwrap(), ..entry(id, now, &arrival) });
    };
    for round in 0..1000 {
        let deleted = format!("deleted-{round}");
        push(&mut policy, 2 * round, &deleted, 4);
        push(&mut policy, 2 * round + 1, "stays", 1);
        policy.retain_tenants(|name| name.as_str() == "stays");
        assert_eq!(
            policy.usage.tenant_count(),
            2,
            "a tenant with queued requests is not forgotten"
        );
        take(&mut policy, now);
        take(&mut policy, now);
        assert_eq!(policy.queued_rows(), 0);
        policy.retain_tenants(|name| name.as_str() == "stays");
        assert_eq!(policy.usage.tenant_count(), 1);
        assert!(policy.tiers[0].shares_known() <= 2);
    }
}

#[test]
fn queued_requests_stay_queued_when_the_settings_change() {
    let now = Instant::now();
    for levels in [1, 2, 5] {
        let mut policy = Policy::new(config());
        let push = |policy: &mut Policy<usize>, level: usize, item: usize| {
            policy.push(Entry {
                tenant: tenant(0),
                weight: 1,
                level,
                rows: 1,
                bytes: 1,
                shape_key: 0,
                arrived: now,
                deadline: now + Duration::from_secs(60),
                timeout: None,
                item,
            });
        };
        for item in 0..6 {
            push(&mut policy, item % LEVELS, item);
        }
        let fewer = LaneConfig { levels: vec![QueuePolicy::default(); levels], ..config() };
        assert!(policy.configure(&fewer, now));
        assert!(!policy.configure(&fewer, now), "nothing differs");
        // A submitter that still knows three levels.
        push(&mut policy, LEVELS - 1, 6);
        let size = Size { rows: 1, bytes: 1, shape_key: 0 };
        assert_eq!(policy.has_room(&tenant(0), LEVELS - 1, &size), Ok(()));
        assert_eq!(policy.rows_ahead(&tenant(0), 1, LEVELS - 1), 7);
        let mut taken = Taken::default();
        policy.take(now, (&ServiceTime::default(), 1), |_| false, &mut taken);
        let items: Vec<_> = taken.batch.iter().map(|entry| entry.item).collect();
        assert_eq!((items, policy.queued_rows()), (vec![0, 3, 1, 4, 2, 5, 6], 0));
    }
}

#[test]
fn changed_limits_apply_at_once() {
    let now = Instant::now();
    let mut policy = Policy::<usize>::new(LaneConfig::new(4, 100));
    let size = Size { rows: 3, bytes: 1, shape_key: 0 };
    assert_eq!(policy.has_room(&tenant(0), 0, &size), Ok(()));
    policy.configure(&LaneConfig::new(4, 2), now);
    assert!(policy.has_room(&tenant(0), 0, &size).is_err());
}

#[test]
fn requests_that_aged_into_a_higher_level_are_served_when_there_are_fewer_levels() {
    let now = Instant::now();
    let mut policy = Policy::new(config());
    for item in 0..6 {
        policy.push(Entry {
            tenant: tenant(0),
            weight: 1,
            level: LEVELS - 1,
            rows: 1,
            bytes: 1,
            shape_key: 0,
            arrived: now,
            deadline: now + Duration::from_secs(3600),
            timeout: None,
            item,
        });
    }
    // After each ageing time one row is taken, and the rest moves up one level.
    let one = LaneConfig { max_batch_size: 1, ..config() };
    policy.configure(&one, now);
    let mut taken = Taken::default();
    for step in 1..=2 {
        taken = Taken::default();
        let later = now + config().ageing * step * 2;
        policy.take(later, (&ServiceTime::default(), 1), |_| false, &mut taken);
        assert_eq!(taken.batch.len(), 1);
    }
    drop(taken);
    let fewer = LaneConfig { levels: vec![QueuePolicy::default()], ..config() };
    let later = now + config().ageing * 5;
    assert!(policy.configure(&fewer, later));
    let mut taken = Taken::default();
    policy.take(later, (&ServiceTime::default(), 1), |_| false, &mut taken);
    assert_eq!((taken.batch.len(), policy.queued_rows()), (4, 0));
}

/// The rows of the first batch of 8 requests, if a batch of n rows takes `fixed + per_row * n` µs.
fn first_batch_of_eight(idle: usize, fixed: u64, per_row: u64) -> usize {
    let now = Instant::now();
    let mut policy = Policy::new(LaneConfig::new(16, 100));
    for id in 0..8 {
        policy.push(Entry {
            tenant: tenant(0),
            weight: 1,
            level: 0,
            rows: 1,
            bytes: 1,
            shape_key: 0,
            arrived: now,
            deadline: now + Duration::from_secs(3600),
            timeout: None,
            item: id,
        });
    }
    let mut service = ServiceTime::default();
    for rows in [1, 8, 4] {
        service.observe(rows, Duration::from_micros(fixed + per_row * rows as u64));
    }
    let mut taken = Taken::default();
    policy.take(now, (&service, idle), |_| false, &mut taken);
    taken.batch.len()
}

#[test]
fn the_queue_is_shared_out_over_idle_instances_if_that_saves_time() {
    assert_eq!(first_batch_of_eight(1, 100, 1000), 8);
    assert_eq!(first_batch_of_eight(2, 100, 1000), 4);
    assert_eq!(first_batch_of_eight(3, 100, 1000), 3);
    // Two parts would take almost as long as the whole.
    assert_eq!(first_batch_of_eight(2, 5000, 1000), 8);
    // Waking another thread would take as long.
    assert_eq!(first_batch_of_eight(2, 1, 10), 8);
}
