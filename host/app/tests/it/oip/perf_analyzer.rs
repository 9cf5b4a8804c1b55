//! The Open Inference Protocol under perf_analyzer, its standard load client. The measurements are
//! short, so their figures vary. The tests check only that it runs and that its figures add up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::deploy::ranker_body;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const KEY: &str = "the-key-of-acme-1";
const RANKER: [&str; 4] = ["-m", "ranker", "--shape", "input:32"];
const CONCURRENCY: [&str; 2] = ["--concurrency-range", "4"];
/// Columns that it reports only with the statistics extension, in microseconds.
const SERVER_COLUMNS: [&str; 4] =
    ["Server Queue", "Server Compute Input", "Server Compute Infer", "Server Compute Output"];

/// A server where callers without a key are `acme`, which has the model and the pipelines `ranker`
/// and `digits`.
fn open_server() -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.ranker("acme");
    server.digits_for("acme");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["ranker"] }));
    server
}

fn http(server: &Server) -> [&str; 4] {
    ["-i", "http", "-u", server.data.address().trim_start_matches("http://")]
}

fn grpc(server: &Server) -> [&str; 4] {
    ["-i", "grpc", "-u", &server.grpc]
}

/// One load of a report: its figures by column.
type Row = BTreeMap<String, String>;

/// Fails unless perf_analyzer succeeds and reports requests that were answered, their latency and
/// the server's own figures, for every load that it was told to make. Returns its rows, which are
/// ordered by throughput: a load is found by [`row_of`].
#[track_caller]
fn measure(arguments: &[&[&str]]) -> Vec<Row> {
    let path = std::env::var_os("GRISTMILL_TEST_PERF_ANALYZER").map(PathBuf::from);
    let path = path.unwrap_or_default();
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.csv");
    let run = Command::new(&path)
        .args(arguments.concat())
        .args(["--measurement-interval", "500", "--max-trials", "10", "-s", "900", "-f"])
        .arg(&report)
        .output()
        .unwrap_or_else(|error| {
            panic!("GRISTMILL_TEST_PERF_ANALYZER is {path:?}: {error}: run cargo xtask test")
        });
    let (stdout, failed) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{arguments:?}: {}\n{stdout}\n{failed}", run.status);
    let report = fs::read_to_string(&report).unwrap();
    let mut lines = report.lines().map(|line| line.split(',').map(str::to_owned));
    let columns: Vec<_> = lines.next().unwrap().collect();
    let rows: Vec<Row> = lines.map(|row| columns.iter().cloned().zip(row).collect()).collect();
    assert!(!rows.is_empty(), "{report}");
    for row in &rows {
        let figure = |column: &str| {
            let figure = row.get(column).and_then(|figure| figure.parse::<f64>().ok());
            figure.unwrap_or_else(|| panic!("no {column:?} in:\n{report}"))
        };
        for column in ["Inferences/Second", "p50 latency", "Server Compute Infer"] {
            assert!(figure(column) > 0.0, "{column}: {report}");
        }
        assert!(figure("p99 latency") >= figure("p50 latency"), "{report}");
        // In whole microseconds, of which waiting and copying may take none: they only have to be
        // there.
        for column in SERVER_COLUMNS {
            figure(column);
        }
    }
    rows
}

/// The row of the load that has this value in this column.
#[track_caller]
fn row_of<'a>(rows: &'a [Row], column: &str, value: f64) -> &'a Row {
    let row = rows.iter().find(|row| row[column].parse() == Ok(value));
    row.unwrap_or_else(|| panic!("no row with {column} {value} in {rows:?}"))
}

/// Fails unless the server says that it ran the ranker.
#[track_caller]
fn assert_counted(server: &Server) {
    let statistics = server.data.get("/v2/models/ranker/stats").ok();
    let inferences = statistics["model_stats"][0]["inference_count"].as_u64().unwrap();
    assert!(inferences > 0, "{statistics}");
}

/// A file for `--input-data` with these requests to a pipeline.
fn input_data(directory: &Path, requests: &[Value]) -> String {
    let file = directory.join("data.json");
    let data: Vec<_> = requests.iter().map(|request| json!({ "REQUEST": request })).collect();
    fs::write(&file, json!({ "data": data }).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A BYTES element in the form that perf_analyzer needs: base64 of its length and its bytes.
fn element(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let mut text = String::new();
    for chunk in [&length[..], bytes].concat().chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for index in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * index)) as usize % 64];
            text.push(if index > chunk.len() { '=' } else { digit.into() });
        }
    }
    text
}

#[test]
fn closed_loops_with_batches_of_1_and_8() {
    let server = open_server();
    for protocol in [http(&server), grpc(&server)] {
        for batch in ["1", "8"] {
            measure(&[&protocol, &RANKER, &CONCURRENCY, &["-b", batch]]);
        }
    }
    assert_counted(&server);
}

#[test]
fn open_loops_at_a_constant_and_a_poisson_rate() {
    let server = open_server();
    for protocol in [http(&server), grpc(&server)] {
        for distribution in ["constant", "poisson"] {
            let rate = ["--request-rate-range", "100", "--request-distribution", distribution];
            row_of(&measure(&[&protocol, &RANKER, &rate]), "Request Rate", 100.0);
        }
    }
    assert_counted(&server);
}

#[test]
fn one_run_over_several_concurrencies_and_asynchronous_calls() {
    let server = open_server();
    for protocol in [http(&server), grpc(&server)] {
        let loads = ["--async", "--concurrency-range", "1:4:3"];
        let rows = measure(&[&protocol, &RANKER, &loads]);
        for concurrency in [1.0, 4.0] {
            row_of(&rows, "Concurrency", concurrency);
        }
        assert_eq!(rows.len(), 2, "{rows:?}");
    }
}

#[test]
fn a_stream_and_compressed_messages() {
    let server = open_server();
    measure(&[&grpc(&server), &RANKER, &CONCURRENCY, &["--streaming"]]);
    for algorithm in ["gzip", "deflate"] {
        let compressed = ["--grpc-compression-algorithm", algorithm];
        measure(&[&grpc(&server), &RANKER, &CONCURRENCY, &compressed]);
    }
}

#[test]
fn tensors_in_json() {
    let server = open_server();
    let formats = ["--input-tensor-format", "json", "--output-tensor-format", "json"];
    measure(&[&http(&server), &RANKER, &CONCURRENCY, &["-b", "8"], &formats]);
}

#[test]
fn a_key_goes_in_a_header() {
    let server = Server::start();
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["ranker"] }));
    let key = format!("authorization:Bearer {KEY}");
    measure(&[&http(&server), &RANKER, &CONCURRENCY, &["-H", &key]]);
}

#[test]
fn pipelines_take_their_requests_from_a_file() {
    let server = open_server();
    let directory = tempfile::tempdir().unwrap();
    let text = ranker_body(&files::ranker_golden()[0].0).to_string();
    let rankings = [json!({ "content": [text], "shape": [1] })];
    let picture =
        |digit| json!({ "content": { "b64": element(&files::digit(digit)) }, "shape": [1] });
    let pictures: Vec<_> = (0..10).map(picture).collect();
    for protocol in [http(&server), grpc(&server)] {
        for (model, requests) in
            [("pipeline:ranker", &rankings[..]), ("pipeline:digits", &pictures[..])]
        {
            let data = input_data(directory.path(), requests);
            measure(&[&protocol, &["-m", model, "--input-data", &data], &CONCURRENCY]);
        }
    }
}
