//! The control plane under load: releases while requests run, and many tenants.
//!
//! Prints rows with targets. `cargo xtask bench control` runs it. Arguments: the binary
//! `gristmill`, the folder of the built plugins, and names of cases, or none for all. The library
//! of ONNX Runtime is in `ORT_DYLIB_PATH`.
//!
//! `swaps` replaces plugins and models while requests run, `tenants` makes many tenants of few
//! plugins and models, `candidates` gives a pipeline a candidate.

mod candidates;
mod swaps;
mod tenants;

use std::path::Path;

use anyhow::{Result, bail, ensure};
use tokio::runtime::Runtime;

/// A case: measures with the binary `gristmill` and the folder of the components, and prints rows.
type Case = fn(&Runtime, &Path, &Path) -> Result<()>;

const CASES: [(&str, Case); 3] =
    [("swaps", swaps::measure), ("tenants", tenants::measure), ("candidates", candidates::measure)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [gristmill, components, wanted @ ..] = &arguments[..] else {
        bail!("usage: control <gristmill> <components> [CASE]...");
    };
    for name in wanted {
        ensure!(CASES.iter().any(|(case, _)| case == name), "there is no case {name:?}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (name, measure) in CASES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure(&runtime, Path::new(gristmill), Path::new(components))?;
        }
    }
    Ok(())
}
