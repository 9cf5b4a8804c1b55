//! ResNet-50 over HTTP, compared with ONNX Runtime in a bare loop.

use std::ffi::OsStr;
use std::path::Path;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::bench::clients::Round;
use crate::bench::harness::{Bench, RESNET50_THREADS};
use crate::bench::loads::RESNET50;
use crate::bench::rounds::median;
use crate::server::Server;
use crate::shell::{number, step};
use crate::table::Bound::AtLeast;

const ROUNDS: usize = 3;

/// The target: the server's rows a second, as a ratio to the bare loop.
const RATIO_MIN: f64 = 0.95;

/// The load: it lasts for the warm-up, the window, and the batches around the window whose ends are
/// waited for.
const LOAD: Round = Round { concurrency: 8, seconds: 18 };
const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(10);

/// The maximum time of a batch.
const BATCH_TIME_MAX: Duration = Duration::from_secs(4);

/// Measure ResNet-50 with wrk, and ONNX Runtime in a bare loop at the resulting mean batch, in
/// turns; add the row.
pub(super) fn measure(bench: &mut Bench<'_>, server: &Server, resnet50: &Path) -> Result<()> {
    let (url, script) = (format!("{}{}", server.url, RESNET50.wrk_path()), RESNET50.wrk_script()?);
    let model = resnet50.display().to_string();
    let (threads, seconds) = (RESNET50_THREADS.to_string(), WINDOW.as_secs().to_string());
    let (mut rounds, mut ratios) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        step(&format!("ResNet-50, round {round} of {ROUNDS}"));
        let (window, client) = scope(|scope| {
            let client = scope.spawn(|| LOAD.by_wrk(&url, &script));
            (Window::measure(server), client.join())
        });
        let client = client.map_err(|_| anyhow!("the thread that ran wrk panicked"))??;
        let Window { rows_per_s, mean_batch } = window?;
        let batch = (mean_batch.round().max(1.0) as usize).to_string();
        let bare =
            ["bare", &model, "--batch", &batch, "--threads", &threads, "--seconds", &seconds];
        let bare = bench.lines("batch", &bare.map(OsStr::new))?;
        let bare_per_s = number(bare.first().context("no figures")?, "/rows_per_s")?;
        ratios.push(rows_per_s / bare_per_s);
        rounds.push(json!({
            "rows_per_s": rows_per_s,
            "rows_per_s_by_wrk": client.per_second,
            "mean_batch": mean_batch,
            "bare_rows_per_s": bare_per_s,
        }));
    }
    let ratio = median(ratios);
    let what =
        format!("ResNet-50, HTTP, wrk, concurrency {}: rows over the bare loop", LOAD.concurrency);
    let figures = json!({ "ratio": ratio, "threads": RESNET50_THREADS, "rounds": rounds });
    bench.table.row(what, figures).with_bound(ratio, AtLeast(RATIO_MIN), "");
    Ok(())
}

/// The rows of ResNet-50 under load, counted from the end of one batch to the end of another.
/// A batch takes so long that a window that begins and ends within one would be wrong by some
/// percent.
struct Window {
    rows_per_s: f64,
    mean_batch: f64,
}

impl Window {
    /// Measure a server whose load has begun.
    fn measure(server: &Server) -> Result<Self> {
        sleep(WARM_UP);
        let (began, before) = end_of_batch(server)?;
        sleep(WINDOW);
        let (ended, after) = end_of_batch(server)?;
        let rise = |figure| anyhow::Ok(number(&after, figure)? - number(&before, figure)?);
        let (rows, batches) = (rise("/inference_count")?, rise("/execution_count")?);
        let seconds = ended.duration_since(began).as_secs_f64();
        Ok(Self { rows_per_s: rows / seconds, mean_batch: rows / batches })
    }
}

/// Wait for a batch to end. Returns the time, and the statistics with all of its rows.
fn end_of_batch(server: &Server) -> Result<(Instant, Value)> {
    let batches = || number(&server.statistics("resnet50")?, "/execution_count");
    let (earlier, give_up) = (batches()?, Instant::now() + BATCH_TIME_MAX);
    loop {
        let now = Instant::now();
        if batches()? > earlier {
            // The requests of this batch may be counted at slightly different times.
            sleep(Duration::from_millis(10));
            return Ok((now, server.statistics("resnet50")?));
        }
        ensure!(now <= give_up, "ResNet-50 ended no batch within {BATCH_TIME_MAX:?}");
        sleep(Duration::from_millis(5));
    }
}
