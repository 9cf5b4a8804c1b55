//! A tenant beside another one that makes many short calls: its latencies as ratios to those when
//! it is alone, just before and after.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use gristmill_benches::load::{Load, Question, Report};
use gristmill_benches::report::{self, Goal};
use serde_json::json;

use crate::bench::Bench;
use crate::clients::ClosedLoop;
use crate::stage::Stage;

const CALLS_US: [u64; 5] = [500, 1500, 2500, 3300, 10_000];
const CLIENTS: [usize; 3] = [8, 64, 256];

/// The target: the p99 as a ratio to that without others.
const RATIO_MAX: f64 = 2.0;

const TIME: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_secs(1);

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let case =
        |us: u64, clients| format!("beside {clients} clients, calls of {} ms", us as f64 / 1e3);
    let all = CALLS_US.into_iter().flat_map(|us| CLIENTS.map(|clients| (us, clients)));
    let wanted: Vec<_> = all.filter(|(us, clients)| bench.wants(&case(*us, *clients))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let stage = Stage::set(&bench.runtime, bench.gristmill, bench.components, false)?;
    let question = bench.runtime.block_on(stage.question()?.answered())?;
    let mut before = loaded(&question)?;
    for (us, clients) in wanted {
        let request = bench.runtime.block_on(stage.spin(Duration::from_micros(us)))?;
        let busy = ClosedLoop { clients, warm_up: WARM_UP, time: TIME };
        let (report, others) = thread::scope(|scope| {
            let others = scope.spawn(|| busy.run(&stage, &request));
            thread::sleep(WARM_UP);
            let report = loaded(&question);
            let others = others.join().map_err(|_| anyhow!("the clients panicked"))??;
            anyhow::Ok((report?, others))
        })?;
        let after = loaded(&question)?;
        let alone = |percent| {
            let sum = before.percentile_ms(percent)? + after.percentile_ms(percent)?;
            Some(sum / 2.0)
        };
        let alone_p99 = alone(99.0).context("not answered alone")?;
        let p99 = report.percentile_ms(99.0).unwrap_or(f64::INFINITY);
        let (ratio, failed) = (p99 / alone_p99, report.failures.values().sum::<usize>());
        let figures = json!({
            "alone_p50_ms": alone(50.0),
            "alone_p99_ms": alone_p99,
            "p50_ms": report.percentile_ms(50.0),
            "p99_ms": p99,
            "max_ms": report.percentile_ms(100.0),
            "ratio": ratio,
            "failed": failed,
            "client_had_real_time": report.had_real_time,
            "others_per_s": others.good as f64 / TIME.as_secs_f64(),
            "others_failed": others.others,
        });
        let target = format!("p99 at most {RATIO_MAX} x alone, none failed");
        let target = Goal::new(target, ratio <= RATIO_MAX && failed == 0);
        report::row(&case(us, clients), &figures, Some(target));
        before = after;
    }
    Ok(())
}

/// The latencies of the neighbour's requests from now on.
fn loaded(question: &Question) -> Result<Report> {
    let load = Load::start(question.clone())?;
    thread::sleep(TIME);
    load.finish()
}
