//! Answers and handles that the host has to read.

use super::deeds::{self, honest_post, honest_pre};
use super::run::{case, run};
use crate::support::deeds::{FAILED, HARMLESS, INVALID, TRAPPED};
use crate::support::modules::{ANSWER, Guest, LIST, NAME, NO_TEXT, honest, responded, store};

#[test]
fn honest_guests_are_harmless() {
    run([
        case("preprocess", Guest::pre(honest_pre), HARMLESS),
        case("postprocess", Guest::post(honest_post), HARMLESS),
        case("post-return", Guest::pre(honest_pre).post_return(|_| ()), HARMLESS),
        case("start", Guest::pre(honest_pre).start(|_| ()), HARMLESS),
    ]);
}

#[test]
fn answers_that_cannot_be_read() {
    run([
        case("an address out of memory", returns!(-16), TRAPPED),
        case("an address at the end of memory", returns!(4 * 65_536 - 4), TRAPPED),
        case("an address that is not aligned", returns!(ANSWER + 1), TRAPPED),
        case("neither well nor failed", prepared_with!(ANSWER, 2), TRAPPED),
        case("inputs out of memory", prepared_with!(ANSWER + 4, -64), TRAPPED),
        case("inputs that are not aligned", prepared_with!(ANSWER + 4, LIST + 1), TRAPPED),
        case("inputs without end", prepared_with!(ANSWER + 8, -1), TRAPPED),
        case("inputs whose length overflows", prepared_with!(ANSWER + 8, 0x1555_5556), TRAPPED),
        case("a name out of memory", prepared_with!(LIST, -4), TRAPPED),
        case("a name without end", prepared_with!(LIST + 4, -1), TRAPPED),
        case("a name that is no text", prepared_with!(LIST, NO_TEXT), TRAPPED),
        case("a name of nearly all memory", deeds::long_name(), INVALID),
        case("a state without end", prepared_with!(ANSWER + 16, -1), TRAPPED),
        case("a failure that there is not", failed_with!(9, NAME, 5), TRAPPED),
        case("a failure that is no text", failed_with!(0, NO_TEXT, 4), TRAPPED),
        case("a failure out of memory", failed_with!(0, -5, 5), TRAPPED),
        case("a failure", failed_with!(3, NAME, 5), FAILED),
    ]);
}

#[test]
fn responses_that_cannot_be_read() {
    run([
        case("neither well nor failed", responded_with!(ANSWER, 255), TRAPPED),
        case("a status that there is not", responded_with!(ANSWER + 4, 65_535), INVALID),
        case("a content type that is no text", responded_with!(ANSWER + 8, NO_TEXT), TRAPPED),
        case("a content type without end", responded_with!(ANSWER + 12, -1), TRAPPED),
        case("headers out of memory", headers!(-16, 1), TRAPPED),
        case("headers that are not aligned", headers!(LIST + 2, 1), TRAPPED),
        case("headers without end", headers!(LIST, -1), TRAPPED),
        case("headers whose length overflows", headers!(LIST, 0x1000_0001), TRAPPED),
        case("headers that are the answer itself", headers!(ANSWER, 1), HARMLESS),
        case("a body out of memory", responded_with!(ANSWER + 24, -8), TRAPPED),
        case("a body without end", responded_with!(ANSWER + 28, -1), TRAPPED),
        case("a body of all memory", deeds::whole_memory(), HARMLESS),
    ]);
}

#[test]
fn handles_that_do_not_belong_there() {
    run([
        case("a tensor that there is not", prepared_with!(LIST + 8, 12_345), TRAPPED),
        case("handle 0", prepared_with!(LIST + 8, 0), TRAPPED),
        case("the largest handle", prepared_with!(LIST + 8, -1), TRAPPED),
        case("a blob for a tensor", deeds::blob_for_a_tensor(), TRAPPED),
        case("a tensor twice", deeds::tensor_twice(), TRAPPED),
        case("a tensor that was dropped", deeds::dropped_once(), TRAPPED),
        case("a tensor that was dropped twice", deeds::dropped_twice(), TRAPPED),
        case("a blob dropped as a tensor", deeds::dropped_as_a_tensor(), TRAPPED),
        case("a call on a tensor that was dropped", deeds::asked_after_drop(), TRAPPED),
        case("a call on a blob as a tensor", deeds::asked_of_a_blob(), TRAPPED),
        case("an output dropped twice", deeds::output_dropped_twice(), TRAPPED),
        case("an error taken for a tensor", deeds::error_for_a_tensor(), TRAPPED),
    ]);
}
