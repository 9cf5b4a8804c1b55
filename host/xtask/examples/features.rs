//! Nothing to run. `cargo xtask demo` builds the server and this, instead of every target.
//!
//! Cargo takes the features of development dependencies into account only where a selection has an
//! example, a test or a benchmark. With this one the demo compiles tokio, hyper and all above them
//! as the tests do, and `cargo xtask test` finds them compiled. Without it, 26 crates compile
//! twice.

fn main() {}
