//! `cargo xtask bench`: measured in one run, given as ratios against something in the same run.

mod load;
mod sandbox;
mod table;

use anyhow::{Result, bail};

/// Run the benchmark of this name, or all.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    match name {
        Some("sandbox") => sandbox::run(),
        Some("load") => load::run(),
        Some(other) => bail!("no benchmark {other:?}: there are sandbox and load"),
        None => {
            sandbox::run()?;
            load::run()
        }
    }
}
