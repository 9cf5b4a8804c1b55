//! The load generator, `gristmill bench`, beside wrk and perf_analyzer on the same work.
//!
//! perf_analyzer takes several times the processor time for a request, so on the server's machine
//! the two are compared where the model takes nearly all of it.

use anyhow::Result;
use serde_json::json;

use super::load::scenarios;
use super::oip::perf_analyzer::{Protocol, inferences_per_second};
use super::oip::scenario::{RESNET50, deploy_large};
use super::own_client::{Measured, Round};
use super::processes::{ECHO, start_with_echo};
use super::rounds::{Ratios, in_turns, median};
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use super::{made_models, wrk};
use crate::setup;
use crate::shell::step;

const CONCURRENCY: [u32; 2] = [16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 4;

/// ResNet-50 answers some requests a second.
const SLOW_ROUND_SECONDS: u32 = 15;
const SLOW_CONCURRENCY: u32 = 16;
const SLOW_ROUNDS: usize = 3;

/// The targets: how far the throughputs may be apart, and the client's own processor time for an
/// answer.
const WRK_OFF_MAX: f64 = 0.05;
const PERF_ANALYZER_OFF_MAX: f64 = 0.10;
const CPU_US_MAX: f64 = 12.0;

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    wrk::install()?;
    let perf_analyzer = setup::install_perf_analyzer()?;
    let resnet50 = made_models::resnet50("fp32")?;
    let (server, _echo) = start_with_echo(shipped)?;
    let mut table = Table::new("generator", "cargo xtask bench generator");
    let echo = format!("http://{ECHO}/");
    for scenario in scenarios() {
        let headers = [("content-type", scenario.content_type)];
        let script = wrk::write_script(scenario.name, &scenario.body, &headers)?;
        let body = scenario.body.display().to_string();
        let path = format!("{}/v1/demo/infer/{}", server.url, scenario.name);
        for (server, url) in [("echo", &echo), ("gristmill", &path)] {
            for concurrency in CONCURRENCY {
                let what = format!("{}, {server}, concurrency {concurrency}", scenario.name);
                step(&what);
                let round = Round { concurrency, seconds: ROUND_SECONDS };
                let (script, seconds) = (script.as_path(), ROUND_SECONDS);
                let of_wrk = wrk::Round { url, script, concurrency, seconds };
                let (own, theirs) = in_turns(
                    ROUNDS,
                    || round.measure(&shipped.gristmill, url, &["--body", &body]),
                    || of_wrk.requests_per_second(),
                )?;
                compare(&what, ("wrk", WRK_OFF_MAX), &own, &theirs, &mut table);
                cpu(&what, &own, &mut table);
            }
        }
    }

    deploy_large(&server, &resnet50)?;
    let grpc = format!("grpc://{}/resnet50", server.grpc);
    let http = format!("{}/v2/models/resnet50", server.url);
    let http_address = server.url.trim_start_matches("http://");
    for (protocol, url, address) in
        [(Protocol::Http, &http, http_address), (Protocol::Grpc, &grpc, &*server.grpc)]
    {
        let concurrency = SLOW_CONCURRENCY;
        let what = format!("ResNet-50, {}, concurrency {concurrency}", protocol.flag());
        step(&what);
        let round = Round { concurrency, seconds: SLOW_ROUND_SECONDS };
        let (own, theirs) = in_turns(
            SLOW_ROUNDS,
            || round.measure(&shipped.gristmill, url, &["--rows", "1"]),
            || {
                let to = (protocol, address);
                inferences_per_second(&perf_analyzer, &RESNET50, to, concurrency)
            },
        )?;
        compare(&what, ("perf_analyzer", PERF_ANALYZER_OFF_MAX), &own, &theirs, &mut table);
    }
    table.finish()
}

/// Add a row with the throughput over another client's.
fn compare(
    what: &str,
    (client, off_max): (&str, f64),
    own: &[Measured],
    theirs: &[f64],
    table: &mut Table,
) {
    let rates: Vec<f64> = own.iter().map(|own| own.per_second).collect();
    let Ratios { least, median: ratio, most, all } =
        Ratios::of(rates.iter().copied(), theirs.iter().copied());
    let (own_per_s, their_per_s) = (median(rates), median(theirs.to_vec()));
    table.row_to_reach(
        format!("{what}, over {client}"),
        format!("{ratio:.3} ({least:.3} to {most:.3}; {own_per_s:.0}/s and {their_per_s:.0}/s)"),
        json!({ "ratio": ratio, "ratios": all, "per_s": own_per_s, "their_per_s": their_per_s }),
        Verdict::new(format!("within {:.0} %", off_max * 100.0), (ratio - 1.0).abs() <= off_max),
    );
}

/// Add a row with the client's own processor time for an answer.
fn cpu(what: &str, own: &[Measured], table: &mut Table) {
    let us = median(own.iter().map(|own| own.client_cpu_us).collect());
    table.row_to_reach(
        format!("{what}: the client's own processor time"),
        format!("{us:.1} us an answer"),
        json!({ "client_cpu_us": us }),
        Verdict::new(format!("at most {CPU_US_MAX:.0} us"), us <= CPU_US_MAX),
    );
}
