//! Misbehaving plugins in Python, JavaScript and C: each language's runtime between the deed and
//! the host.
//!
//! `plugins/hostile` has one plugin for each of them. A table says how each of its deeds may end,
//! and which instance the next call has where a pipeline lets instances stay: a fresh one after a
//! trap or a limit, the same one after a failure that the runtime reported itself.

use std::thread;

use serde_json::{Value, json};

use crate::support::deeds::{
    End, FAILED, HARMLESS, INVALID, LATE, OUT_OF_MEMORY, TIMEOUT, TRAPPED,
};
use crate::support::server::Server;
use crate::support::setup::Setup;

/// A deed, the ends that it may have, and the instance of the next call.
type Case = (&'static str, &'static [End], Next);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Fresh,
    Same,
}

use Next::{Fresh, Same};

const PYTHON: &[Case] = &[
    ("loop", &[TIMEOUT], Fresh),
    // CPython raises MemoryError, and the host knows why.
    ("memory", &[OUT_OF_MEMORY, TIMEOUT], Fresh),
    ("stubborn", &[TIMEOUT], Fresh),
    ("recurse", &[OUT_OF_MEMORY, TRAPPED, TIMEOUT], Fresh),
    ("nest", &[TRAPPED, TIMEOUT], Fresh),
    ("regex", &[TIMEOUT], Fresh),
    ("print", &[HARMLESS, TIMEOUT], Same),
    ("log", &[HARMLESS, TIMEOUT], Same),
    ("sleep", &[LATE], Fresh),
    ("random", &[TIMEOUT, OUT_OF_MEMORY], Fresh),
    ("fail", &[FAILED], Same),
    ("fail-oddly", &[TRAPPED], Fresh),
    // An exception as any other.
    ("exit", &[FAILED], Same),
    ("exit-at-once", &[TRAPPED], Fresh),
    ("abort", &[TRAPPED], Fresh),
    ("wrong-dtype", &[INVALID], Same),
    ("wrong-shape", &[INVALID], Same),
    ("wrong-type", &[FAILED], Same),
    ("huge-answer", &[INVALID, TIMEOUT], Fresh),
    ("answer-loop", &[TIMEOUT], Fresh),
];

const JAVASCRIPT: &[Case] = &[
    ("loop", &[TIMEOUT], Fresh),
    ("memory", &[OUT_OF_MEMORY, TIMEOUT], Fresh),
    ("stubborn", &[TIMEOUT], Fresh),
    ("recurse", &[FAILED], Same),
    ("regex", &[TIMEOUT], Fresh),
    ("print", &[HARMLESS, TIMEOUT], Same),
    ("log", &[HARMLESS, TIMEOUT], Same),
    ("sleep", &[LATE], Fresh),
    // Nothing is left that could keep the promise, and the engine says so.
    ("pending", &[TRAPPED], Fresh),
    ("microtasks", &[TIMEOUT], Fresh),
    // The event loop ends with the call, although a timer is left.
    ("interval", &[HARMLESS], Same),
    ("random", &[TIMEOUT, OUT_OF_MEMORY], Fresh),
    ("fail", &[FAILED], Same),
    ("fail-oddly", &[TRAPPED], Fresh),
    ("reject", &[FAILED], Same),
    ("wrong-dtype", &[INVALID], Same),
    ("wrong-shape", &[INVALID], Same),
    ("wrong-type", &[FAILED], Same),
    ("huge-answer", &[INVALID, TIMEOUT], Fresh),
    ("answer-loop", &[TIMEOUT], Fresh),
];

const C: &[Case] = &[
    ("loop", &[TIMEOUT], Fresh),
    ("memory", &[OUT_OF_MEMORY, TIMEOUT], Fresh),
    ("arena", &[OUT_OF_MEMORY, TIMEOUT], Fresh),
    ("recurse", &[TRAPPED], Fresh),
    ("print", &[HARMLESS, TIMEOUT], Same),
    ("log", &[HARMLESS, TIMEOUT], Same),
    ("sleep", &[LATE], Fresh),
    ("random", &[TIMEOUT, OUT_OF_MEMORY], Fresh),
    ("fail", &[FAILED], Same),
    ("panic", &[TRAPPED], Fresh),
    ("abort", &[TRAPPED], Fresh),
    ("exit", &[TRAPPED], Fresh),
    ("wild-write", &[TRAPPED], Fresh),
    ("null-call", &[TRAPPED], Fresh),
    ("divide", &[TRAPPED], Fresh),
    ("overwrite", &[TRAPPED], Fresh),
    ("wrong-dtype", &[INVALID], Same),
    ("wrong-shape", &[INVALID], Same),
    ("huge-answer", &[INVALID, TIMEOUT], Fresh),
    ("answer-loop", &[TIMEOUT], Fresh),
];

/// The names of the pipeline whose calls have fresh instances, and of the one whose instances stay.
const MODES: [&str; 2] = ["none", "tenant"];

/// More than the log's budget of both calls of a request, and than the server's own lines.
const LOGGED_BYTES_MAX: usize = 256 << 10;

/// More than the server and two plugins take together.
const RESIDENT_BYTES_MAX: usize = 1 << 30;

/// A server with the plugin of this language as the tenant `bad`, beside a neighbour.
fn deployed(language: &str) -> Server {
    // Engines of Python and JavaScript take long to compile in the profile of the tests.
    let server = Setup::new().flag("--compile-timeout-s", "1800").start();
    server.digits("good");
    server.open_tenant("bad");
    server.plugin("bad", "bad", &format!("hostile-{language}"));
    for mode in MODES {
        let reuse = json!({ "mode": mode, "idle_ms": 600_000, "max_count": 1_000_000 });
        let reuse = if mode == "none" { json!(mode) } else { reuse };
        let mut spec =
            json!({ "pre": "bad", "model": "digits", "post": "bad", "instance_reuse": reuse });
        server.pipeline("bad", mode, &spec);
        // For deeds that wait.
        spec["limits"] = json!({ "timeout_ms": 3000 });
        server.pipeline("bad", &format!("{mode}-hurried"), &spec);
    }
    server
}

/// The calls that the instance of a harmless call has begun.
#[track_caller]
fn calls_of(server: &Server, path: &str) -> u32 {
    let answer = server.data.post(path, b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().parse().unwrap()
}

/// Do every deed in both modes. Fails unless each ends as it may, a neighbour is answered
/// meanwhile, the next call is answered by the instance that it should have, and the server stays
/// within bounds.
fn all_are_contained(language: &str, cases: &[Case]) -> Server {
    let mut server = deployed(language);
    for (index, (deed, ends, next)) in cases.iter().enumerate() {
        for mode in MODES {
            let what = format!("{language}, {mode}: {deed}");
            let pipeline = if ends.contains(&LATE) { &format!("{mode}-hurried") } else { mode };
            let path = format!("/v1/bad/infer/{pipeline}");
            let before = calls_of(&server, &path);
            let logged = server.log().len();
            let answer = thread::scope(|scope| {
                let deed = scope.spawn(|| server.data.post(&format!("{path}?do={deed}"), b""));
                server.assert_reads("good", index % 10);
                deed.join().unwrap()
            });
            let document = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
            let end = (answer.status, document["code"].as_str().unwrap_or_default());
            assert!(ends.contains(&end), "{what}: {end:?}: {:.300}", answer.text());
            let after = calls_of(&server, &path);
            let at_limit = [TIMEOUT, OUT_OF_MEMORY].contains(&end);
            let is_fresh = mode == "none" || *next == Fresh || at_limit;
            let expected = if is_fresh { 1 } else { before + 2 };
            assert_eq!(after, expected, "{what}: the instance of the next call");
            let logged = server.log().len() - logged;
            assert!(logged < LOGGED_BYTES_MAX, "{what}: {logged} bytes were logged");
        }
    }
    // Such a failure would pass for that of a deed.
    assert!(!server.log().contains("there is no deed"), "{}", server.log());
    server.assert_reads_digits("good");
    server.assert_alive();
    let peak = server.peak_resident_bytes();
    assert!(peak < RESIDENT_BYTES_MAX, "{language}: the server grew to {peak} bytes");
    server
}

/// Fails unless integers that JavaScript's numbers cannot hold pass through a plugin with all their
/// digits: those of a request, and labels of int64.
#[track_caller]
fn assert_integers_keep_their_digits(server: &Server) {
    for mode in MODES {
        let path = format!("/v1/bad/infer/{mode}?do=echo");
        let body = r#"{"ids":[9007199254740993,-9007199254740993,18446744073709551615,1],"x":0.5}"#;
        let answer = server.data.post(&path, body.as_bytes());
        let labels = "[9007199254740993,-1]";
        let texts = json!([body, labels, labels]);
        let rest = r#""label":9007199254740993,"flags":[1,0]"#;
        let least = "-9007199254740991";
        let expected = format!(
            r#"{{"body":{body},"labels":{labels},{rest},"texts":{texts},"least":{least},"again":{least}}}"#
        );
        assert_eq!((answer.status, answer.text()), (200, expected), "{mode}");
        let answer = server.data.post(&path, "9".repeat(2000).as_bytes());
        answer.refused(400, "invalid_request", &["an integer of 2000 digits: the limit is 1000"]);
    }
}

#[test]
fn the_deeds_of_each_language_are_contained() {
    let languages = [("python", PYTHON), ("js", JAVASCRIPT), ("c", C)];
    // Side by side: two of the engines take minutes to compile.
    thread::scope(|scope| {
        for (language, cases) in languages {
            let contained = move || {
                let server = all_are_contained(language, cases);
                if language == "js" {
                    assert_integers_keep_their_digits(&server);
                }
            };
            thread::Builder::new().name(language.into()).spawn_scoped(scope, contained).unwrap();
        }
    });
}
