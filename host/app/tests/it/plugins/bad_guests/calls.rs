//! Calls of host functions.

use super::deeds::{self, honest_pre};
use super::run::{case, run};
use crate::support::deeds::{HARMLESS, INVALID, TRAPPED};
use crate::support::modules::{
    ANSWER, BODY, Guest, Import, LIST, MADE, NAME, NO_TEXT, SHAPE, ZEROS, ZEROS_LEN, prepared,
};

#[test]
fn host_functions_are_called_with_anything() {
    run([
        case("a dtype that there is not", created!(99, SHAPE, 4, ZEROS, ZEROS_LEN, MADE), TRAPPED),
        case("a shape out of memory", created!(11, -4, 4, ZEROS, ZEROS_LEN, MADE), TRAPPED),
        case("a shape not aligned", created!(11, SHAPE + 1, 4, ZEROS, ZEROS_LEN, MADE), TRAPPED),
        case("a shape without end", created!(11, SHAPE, -1, ZEROS, ZEROS_LEN, MADE), TRAPPED),
        case("elements out of memory", created!(11, SHAPE, 4, -4, ZEROS_LEN, MADE), TRAPPED),
        case("elements without end", created!(11, SHAPE, 4, ZEROS, -1, MADE), TRAPPED),
        case("a result out of memory", created!(11, SHAPE, 4, ZEROS, ZEROS_LEN, -8), TRAPPED),
        case("a result not aligned", created!(11, SHAPE, 4, ZEROS, ZEROS_LEN, MADE + 4), TRAPPED),
        case("a result over the shape", created!(11, SHAPE, 4, ZEROS, ZEROS_LEN, SHAPE), TRAPPED),
        case("a shape in the elements", deeds::shape_in_the_elements(), INVALID),
        case("a level that there is not", calls!(Import::LogWrite, 9, NAME, 5, LIST, 0), TRAPPED),
        case("a message out of memory", calls!(Import::LogWrite, 2, -5, 5, LIST, 0), TRAPPED),
        case("a message without end", calls!(Import::LogWrite, 2, NAME, -1, LIST, 0), TRAPPED),
        case(
            "a message that is no text",
            calls!(Import::LogWrite, 2, NO_TEXT, 4, LIST, 0),
            TRAPPED,
        ),
        case("fields without end", calls!(Import::LogWrite, 2, NAME, 5, LIST, -1), TRAPPED),
        case("fields not aligned", calls!(Import::LogWrite, 2, NAME, 5, LIST + 3, 1), TRAPPED),
        case(
            "fields over all memory",
            calls!(Import::LogWrite, 2, NAME, 5, ZEROS, 10_000),
            HARMLESS,
        ),
        case("a blob read from beyond its end", deeds::blob_read(), HARMLESS),
        case("more of a row than there is", deeds::top_k(), HARMLESS),
        case("colours that there are not", decodes!(9, MADE), TRAPPED),
        case("a picture out of memory", decodes!(0, -8), TRAPPED),
    ]);
}
