//! ResNet-50 over HTTP, compared with ONNX Runtime in a bare loop.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::scenario::{RESNET50, RESNET50_THREADS};
use super::statistics::Statistics;
use crate::bench::rounds::median;
use crate::bench::table::{Table, Verdict};
use crate::bench::wrk;
use crate::server::Server;
use crate::setup;
use crate::shell::{output, program, step, target};

const ROUNDS: usize = 3;

/// The target: the server's rows a second, as a ratio to the bare loop.
const RATIO_MIN: f64 = 0.95;

/// The number of wrk's connections.
const CONCURRENCY: u32 = 8;
/// The load before a round's window, and the window.
const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(10);
/// The time of the load: both, and the batches around the window whose ends are waited for.
const LOAD_SECONDS: u32 = 18;

/// Measure ResNet-50 with wrk, and ONNX Runtime in a bare loop at the resulting mean batch, in
/// turns; add the row.
pub(super) fn measure(server: &Server, resnet50: &Path, table: &mut Table) -> Result<()> {
    let (url, script) = (RESNET50.url(server), RESNET50.write_script()?);
    let (url, script) = (url.as_str(), script.as_path());
    let load = wrk::Round { url, script, concurrency: CONCURRENCY, seconds: LOAD_SECONDS };
    let (mut rounds, mut ratios) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        step(&format!("ResNet-50, round {round} of {ROUNDS}"));
        let (window, client) = std::thread::scope(|scope| {
            let client = scope.spawn(|| load.requests_per_second());
            (Window::measure(server), client.join())
        });
        let client_per_s = client.map_err(|_| anyhow!("the thread that ran wrk panicked"))??;
        let Window { rows_per_s, mean_batch } = window?;
        let bare_per_s = bare_rows_per_second(resnet50, mean_batch.round().max(1.0) as usize)?;
        ratios.push(rows_per_s / bare_per_s);
        rounds.push(json!({
            "rows_per_s": rows_per_s,
            "rows_per_s_by_wrk": client_per_s,
            "mean_batch": mean_batch,
            "bare_rows_per_s": bare_per_s,
        }));
    }
    let ratio = median(ratios);
    table.row_to_reach(
        format!("ResNet-50, HTTP, wrk, concurrency {CONCURRENCY}: rows over the bare loop"),
        format!("{ratio:4.2}"),
        json!({ "ratio": ratio, "threads": RESNET50_THREADS, "rounds": rounds }),
        Verdict::new("at least 0.95", ratio >= RATIO_MIN),
    );
    Ok(())
}

/// ONNX Runtime's rows a second without the server, measured by a process that ends when it has
/// measured.
fn bare_rows_per_second(model: &Path, batch: usize) -> Result<f64> {
    let report = output(
        program(target().join("release/batch"))
            .env("ORT_DYLIB_PATH", setup::install_onnxruntime()?)
            .arg("bare")
            .arg(model)
            .args(["--batch", &batch.to_string(), "--threads", &RESNET50_THREADS.to_string()])
            .args(["--seconds", &WINDOW.as_secs().to_string()]),
    )?;
    let figures: Value = serde_json::from_str(&report).context("the bare loop's figures")?;
    figures["rows_per_s"].as_f64().context("the bare loop gave no rows a second")
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
        std::thread::sleep(WARM_UP);
        let (began, before) = Self::end_of_batch(server)?;
        std::thread::sleep(WINDOW);
        let (ended, after) = Self::end_of_batch(server)?;
        let rows = after.figure("inference_count")? - before.figure("inference_count")?;
        let batches = after.figure("execution_count")? - before.figure("execution_count")?;
        let seconds = ended.duration_since(began).as_secs_f64();
        Ok(Self { rows_per_s: rows / seconds, mean_batch: rows / batches })
    }

    /// Wait for a batch to end. Returns the time, and the statistics with all of its rows.
    fn end_of_batch(server: &Server) -> Result<(Instant, Statistics)> {
        let earlier = Statistics::read(server, &RESNET50)?.figure("execution_count")?;
        let give_up = Instant::now() + Duration::from_secs(4);
        loop {
            let now = Instant::now();
            if Statistics::read(server, &RESNET50)?.figure("execution_count")? > earlier {
                // The requests of this batch may be counted at slightly different times.
                std::thread::sleep(Duration::from_millis(10));
                return Ok((now, Statistics::read(server, &RESNET50)?));
            }
            if now > give_up {
                bail!("ResNet-50 ended no batch within 4 seconds");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
