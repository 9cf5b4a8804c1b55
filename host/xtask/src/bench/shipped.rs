//! The subjects of the benchmarks: the release server and the plugins.

use std::path::PathBuf;

use anyhow::Result;

use super::options::Options;
use crate::setup;
use crate::shell::{cargo, run, step, target};

/// The binaries and components that are measured.
pub(super) struct Shipped {
    pub(super) gristmill: PathBuf,
    pub(super) components: PathBuf,
}

impl Shipped {
    /// Build the server, the peers in Rust and the criterion benchmarks in the release profile,
    /// unless the options say that nothing is built.
    pub(super) fn build(options: &Options) -> Result<Self> {
        let binaries = options.binaries.clone().unwrap_or_else(|| target().join("release"));
        let (gristmill, components) = (binaries.join("gristmill"), target().join("components"));
        let shipped = Self { gristmill, components };
        if !options.build {
            return Ok(shipped);
        }
        setup::install_wasm_toolchain()?;
        step("building as shipped (the first time takes about 20 minutes on 2 cores)");
        let build = ["build", "--release", "--workspace", "--bins", "--bench", "sandbox"];
        run(cargo().args(build))?;
        setup::build_components(&shipped.gristmill)?;
        Ok(shipped)
    }

    /// A binary that was built along with the server.
    pub(super) fn binary(&self, name: &str) -> PathBuf {
        self.gristmill.with_file_name(name)
    }
}
