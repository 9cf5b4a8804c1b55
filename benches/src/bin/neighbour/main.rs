//! A tenant beside hostile guests, clients, uploads, messages and models: the times and failures of
//! its requests, while another tenant or uploads of the operator attack the same server.
//!
//! Prints rows: two of the tenant alone, and one for each case, with its target. `cargo xtask bench
//! neighbour` runs it. Arguments: the binary `gristmill`, the folder of the built plugins, the
//! program of Redis, and names of cases, or their beginnings, or none for all; `list` alone lists
//! the cases. The library of ONNX Runtime is in `ORT_DYLIB_PATH`.
//!
//! In reading order: `cases` lists the attacks, `peers` are the stores and services that hostile
//! plugins ask, `stage` is the server with its tenants, `attack` one hostile request and
//! `attackers` many of them, `watch` the server's memory and CPU time. `measure` runs a case
//! with all of these, and `verdict` compares its figures with the targets.

mod attack;
mod attackers;
mod cases;
mod measure;
mod peers;
mod stage;
mod verdict;
mod watch;

use anyhow::{Context, Result, bail, ensure};
use gristmill_benches::report;

use crate::cases::CASES;
use crate::measure::Bench;
use crate::peers::Peers;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measured: Vec<_> = CASES.iter().filter(|case| !case.attackers.is_empty()).collect();
    let (gristmill, components, redis, wanted) = match arguments[..] {
        ["list"] => {
            measured.iter().for_each(|case| println!("{}", case.name));
            return Ok(());
        }
        [gristmill, components, redis, ref wanted @ ..] => (gristmill, components, redis, wanted),
        _ => bail!("usage: neighbour <gristmill> <components> <redis-server> [CASE]..."),
    };
    for name in wanted {
        let is_known = measured.iter().any(|case| case.name.starts_with(name));
        ensure!(is_known, "there is no case {name:?}");
    }
    let peers = Peers::start(redis.as_ref())?;
    let mut bench = Bench::new(gristmill.into(), components.into(), peers)?;
    let (mut alone, mut cases) = (vec![bench.alone()?], Vec::new());
    for case in measured {
        if wanted.is_empty() || wanted.iter().any(|name| case.name.starts_with(name)) {
            for attackers in case.attackers {
                cases.push(bench.measure(case, *attackers)?);
            }
        }
    }
    alone.push(bench.alone()?);
    alone.iter().for_each(|figures| report::row("alone", figures, None));
    let alone_p99 = verdict::mean_p99(&alone);
    let alone_p99 = alone_p99.context("the neighbour was not answered when it was alone")?;
    cases.into_iter().try_for_each(|figures| verdict::row(figures, alone_p99))
}
