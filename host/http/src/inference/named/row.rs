//! The row of a request that is at fault.

use gristmill_transport::Problem;

/// The problem of a row, which it names if the request has `count` of several.
pub(super) fn in_row(mut problem: Problem, row: usize, count: usize) -> Problem {
    if count > 1 {
        problem.detail.insert_str(0, &format!("row {row}: "));
    }
    problem
}
