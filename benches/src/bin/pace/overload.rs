//! More requests than a tenant's long calls can serve: how many are answered with 200, as a ratio
//! to clients that wait for each answer. The warm-up is so long that a queue whose requests are
//! answered too late shows it.

use std::time::Duration;

use anyhow::Result;
use gristmill_benches::report::{self, Goal};
use serde_json::json;

use crate::bench::Bench;
use crate::clients::{Arrivals, ClosedLoop, Outcomes, Way, elsewhere};
use crate::stage::{Stage, TIMEOUT};

const CALL: Duration = Duration::from_millis(20);
const TIMES: [f64; 2] = [1.3, 2.0];
const CLIENTS: usize = 16;
const STREAMS: usize = 1200;

/// The target: the answers as a ratio to the capacity.
const RATIO_MIN: f64 = 0.9;

const TIME: Duration = Duration::from_secs(20);
const WARM_UP_ALONE: Duration = Duration::from_secs(2);

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    for (name, with_tls) in [("HTTP/1.1", false), ("HTTP/2", true)] {
        let case = |times: f64| format!("overload, {name}, {times} x");
        if !TIMES.iter().any(|times| bench.wants(&case(*times))) {
            continue;
        }
        let stage = Stage::set(&bench.runtime, bench.gristmill, bench.components, with_tls)?;
        let request = bench.runtime.block_on(stage.spin(CALL))?;
        let at_capacity = || -> Result<f64> {
            let load = ClosedLoop { clients: CLIENTS, warm_up: WARM_UP_ALONE, time: TIME };
            Ok(load.run(&stage, &request)?.good as f64 / TIME.as_secs_f64())
        };
        let mut capacity = vec![at_capacity()?];
        for times in TIMES.into_iter().filter(|times| bench.wants(&case(*times))) {
            let arrivals = Arrivals {
                per_s: capacity[0] * times,
                under_way_max: STREAMS,
                warm_up: 2 * TIMEOUT,
                time: TIME,
            };
            let outcomes: Outcomes =
                elsewhere(async || Way::to(&stage).await?.open_loop(&request, arrivals).await)?;
            capacity.push(at_capacity()?);
            let goodput = outcomes.good as f64 / TIME.as_secs_f64();
            let (p50_ms, p99_ms) = (outcomes.percentile_ms(50.0), outcomes.percentile_ms(99.0));
            let mean = (capacity[capacity.len() - 2] + capacity[capacity.len() - 1]) / 2.0;
            let figures = json!({
                "capacity_per_s": mean,
                "sent_per_s": arrivals.per_s,
                "good_per_s": goodput,
                "ratio": goodput / mean,
                "p50_ms": p50_ms,
                "p99_ms": p99_ms,
                "others": outcomes.others,
            });
            let target = Goal::at_least(goodput / mean, RATIO_MIN, "");
            report::row(&case(times), &figures, Some(target));
        }
    }
    Ok(())
}
