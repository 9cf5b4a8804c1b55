//! The size of the sandbox, and where it compiles and keeps code.

use std::path::PathBuf;

use gristmill_core::PluginLimits;

use crate::check_component::Bounds;
use crate::compile::Compiler;

/// The size of the pool.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Maximum calls at the same time. Further calls wait.
    pub concurrent_calls: u32,
    /// The largest linear memory of any plugin, in bytes.
    pub memory_bytes_max: usize,
    /// The largest table of any plugin.
    pub table_elements_max: usize,
    /// The bytes of a memory that are reset by writing zeros and not by giving pages back. This
    /// should be at least a guest's initial memory, or each call pays for page faults.
    pub keep_resident_bytes: usize,
    /// Maximum bytes that the memories of instances that ended may keep together, for later ones.
    /// With fewer than `keep_resident_bytes` for each place of the pool, each keeps less.
    pub retained_bytes: usize,
    /// Maximum core modules that an instance of a plugin may have.
    pub instances_max: u32,
    /// Where compiled code is cached.
    pub cache_directory: PathBuf,
    /// The folder with the runtimes of languages: `python.wasm`. By default it is `runtimes` or
    /// `share/gristmill/runtimes`, beside this program or one folder above.
    pub runtimes_directory: Option<PathBuf>,
    /// Where the compiled code of runtimes is cached, if it is not `cache_directory`.
    pub runtimes_cache: Option<PathBuf>,
    /// Where plugins are compiled.
    pub compiler: Compiler,
}

impl SandboxConfig {
    /// The defaults, caching under `cache_directory`.
    pub fn new(cache_directory: PathBuf) -> Self {
        let limits = PluginLimits::default();
        Self {
            concurrent_calls: 256,
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            keep_resident_bytes: 1 << 20,
            retained_bytes: 1 << 30,
            instances_max: limits.instances as u32,
            cache_directory,
            runtimes_directory: runtimes_beside_program(),
            runtimes_cache: None,
            compiler: Compiler::InProcess,
        }
    }

    /// The bounds of an instance of a plugin.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::new(self.instances_max)
    }
}

/// Where the runtimes are, from the folder of this program or the one above: in a build, and
/// installed.
const RUNTIMES: [&str; 2] = ["runtimes", "share/gristmill/runtimes"];

/// The folder of the runtimes that came with this program, if there is one.
fn runtimes_beside_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.flat_map(|folder| RUNTIMES.map(|runtimes| folder.join(runtimes)));
    places.find(|place| place.is_dir())
}
