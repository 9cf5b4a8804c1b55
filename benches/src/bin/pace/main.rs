//! One tenant's plugin calls, and who waits for them: requests beyond a tenant's capacity, another
//! tenant beside many short calls, and the throughput of a tenant that is alone.
//!
//! Prints a row for each case. `cargo xtask bench pace` runs it. Arguments: the binary `gristmill`,
//! the folder of the built plugins, an earlier binary or `-`, and beginnings of the names of cases,
//! or none for all. The library of ONNX Runtime is in `ORT_DYLIB_PATH`.
//!
//! In reading order: `stage` is the server with its tenants, `clients` sends requests, and
//! `overload`, `beside` and `alone` are the cases.

mod alone;
mod bench;
mod beside;
mod clients;
mod overload;
mod stage;

use std::path::Path;

use anyhow::{Result, bail};

use crate::bench::Bench;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [gristmill, components, before, wanted @ ..] = &arguments[..] else {
        bail!("usage: pace <gristmill> <components> <earlier gristmill, or -> [CASE]...");
    };
    let bench = Bench {
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        gristmill: Path::new(gristmill),
        components: Path::new(components),
        before: (before != "-").then(|| Path::new(before)),
        wanted,
    };
    overload::measure(&bench)?;
    beside::measure(&bench)?;
    alone::measure(&bench)
}
