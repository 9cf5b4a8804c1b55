//! WASI: what plugins get of it, what they do not get, and that it costs only themselves.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::server::Server;

/// A server whose tenant `acme` has the plugin `hostile-wasi` in two pipelines. `patient` has so
/// much time that only other limits end a call.
fn server() -> Server {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    server.plugin("acme", "hostile-wasi", "hostile-wasi");
    let limits = json!({ "timeout_ms": 3000 });
    server.pipeline("acme", "wasi", &processor("hostile-wasi", limits));
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    server.pipeline("acme", "patient", &processor("hostile-wasi", limits));
    server
}

fn done_in(server: &Server, pipeline: &str, deed: &str) -> TestAnswer {
    server.data.post(&format!("/v1/acme/infer/{pipeline}?do={deed}"), b"")
}

fn done(server: &Server, deed: &str) -> TestAnswer {
    done_in(server, "wasi", deed)
}

#[track_caller]
fn answered(server: &Server, deed: &str, expected: &str) {
    let answer = done(server, deed);
    assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{deed}");
}

#[test]
fn clocks_and_random_numbers_are_there() {
    let server = server();
    answered(&server, "nap", "awake");
    answered(&server, "polls", "awake");
    answered(&server, "random", "1048576");
}

#[test]
fn nothing_of_the_host_can_be_seen() {
    answered(&server(), "looks", "found: ");
}

#[test]
fn written_lines_are_lines_of_the_log() {
    let server = server();
    answered(&server, "lines", "true");
    let log = server.log_with("unended");
    let line = |text: &str| {
        log.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {log}"))
    };
    for (text, level) in [("one line", "INFO"), ("second line", "INFO"), ("unended", "WARN")] {
        let line = line(text);
        assert!(line.contains(level), "{line}");
        for field in ["tenant=acme", "pipeline=wasi", "plugin=hostile-wasi"] {
            assert!(line.contains(field), "{field}: {line}");
        }
    }
}

#[test]
fn sleeping_takes_time_and_no_processor() {
    let server = server();
    // The limit of 250 ms of CPU time does not end it; the request's deadline does.
    done(&server, "sleep").refused(504, "deadline_exceeded", &["3000 ms"]);
}

/// The plugin calls of one tenant that run at the same time.
fn places() -> usize {
    8 * std::thread::available_parallelism().unwrap().get()
}

#[test]
fn sleeping_calls_of_a_tenant_are_bounded_and_hold_up_no_other() {
    let server = server();
    server.digits("globex");
    std::thread::scope(|scope| {
        // So many that enough of them sleep at the same time, also where they begin slowly.
        let sleepers: Vec<_> =
            (0..4 * places()).map(|_| scope.spawn(|| done(&server, "sleep"))).collect();
        server.assert_reads_digits("globex");
        answered(&server, "looks", "found: ");
        let ends: Vec<_> = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap()).collect();
        let (refused, late): (Vec<_>, Vec<_>) = ends.iter().partition(|end| end.status == 429);
        assert!(!refused.is_empty(), "sleepers have all places of the tenant");
        for end in refused {
            end.refused(429, "tenant_busy", &["sleep", &(places() * 3 / 4).to_string()]);
            assert_eq!(end.header("retry-after"), "1");
        }
        assert!(late.iter().all(|end| end.status == 504));
    });
}

#[test]
fn calls_that_sleep_wait_for_their_turn() {
    let server = server();
    // Twice as many as sleep at the same time.
    std::thread::scope(|scope| {
        for _ in 0..places() / 2 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let answer = done_in(&server, "patient", "nap");
                    assert_eq!((answer.status, answer.text().as_str()), (200, "awake"));
                }
            });
        }
    });
}

#[test]
fn endless_work_through_wasi_is_charged() {
    let server = server();
    for deed in ["endless-polls", "endless-clock", "endless-random"] {
        let answer = done(&server, deed);
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        let code = problem["code"].as_str().unwrap_or_default();
        // Random numbers may reach the limit of memory first.
        assert!(["plugin_timeout", "plugin_out_of_memory"].contains(&code), "{deed}: {code}");
        answered(&server, "looks", "found: ");
    }
}

#[test]
fn models_are_for_handlers_and_none_is_brought_along() {
    let server = server();
    let refused =
        "ErrorCode::NotFound: only a handler runs models: this call is not that of `handle`";
    answered(&server, "graph", refused);
    let long = "ErrorCode::NotFound: the pipeline has no model with a name of 1048576 bytes: names \
                have at most 64";
    answered(&server, "long-graph", long);
    let answer = done(&server, "own-graph");
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(
        text.starts_with("ErrorCode::UnsupportedOperation: a plugin loads no models"),
        "{text}"
    );
}

#[test]
fn what_the_host_makes_for_wasi_is_bounded() {
    let server = server();
    let memory = "plugin_out_of_memory";
    for (deed, code, named) in [
        ("too-many-polls", memory, "waiting for 1024 events at a time (2000 wanted)"),
        ("poll-nothing", "plugin_trapped", "empty poll list"),
        ("pollables", memory, "handles"),
        ("headers", memory, "plugin_held_bytes"),
        ("paths", memory, "plugin_held_bytes"),
        ("bodies", memory, "plugin_held_bytes"),
        ("graphs", memory, "handles"),
        ("nn-tensors", memory, "plugin_held_bytes"),
        ("nn-dimensions", memory, "plugin_held_bytes"),
        ("much-random", memory, "8589934592"),
        ("unasked-write", "plugin_trapped", "more bytes than check-write allowed"),
        ("zeroes", "plugin_trapped", "zeroes"),
        ("exit", "plugin_trapped", "plugin called exit with status 1"),
    ] {
        let answer = done_in(&server, "patient", deed);
        answer.refused(500, code, &[named]);
        answered(&server, "looks", "found: ");
    }
}

#[test]
fn floods_of_lines_stay_within_the_log_budget() {
    let server = server();
    for deed in ["flood", "flood-of-lines"] {
        let before = server.log().len();
        let answer = done(&server, deed);
        assert!([200, 504].contains(&answer.status), "{}", answer.text());
        let logged = server.log().len() - before;
        assert!(logged < 256 << 10, "{deed}: {logged} bytes were logged");
    }
}
