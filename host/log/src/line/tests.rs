//! The content of lines, and that no text in a line can forge another.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct MemoryLog(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(format: LogFormat, log: impl FnOnce()) -> String {
    let kept = MemoryLog::default();
    let queue = Queue::start(kept.clone()).unwrap();
    let layer = LogLayer::new(format, false, &[], queue.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    queue.flush();
    String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
}

fn json(log: impl FnOnce()) -> serde_json::Value {
    let lines = logged(LogFormat::Json, log);
    assert_eq!(lines.matches('\n').count(), 1, "{lines}");
    serde_json::from_str(&lines).unwrap()
}

fn in_a_request(log: impl FnOnce()) {
    let (tenant, id) = ("acme", "7f");
    let span =
        tracing::error_span!("request", request_id = id, tenant, rows = tracing::field::Empty);
    span.record("rows", 3);
    span.in_scope(|| tracing::error_span!("inner").in_scope(log));
}

#[test]
fn a_line_has_its_spans_fields() {
    let log = || in_a_request(|| tracing::warn!(stage = "pre", took = 1.5, "failed: {}", "why"));
    let line = logged(LogFormat::Text, log);
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.ends_with('Z'), "{line}");
    let expected = " WARN gristmill_log::line::tests: failed: why stage=pre took=1.5 \
                    request_id=7f tenant=acme rows=3\n";
    assert_eq!(rest, expected);

    let line = json(log);
    for (name, value) in [
        ("level", "WARN".into()),
        ("target", "gristmill_log::line::tests".into()),
        ("message", "failed: why".into()),
        ("stage", "pre".into()),
        ("took", 1.5.into()),
        ("request_id", "7f".into()),
        ("tenant", "acme".into()),
        ("rows", serde_json::Value::from(3)),
    ] {
        assert_eq!(line[name], value, "{name} of {line}");
    }
}

#[test]
fn no_text_forges_a_line_or_a_field() {
    let forged = "a\" level=ERROR\n2026 ERROR x: y\u{1b}[31m\u{202e}\\\",\"tenant\":\"other";
    let log = || in_a_request(|| tracing::info!(text = forged, shown = %forged, "{forged}"));
    let line = logged(LogFormat::Text, log);
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line}");
    let quoted =
        r#"text="a\" level=ERROR\n2026 ERROR x: y\u{1b}[31m\u{202e}\\\",\"tenant\":\"other""#;
    assert!(line.contains(quoted), "{line}");

    let line = json(log);
    for name in ["message", "text", "shown"] {
        assert_eq!(line[name], forged);
    }
    assert_eq!(line["tenant"], "acme");
}

#[test]
fn texts_are_cut_before_they_are_made() {
    /// Its text never ends.
    struct Endless;
    impl std::fmt::Display for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            loop {
                f.write_str("äöü")?;
            }
        }
    }
    for format in [LogFormat::Text, LogFormat::Json] {
        let log = || tracing::info!(shown = %Endless, text = "x".repeat(5000), "{Endless}");
        let line = logged(format, log);
        assert_eq!(line.matches(" [cut]").count(), 3, "{line}");
        assert!(line.len() < 12_000, "{} bytes", line.len());
    }
}

#[test]
fn a_plugins_fields_are_an_object() {
    let fields = r#"{"texts":"1","tenant":"other"}"#;
    let log = || {
        in_a_request(
            || tracing::info!(target: "plugin", plugin = "hash", fields, "hashed\n\"it\""),
        );
    };
    let line = json(log);
    assert_eq!(line["fields"], serde_json::json!({ "texts": "1", "tenant": "other" }));
    assert_eq!((&line["tenant"], &line["plugin"]), (&"acme".into(), &"hash".into()));
    assert_eq!(line["message"], "hashed\n\"it\"");
    let line = logged(LogFormat::Text, log);
    let end = format!(" plugin: \"hashed\\n\\\"it\\\"\" plugin=hash fields={fields} request_id=7f");
    assert!(line.contains(&end), "{line}");

    // The host's own field of that name is a text.
    assert_eq!(json(|| tracing::info!(fields, "x"))["fields"], fields);
    let log = || tracing::info!(target: "plugin", fields = "x".repeat(20_000), "x");
    assert_eq!(json(log)["fields"], "[cut]");
}

#[test]
fn what_a_span_says_is_not_said_again() {
    let line = logged(LogFormat::Json, || in_a_request(|| tracing::info!(tenant = "b", "x")));
    assert_eq!(line.matches("\"tenant\":").count(), 1, "{line}");
}

#[test]
fn a_plugins_message_is_told_from_fields() {
    let log = || tracing::info!(target: "plugin", plugin = "hash", "done tenant=other");
    let line = logged(LogFormat::Text, log);
    assert!(line.ends_with(" plugin: \"done tenant=other\" plugin=hash\n"), "{line}");
}

#[test]
fn lines_of_the_servers_own_modules_are_its_own() {
    let queue = Queue::start(MemoryLog::default()).unwrap();
    let layer = LogLayer::new(LogFormat::Text, false, &["gristmill", "http::admin"], queue);
    for (target, origin) in [
        ("gristmill", Origin::Own),
        ("gristmill::serve", Origin::Own),
        ("gristmill_serve::pipeline", Origin::Client),
        ("http::admin::audit", Origin::Own),
        ("http", Origin::Client),
        ("log", Origin::Client),
        ("plugin", Origin::Plugin),
    ] {
        assert_eq!(layer.origin_of(target), origin, "{target}");
    }
}
