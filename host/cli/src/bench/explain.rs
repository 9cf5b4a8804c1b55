//! `gristmill bench --explain`: what a load costs, what it should give, what it gives, and what to
//! change first.
//!
//! In reading order: `subject` finds the pipeline and its model, `parts` measures each part alone
//! (`probe` asks one request at a time, `awake` keeps the cores from sleeping, `figures` are the
//! server's own), `machine` puts the costs together, `simulation` predicts from them, `advice`
//! names the bottleneck and tries changes, and `report` shows all of it.
//!
//! Invariant: the prediction is made before the load that it is about runs.

mod advice;
mod awake;
mod figures;
mod machine;
mod parts;
mod probe;
mod report;
mod simulation;
mod subject;

use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use gristmill_load::{Load, Measured, Pace, Scheme, Url};

use self::advice::{Bottleneck, changes};
use self::figures::{Figures, machine_cpu_us};
use self::machine::{LaneModel, Machine};
use self::parts::Measuring;
use self::report::{Report, Seen};
use self::simulation::simulate;
use self::subject::Subject;
use super::{modes, requests};
use crate::admin::Admin;
use crate::output::Output;

/// Explain this load. Returns what was measured of it.
pub(super) fn run(matches: &ArgMatches, load: &Load) -> Result<Measured> {
    let Pace::Closed { connections } = load.pace else {
        bail!("--explain needs a closed loop: leave out --rate");
    };
    let asked = requests::request_spec(matches)?;
    if asked.url.scheme != Scheme::Http {
        bail!("--explain needs a URL that begins with http://");
    }
    check_is_here(&asked.url)?;
    let admin = Admin::of(matches)?;
    let subject = Subject::of(&asked.url, &admin)?;
    let cores = cores();
    let measuring =
        Measuring { asked: &asked, subject: &subject, admin: &admin, load, connections, cores };
    let parts = measuring.measure()?;
    let config = &subject.config;
    let machine = Machine {
        cores,
        connections,
        client_threads: load.threads.min(connections),
        client_is_here: true,
        server_threads: cores,
        costs: parts.costs.clone(),
        lane: LaneModel {
            instances: config.instances,
            threads: config.threads,
            rows: parts.rows,
            max_rows: config.max_rows,
            preferred_rows: config.preferred_rows.clone(),
            delay_us: config.delay_us,
            service: parts.service.clone(),
        },
    };
    let prediction = simulate(&machine);
    let seen = see(&admin, &subject, load)?;
    let report = Report {
        subject: &subject,
        url: &asked.url,
        machine: &machine,
        parts: &parts,
        prediction: &prediction,
        seen: &seen,
        bottleneck: Bottleneck::of(&machine, &prediction),
        changes: changes(&machine, &prediction),
    };
    Output::of(matches).print(report.json(), || report.text());
    Ok(seen.measured)
}

/// The client shares the cores of the server, so it must be there.
fn check_is_here(url: &Url) -> Result<()> {
    let authority = &url.authority;
    let addresses = authority.to_socket_addrs();
    let mut addresses = addresses.with_context(|| format!("{authority} has no address"))?;
    if !addresses.all(|address| address.ip().is_loopback()) {
        bail!(
            "{authority} is not an address of this machine such as 127.0.0.1: --explain shares the \
             cores between client and server, so run it on the server's machine"
        );
    }
    Ok(())
}

/// Measure the load itself, with the batches of the model and the server's CPU time.
fn see(admin: &Admin, subject: &Subject, load: &Load) -> Result<Seen> {
    let warm_up = Load { duration: load.warm_up, warm_up: Duration::ZERO, ..load.clone() };
    if !load.warm_up.is_zero() {
        modes::once(&warm_up, "warming up: ")?;
    }
    let read_figures = || Figures::read(admin, &subject.model);
    let (before, all_before) = (read_figures()?, machine_cpu_us());
    let begin = Instant::now();
    let measured = modes::once(&Load { warm_up: warm_up.warm_up, ..load.clone() }, "the load: ")?;
    let passed_us = begin.elapsed().as_secs_f64() * 1e6;
    let all = machine_cpu_us().zip(all_before).map(|(after, before)| after - before);
    let used = read_figures()? - before;
    let answered = measured.answered.max(1) as f64;
    let load_us = used.cpu_us + measured.client_cpu_us * answered;
    Ok(Seen {
        batch_rows: used.rows / used.batches.max(1.0),
        server_us: used.cpu_us / answered,
        others: all.map(|all| (all - load_us).max(0.0) / passed_us / cores() as f64),
        measured,
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
