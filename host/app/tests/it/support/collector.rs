//! A collector of traces (rotel, of PyPI), and the spans that it has received.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::eventually::{eventually, eventually_some};

/// A collector that writes what it receives into a file. It is killed when it is dropped.
pub(crate) struct Collector {
    process: Child,
    grpc: SocketAddr,
    http: SocketAddr,
    directory: TempDir,
}

/// A span as the collector writes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) trace_id: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) status: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The messages of its events.
    pub(crate) events: Vec<String>,
    /// The traces and ids of the spans that it is linked with.
    pub(crate) links: Vec<(String, String)>,
}

/// The name of a protocol in the setting, and the collector's URL for it.
type Protocol = (&'static str, fn(&Collector) -> String);

/// The protocols.
pub(crate) const PROTOCOLS: [Protocol; 2] = [("grpc", Collector::grpc), ("http", Collector::http)];

impl Collector {
    pub(crate) fn start() -> Self {
        let python = std::env::var_os("GRISTMILL_TEST_COLLECTOR").map(PathBuf::from);
        let python = python.expect("GRISTMILL_TEST_COLLECTOR is not set: run cargo xtask test");
        let find = "import os, rotel; print(os.path.dirname(rotel.__file__))";
        let Output { stdout, .. } = Command::new(python).args(["-c", find]).output().unwrap();
        let agent = PathBuf::from(String::from_utf8(stdout).unwrap().trim()).join("rotel-agent");
        let directory = tempfile::tempdir().unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (grpc, http) = (free(), free());
        let [grpc, http] = [grpc, http].map(|listener| listener.local_addr().unwrap());
        let process = Command::new(agent)
            .args(["start", "--exporter", "blackhole", "--debug-log-verbosity", "detailed"])
            .args(["--debug-log", "traces", "--debug-log", "metrics"])
            .args(["--otlp-grpc-endpoint", &grpc.to_string()])
            .args(["--otlp-http-endpoint", &http.to_string()])
            .stdout(File::create(directory.path().join("spans")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let collector = Self { process, grpc, http, directory };
        for address in [grpc, http] {
            eventually("the collector listens", || TcpStream::connect(address).is_ok());
        }
        collector
    }

    /// Its URL for gRPC.
    pub(crate) fn grpc(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// Its URL for HTTP.
    pub(crate) fn http(&self) -> String {
        format!("http://{}", self.http)
    }

    /// All that it has written.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.directory.path().join("spans")).unwrap()
    }

    /// The spans that it has received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let text = self.text();
        let text = text.split("ResourceSpans #").skip(1);
        text.flat_map(|resource| resource.split("\nSpan #").skip(1)).map(Span::read).collect()
    }

    /// The spans of a trace, once one of them has this name.
    #[track_caller]
    pub(crate) fn trace_with(&self, trace_id: &str, name: &str) -> Vec<Span> {
        eventually_some(&format!("{name} in the trace {trace_id}"), || {
            let mut spans = self.spans();
            spans.retain(|span| span.trace_id == trace_id);
            spans.iter().any(|span| span.name == name).then_some(spans)
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Span {
    fn read(text: &str) -> Self {
        let mut span = Self::default();
        let mut part = "";
        let mut link = String::new();
        for line in text.lines().skip(1) {
            let (key, value) = line.split_once(": ").unwrap_or((line, ""));
            let (key, value) = (key.trim(), value.trim().to_owned());
            match (part, key) {
                (_, "Attributes:" | "Events:" | "Links:") => part = key.trim_end_matches(':'),
                ("", "Trace ID") => span.trace_id = value,
                ("", "Parent ID") => span.parent = value,
                ("", "ID") => span.id = value,
                ("", "Name") => span.name = value,
                ("", "Kind") => span.kind = value,
                ("", "Start time") => span.start = value.parse().unwrap(),
                ("", "End time") => span.end = value.parse().unwrap(),
                ("", "Status code") => span.status = value,
                ("Attributes", key) => {
                    let (key, value) = (key.trim_start_matches("-> "), typed(&value));
                    span.attributes.insert(key.to_owned(), value);
                }
                ("Events", "-> message") => span.events.push(typed(&value)),
                ("Links", "-> Trace ID") => link = value,
                ("Links", "-> ID") => span.links.push((link.clone(), value)),
                _ => {}
            }
        }
        span
    }
}

/// The value in `Str(value)` or `Int(value)`.
fn typed(text: &str) -> String {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(text).to_owned()
}
