//! The sizes that the server chooses for a model (`instances`, `threads` and `max_batch_size` of
//! "auto") against a grid of sizes that are set by hand, for models of all lengths of runs.
//!
//! Sixteen clients in a closed loop. All sizes of the grid are measured once, then the best one and
//! "auto" in turns.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::clients::Round;
use super::harness::{Bench, grant};
use super::loads::{DIGITS, ENCODER, Load, PHOTOS, RANKER, RESNET50};
use super::models;
use super::rounds::{compare, in_turns, median, rates};
use crate::server::Server;
use crate::shell::step;

/// The targets: answers a second as a ratio to the best of the grid, and p90 as a ratio to p50.
const RATIO_MIN: f64 = 0.95;
const P90_RATIO_MAX: f64 = 1.5;

const CLIENTS: u32 = 16;
const GRID_ROUND: Round = Round { concurrency: CLIENTS, seconds: 2 };
const ROUND: Round = Round { concurrency: CLIENTS, seconds: 4 };
const ROUNDS: usize = 5;

/// A load of each model.
const LOADS: [Load; 5] = [RANKER, DIGITS, PHOTOS, RESNET50, ENCODER];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let server = bench.start_with_photos()?;
    server.admin.put_file("models/resnet50", &models::resnet50()?)?;
    server.admin.put_file("models/encoder", &models::encoder()?)?;
    grant(&server.admin, &LOADS.map(|load| load.model()))?;
    for load in &LOADS {
        if !bench.wants(load.model()) {
            continue;
        }
        step(&format!("{} with sizes of a grid, then the best and auto in turns", load.model()));
        measure(bench, &server, load).with_context(|| load.model())?;
    }
    Ok(())
}

fn measure(bench: &mut Bench<'_>, server: &Server, load: &Load) -> Result<()> {
    let path = format!("models/{}/config", load.model());
    let measured = |config: &Value, round: Round| {
        server.admin.put_json(&path, config)?;
        bench.measure(server, load, round)
    };
    let mut grid = Vec::new();
    for config in configurations()? {
        let per_second = measured(&config, GRID_ROUND)?.per_second;
        grid.push((config, per_second));
    }
    grid.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (best, _) = grid.first().context("the grid is empty")?;
    let auto = json!({});
    server.admin.put_json(&path, &auto)?;
    let sizes = server.admin.get("status")?["models"][load.model()]["sizes"].clone();
    let [chosen, by_hand] =
        in_turns(ROUNDS, [&|| measured(&auto, ROUND), &|| measured(best, ROUND)])?;
    let ratio = compare(&chosen, &by_hand).ratio;
    let spread = median(chosen.iter().map(|round| round.p90_us / round.p50_us).collect());
    let figures = json!({
        "auto": sizes,
        "auto_per_s": rates(&chosen),
        "best": best,
        "best_per_s": rates(&by_hand),
        "ratio": ratio,
        "p90_over_p50": spread,
        "grid_per_s": grid,
    });
    bench.table.row(load.model(), figures).with_target(
        format!("at least {RATIO_MIN} x, p90 at most {P90_RATIO_MAX} x p50"),
        ratio >= RATIO_MIN && spread <= P90_RATIO_MAX,
    );
    Ok(())
}

/// The grid. No configuration has more threads than there are cores.
fn configurations() -> Result<Vec<Value>> {
    let cores = std::thread::available_parallelism()?.get();
    let mut all = Vec::new();
    for (instances, threads) in [(1, 1), (1, cores), (cores, 1)] {
        for max_batch_size in [1, 4, 16, 256] {
            all.push(json!({
                "instances": instances, "threads": threads, "max_batch_size": max_batch_size,
            }));
        }
    }
    Ok(all)
}
