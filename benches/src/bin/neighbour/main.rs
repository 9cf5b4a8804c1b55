//! A tenant beside hostile guests, clients, uploads, messages and models: the times and failures of
//! its requests, while another tenant or uploads of the operator attack the same server.
//!
//! Prints one JSON object a line: `{"what":"alone",...}` first and last, and one for each case
//! between. `cargo xtask bench neighbour` runs it, compares the figures with the targets and
//! records them. Arguments: the binary `gristmill`, the folder of the built plugins, and names of
//! cases, or their beginnings, or none for all; `list` alone lists the cases. The library of ONNX
//! Runtime is in `ORT_DYLIB_PATH`.
//!
//! In reading order: `cases` lists the attacks, `stage` is the server with its tenants, `attack`
//! one hostile request and `attackers` many of them, `watch` the server's memory and processor
//! time. `measure` runs a case with all of these.

mod attack;
mod attackers;
mod cases;
mod measure;
mod stage;
mod watch;

use anyhow::{Result, bail, ensure};

use crate::cases::CASES;
use crate::measure::Bench;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measured: Vec<_> = CASES.iter().filter(|case| !case.attackers.is_empty()).collect();
    let (gristmill, components, wanted) = match arguments[..] {
        ["list"] => {
            measured.iter().for_each(|case| println!("{}", case.name));
            return Ok(());
        }
        [gristmill, components, ref wanted @ ..] => (gristmill, components, wanted),
        _ => bail!("usage: neighbour <gristmill> <components> [CASE]..."),
    };
    for name in wanted {
        let is_known = measured.iter().any(|case| case.name.starts_with(name));
        ensure!(is_known, "there is no case {name:?}");
    }
    let mut bench = Bench::new(gristmill.into(), components.into())?;
    println!("{}", bench.alone()?);
    for case in measured {
        if wanted.is_empty() || wanted.iter().any(|name| case.name.starts_with(name)) {
            for attackers in case.attackers {
                println!("{}", bench.measure(case, *attackers)?);
            }
        }
    }
    println!("{}", bench.alone()?);
    Ok(())
}
