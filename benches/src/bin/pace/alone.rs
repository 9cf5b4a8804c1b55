//! The throughput of a tenant that is alone: how much of the processor its calls get, and as a
//! ratio to an earlier build, in rounds of both in turn.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use gristmill_benches::report::{self, Goal};
use gristmill_load::median;
use serde_json::json;

use crate::bench::Bench;
use crate::clients::ClosedLoop;
use crate::stage::Stage;

const CALLS_US: [u64; 5] = [80, 500, 1500, 2500, 10_000];
const CLIENTS: usize = 64;
const ROUNDS: usize = 5;

/// The target: the throughput as a ratio to that of the earlier build.
const RATIO_MIN: f64 = 0.97;

const TIME: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let case = |us: u64| format!("alone, calls of {} ms", us as f64 / 1e3);
    let wanted: Vec<_> = CALLS_US.into_iter().filter(|us| bench.wants(&case(*us))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let set = |gristmill: &Path| Stage::set(&bench.runtime, gristmill, bench.components, false);
    let now = set(bench.gristmill)?;
    let before = bench.before.map(set).transpose()?;
    let load = ClosedLoop { clients: CLIENTS, warm_up: WARM_UP, time: TIME };
    for us in wanted {
        // The same request for both.
        let request = bench.runtime.block_on(now.spin(Duration::from_micros(us)))?;
        let (mut per_s, mut before_per_s) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            per_s.push(load.run(&now, &request)?.good as f64 / TIME.as_secs_f64());
            if let Some(before) = &before {
                before_per_s.push(load.run(before, &request)?.good as f64 / TIME.as_secs_f64());
            }
        }
        let (now, before) = (median(&per_s), median(&before_per_s));
        let ratio = now.zip(before).map(|(now, before)| now / before);
        let figures = json!({
            "per_s": per_s,
            "before_per_s": before_per_s,
            "processors": now.map(|now| now * us as f64 / 1e6),
            "ratio": ratio,
        });
        let target = ratio.map(|ratio| Goal::at_least(ratio, RATIO_MIN, "x before"));
        report::row(&case(us), &figures, target);
    }
    Ok(())
}
