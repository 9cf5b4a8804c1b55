//! Nothing to run. `cargo xtask demo` builds the server and this, instead of every target.
//!
//! Cargo resolves the features of development dependencies only where a selection has an example, a
//! test or a benchmark. With one in it, the demo compiles tokio, hyper and everything above them as the
//! tests do, and `cargo xtask test` finds them compiled; without, it compiles 26 crates anew.

fn main() {}
