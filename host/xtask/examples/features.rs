//! An empty program, which nobody runs. `cargo xtask demo` builds it together with the server.
//!
//! Cargo uses the features of development dependencies only if it builds an example, a test or a
//! benchmark. With this example the demo compiles tokio, hyper and the crates above them with the
//! same features as the tests, and `cargo xtask test` need not compile them again. Without it, 26
//! crates compile twice.

fn main() {}
