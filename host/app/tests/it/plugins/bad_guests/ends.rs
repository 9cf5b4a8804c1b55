//! Ends of calls, and limits.

use super::deeds::{self, honest_post, honest_pre};
use super::run::{UNLOADABLE, case, run};
use crate::support::deeds::{HARMLESS, OUT_OF_MEMORY, TIMEOUT, TRAPPED};
use crate::support::modules::{ANY, Guest, RUN, make_tensor};

#[test]
fn ends_that_go_wrong() {
    run([
        case(
            "start: a trap",
            Guest::pre(honest_pre).start(|c| {
                c.unreachable();
            }),
            UNLOADABLE,
        ),
        case("start: without end", Guest::pre(honest_pre).start(deeds::loops), UNLOADABLE),
        case(
            "start: without bottom",
            Guest::pre(honest_pre).start(|c| {
                c.call(RUN + 3);
            }),
            UNLOADABLE,
        ),
        case(
            "post-return: a trap",
            Guest::pre(honest_pre).post_return(|c| {
                c.unreachable();
            }),
            TRAPPED,
        ),
        case("post-return: without end", Guest::pre(honest_pre).post_return(deeds::loops), TIMEOUT),
        case(
            "post-return: into the host",
            Guest::pre(honest_pre).post_return(make_tensor),
            TRAPPED,
        ),
        case(
            "postprocess: post-return",
            Guest::post(honest_post).post_return(|c| {
                c.unreachable();
            }),
            TRAPPED,
        ),
        case("without end", Guest::pre(deeds::forever), TIMEOUT),
        case("without bottom", Guest::pre(deeds::without_bottom), TRAPPED),
        case("a null function", Guest::pre(deeds::call_null), TRAPPED),
        case(
            "a division by zero",
            Guest::pre(|c| {
                c.i32_const(1).i32_const(0).i32_div_s();
            }),
            TRAPPED,
        ),
        case(
            "beyond memory",
            Guest::pre(|c| {
                c.i32_const(-4).i32_load(ANY);
            }),
            TRAPPED,
        ),
        case("a fill beyond memory", Guest::pre(deeds::fill_beyond), TRAPPED),
    ]);
}

#[test]
fn growth_to_the_limits() {
    run([
        case("memory, then an answer", Guest::pre(deeds::grow_memory_and_answer), HARMLESS),
        case("memory, then a trap", Guest::pre(deeds::grow_memory_and_trap), OUT_OF_MEMORY),
        case("memory at once", Guest::pre(deeds::grow_memory_at_once), OUT_OF_MEMORY),
        case("a table, then an answer", Guest::pre(deeds::grow_table_and_answer), HARMLESS),
        case("a table, then a trap", Guest::pre(deeds::grow_table_and_trap), OUT_OF_MEMORY),
    ]);
}
