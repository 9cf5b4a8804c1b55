//! Guests that break the canonical ABI or run into a limit: each ends as an error of its own call, and other tenants are served.
//!
//! What a toolchain's plugin can do wrong is in `bad_plugins`; these are put together by hand ([`modules`]).
//!
//! [`modules`]: crate::modules

mod deeds;

use serde_json::{Value, json};

use self::deeds::{honest_post, honest_pre};
use crate::modules::{
    ANSWER, ANY, BODY, Guest, Import, LIST, MADE, NAME, NO_TEXT, RUN, SHAPE, ZEROS, ZEROS_LEN,
    honest, make_tensor, numbering, prepared, responded, store,
};
use crate::server::Server;

/// A status and a code; no code where the answer is the plugin's.
type End = (u16, &'static str);

const HARMLESS: End = (200, "");
const TRAPPED: End = (500, "plugin_trapped");
const INVALID: End = (500, "plugin_invalid_output");
const FAILED: End = (500, "plugin_failed");
const OUT_OF_MEMORY: End = (500, "plugin_out_of_memory");
const TIMEOUT: End = (504, "plugin_timeout");
/// The upload is refused.
const UNLOADABLE: End = (422, "invalid_plugin");

struct Case {
    name: &'static str,
    guest: Guest,
    end: End,
}

fn case(name: &'static str, guest: Guest, end: End) -> Case {
    Case { name, guest, end }
}

/// More than the server and one call's memory, tensors and pictures take together.
const RESIDENT_BYTES_MAX: usize = 1 << 30;

/// Upload and call each guest, and a neighbour after each. Guests that can share a module do: one is compiled.
fn run(cases: impl IntoIterator<Item = Case>) {
    let mut server = Server::start();
    server.digits("good");
    server.hostile("bad");
    server.put("tenants/bad/plugins/numbering", &numbering().file());
    for (role, pre) in [("pre", "pre"), ("post", "numbering")] {
        let mut spec = json!({ "pre": pre, "model": "digits", "post": "hostile" });
        spec[role] = role.into();
        // Until the first of its kind comes.
        server.plugin("bad", role, "hostile");
        server.pipeline("bad", role, &spec);
    }
    let mut modules: Vec<(Guest, Vec<(&str, End)>)> = Vec::new();
    for Case { name, guest, end } in cases {
        match modules.iter_mut().find_map(|(module, ends)| module.takes_in(&guest).then_some(ends))
        {
            Some(ends) => ends.push((name, end)),
            None => modules.push((guest, vec![(name, end)])),
        }
    }
    for (module, ends) in modules {
        assert_eq!(module.deeds(), ends.len());
        let role = module.role();
        let put =
            server.admin.put(&format!("/admin/v1/tenants/bad/plugins/{role}"), &module.file());
        let mut refused = (!matches!(put.status, 200 | 201)).then_some(put);
        for (index, (name, end)) in ends.into_iter().enumerate() {
            let answer = refused.take().unwrap_or_else(|| {
                let body = vec![b' '; index + 1];
                server.data.post(&format!("/v1/bad/infer/{role}"), &body)
            });
            let document = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
            let found = (answer.status, document["code"].as_str().unwrap_or_default());
            assert_eq!(found, end, "{name}: {}", answer.text());
            if end == TRAPPED {
                let detail = document["detail"].as_str().unwrap();
                assert!(detail.starts_with(role), "{name}: {detail}");
            }
            server.assert_reads("good", index % 10);
        }
    }
    server.assert_alive();
    let peak = server.peak_resident_bytes();
    assert!(peak < RESIDENT_BYTES_MAX, "the server grew to {peak} bytes");
}

/// Put `value` at `address` into an honest preprocessor's answer.
macro_rules! prepared_with {
    ($address:expr, $value:expr) => {
        Guest::pre(|code| {
            honest(code);
            store(code, $address, $value);
            code.i32_const(ANSWER);
        })
    };
}

/// Put `value` at `address` into an honest postprocessor's answer.
macro_rules! responded_with {
    ($address:expr, $value:expr) => {
        Guest::post(|code| {
            responded(code);
            store(code, $address, $value);
            code.i32_const(ANSWER);
        })
    };
}

/// An honest preprocessor that returns this address.
macro_rules! returns {
    ($address:expr) => {
        Guest::pre(|code| {
            honest(code);
            code.i32_const($address);
        })
    };
}

/// A preprocessor that fails, in this way and with this text.
macro_rules! failed_with {
    ($kind:expr, $text:expr, $len:expr) => {
        Guest::pre(|code| {
            store(code, ANSWER, 1);
            store(code, ANSWER + 4, $kind);
            store(code, ANSWER + 8, $text);
            store(code, ANSWER + 12, $len);
            code.i32_const(ANSWER);
        })
    };
}

/// A postprocessor with this list of headers.
macro_rules! headers {
    ($list:expr, $len:expr) => {
        Guest::post(|code| {
            responded(code);
            store(code, ANSWER + 16, $list);
            store(code, ANSWER + 20, $len);
            code.i32_const(ANSWER);
        })
    };
}

/// A preprocessor that calls a function of the host with these words first.
macro_rules! calls {
    ($import:expr, $($word:expr),*) => {
        Guest::pre(|code| {
            $(code.i32_const($word);)*
            code.call($import.index());
            honest_pre(code);
        })
    };
}

/// A preprocessor that decodes its request's body.
macro_rules! decodes {
    ($color:expr, $result:expr) => {
        Guest::pre(|code| {
            code.local_get(BODY).i32_const($color).i32_const(1).i32_const($result);
            code.call(Import::PixelsDecode.index());
            honest_pre(code);
        })
    };
}

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

/// A preprocessor that creates a tensor of these six words and answers with it.
macro_rules! created {
    ($($word:expr),*) => {
        Guest::pre(|code| {
            $(code.i32_const($word);)*
            code.call(Import::TensorCreate.index());
            prepared(code);
            code.i32_const(ANSWER);
        })
    };
}

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
        // Its own constants are written over, and no tensor has the shape that they have become.
        case(
            "the same again",
            Guest::pre(honest_pre).realloc(|c| {
                c.i32_const(NAME);
            }),
            TRAPPED,
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
