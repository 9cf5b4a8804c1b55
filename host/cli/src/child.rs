//! How the program starts children of itself, for work that may take any time and any memory. The
//! hidden command `child` is the child's side; the binary has it.

use gristmill_platform::child::RunnerConfig;

/// The configuration of children: by default one at a time.
pub fn runner_config() -> RunnerConfig {
    // The allocator reserves a gigabyte at its start. As writable memory this would exceed the
    // limit that a child sets later.
    let environment = vec![("MIMALLOC_ARENA_EAGER_COMMIT".into(), "0".into())];
    RunnerConfig { environment, ..RunnerConfig::new(&["child"]) }
}
