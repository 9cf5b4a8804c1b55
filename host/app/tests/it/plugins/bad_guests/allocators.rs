//! Guests whose allocator, which the host calls, misbehaves.

use super::deeds::{self, honest_pre};
use super::run::{case, run};
use crate::support::deeds::{HARMLESS, INVALID, TIMEOUT, TRAPPED};
use crate::support::modules::{Guest, NAME};

#[test]
fn allocators_that_lie() {
    run([
        case(
            "nothing",
            Guest::pre(honest_pre).realloc(|code| {
                code.i32_const(0);
            }),
            HARMLESS,
        ),
        case(
            "out of memory",
            Guest::pre(honest_pre).realloc(|c| {
                c.i32_const(-8);
            }),
            TRAPPED,
        ),
        case(
            "not aligned",
            Guest::pre(honest_pre).realloc(|c| {
                c.i32_const(8193);
            }),
            TRAPPED,
        ),
        // The host writes the request over the guest's name of its input.
        case(
            "the same again",
            Guest::pre(honest_pre).realloc(|c| {
                c.i32_const(NAME);
            }),
            INVALID,
        ),
        case(
            "a trap",
            Guest::pre(honest_pre).realloc(|c| {
                c.unreachable();
            }),
            TRAPPED,
        ),
        case("without end", Guest::pre(honest_pre).realloc(deeds::forever), TIMEOUT),
        case("into itself", Guest::pre(honest_pre).realloc(deeds::realloc_again), TRAPPED),
        case("into an export", Guest::pre(honest_pre).realloc(deeds::run_again), TRAPPED),
        case("into the host", Guest::pre(honest_pre).realloc(deeds::call_the_host), TRAPPED),
        case(
            "into the host, late",
            Guest::pre(deeds::asks_for_data).realloc(deeds::call_the_host_late),
            TRAPPED,
        ),
    ]);
}
