//! How often a test does what only many repetitions prove.

use std::env;

/// Set by `cargo xtask soak`.
const VARIABLE: &str = "GRISTMILL_TEST_SOAK";

/// `few` times in each run of the tests, `many` times by `cargo xtask soak`.
pub(crate) fn times(few: usize, many: usize) -> usize {
    if env::var_os(VARIABLE).is_some() { many } else { few }
}
