//! The sizes that the server chooses for a model (`instances`, `threads` and `max_batch_size` of
//! "auto") against a grid of sizes that are set by hand, for models of all lengths of runs.
//!
//! Sixteen clients in a closed loop. All sizes of the grid are measured once, then the best one and
//! "auto" in turns.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::made_models;
use super::options::Options;
use super::own_client::{Measured, Round};
use super::rounds::{Ratios, in_turns, median};
use super::services;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::server::Server;
use crate::shell::step;

/// The targets: answers a second as a ratio to the best of the grid, and p90 as a ratio to p50.
const RATIO_MIN: f64 = 0.95;
const P90_RATIO_MAX: f64 = 1.5;

const CLIENTS: u32 = 16;
const GRID_ROUND: Round = Round { concurrency: CLIENTS, seconds: 2 };
const ROUND: Round = Round { concurrency: CLIENTS, seconds: 4 };
const ROUNDS: usize = 5;

/// A model, and the load that it is measured with.
const JOBS: [(&str, &str, [&str; 2]); 5] = [
    ("ranker", "v1/demo/infer/ranker", ["--body", "benches/scenarios/ranker.json"]),
    ("digits", "v1/demo/infer/digits", ["--body", "models/digits/samples/7.png"]),
    ("photos", "v1/demo/infer/photos", ["--body", "benches/scenarios/photo.jpg"]),
    ("resnet50", "v2/models/resnet50", ["--rows", "1"]),
    ("encoder", "v2/models/encoder", ["--rows", "1"]),
];

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let server = services::start(shipped)?;
    server.admin.put_file("models/resnet50", &made_models::resnet50("fp32")?)?;
    server.admin.put_file("models/encoder", &made_models::encoder()?)?;
    let models: Vec<_> = JOBS.iter().map(|(model, ..)| model).collect();
    let tenant = json!({ "open": true, "default_pipeline": "digits", "models": models });
    server.admin.put_json("tenants/demo", &tenant)?;
    let mut table = Table::new("sizes", "cargo xtask bench sizes");
    for (model, path, sent) in JOBS {
        if !options.only.is_empty() && !options.only.iter().any(|only| model.starts_with(only)) {
            continue;
        }
        step(&format!("{model} with sizes of a grid, then the best and auto in turns"));
        let job = Job { server: &server, shipped, model, path, sent };
        job.measure(&mut table).with_context(|| model.to_owned())?;
    }
    table.finish()
}

struct Job<'a> {
    server: &'a Server,
    shipped: &'a Shipped,
    model: &'a str,
    path: &'a str,
    sent: [&'a str; 2],
}

impl Job<'_> {
    fn measure(&self, table: &mut Table) -> Result<()> {
        let mut grid = Vec::new();
        for config in configurations()? {
            let measured = self.round(&config, GRID_ROUND)?;
            grid.push((config, measured.per_second));
        }
        grid.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let (best, _) = grid.first().context("the grid is empty")?;
        let auto = json!({});
        self.configure(&auto)?;
        let sizes = self.server.admin.get("status")?["models"][self.model]["sizes"].clone();
        let (chosen, by_hand) =
            in_turns(ROUNDS, || self.round(&auto, ROUND), || self.round(best, ROUND))?;
        let rates = |all: &[Measured]| all.iter().map(|one| one.per_second).collect::<Vec<_>>();
        let (chosen_rates, best_rates) = (rates(&chosen), rates(&by_hand));
        let ratios = Ratios::of(chosen_rates.iter().copied(), best_rates.iter().copied());
        let spread = median(chosen.iter().map(|one| one.p90_us / one.p50_us).collect());
        let figures = json!({
            "auto": sizes,
            "auto_per_s": chosen_rates,
            "best": best,
            "best_per_s": best_rates,
            "ratio": ratios.median,
            "p90_over_p50": spread,
            "grid_per_s": grid,
        });
        let measured = format!(
            "{:.0} a second, {:.3} x the best of the grid ({best}); p90 {spread:.2} x p50",
            median(chosen_rates),
            ratios.median
        );
        let verdict = Verdict::new(
            format!("at least {RATIO_MIN} x, p90 at most {P90_RATIO_MAX} x p50"),
            ratios.median >= RATIO_MIN && spread <= P90_RATIO_MAX,
        );
        table.row_to_reach(self.model, measured, figures, verdict);
        Ok(())
    }

    fn configure(&self, config: &Value) -> Result<()> {
        self.server.admin.put_json(&format!("models/{}/config", self.model), config)
    }

    fn round(&self, config: &Value, round: Round) -> Result<Measured> {
        self.configure(config)?;
        let url = format!("{}/{}", self.server.url, self.path);
        round.measure(&self.shipped.gristmill, &url, &self.sent)
    }
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
