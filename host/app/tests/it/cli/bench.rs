//! `gristmill bench`: what it measures, and what it says when it cannot.

mod explain;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::tls::Authority;

/// The flags of a short measurement.
const SHORT: [&str; 4] = ["--duration", "1", "--warm-up", "0"];

fn bench(cli: &Cli, arguments: &[&str]) -> Value {
    let all: Vec<&str> = [&["bench"], arguments, &SHORT].concat();
    cli.json(&all)
}

#[test]
fn a_closed_loop_measures_answers_and_times() {
    let server = Server::with_acme();
    let cli = Cli::new();
    let body = cli.write("seven.png", files::digit(7));
    let url = format!("{}/v1/acme/infer/digits", server.data.address());
    let saved = cli.folder().join("saved.json");
    let body = body.to_str().unwrap();
    let document =
        bench(&cli, &[&url, "--body", body, "-c", "4", "--save", saved.to_str().unwrap()]);
    let measured = &document["measured"][0];
    assert_eq!(measured["connections"], 4);
    let number = |part: &str| measured[part].as_f64().unwrap();
    assert!(number("answered") > 0.0 && number("per_second") > 0.0, "{measured}");
    assert_eq!(measured["errors"], Value::Null, "{measured}");
    let times = &measured["latency_us"];
    let [p50, p99, max] = ["p50", "p99", "max"].map(|part| times[part].as_u64().unwrap());
    assert!(p50 > 0 && p50 <= p99 && p99 <= max, "{times}");
    assert_eq!(measured["seconds"][0]["answered"], measured["answered"]);
    // The server has counted the same requests, and those after the end.
    let counted = server.admin.get("/admin/v1/usage").ok();
    assert!(counted["items"][0]["requests"].as_f64() >= Some(number("answered")), "{counted}");
    let kept: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    assert_eq!(kept["measured"][0]["answered"], measured["answered"]);
}

#[test]
fn models_are_inferred_by_their_description() {
    let server = Server::with_acme();
    let url = format!("{}/v1/acme/v2/models/ranker", server.data.address());
    let document = bench(&Cli::new(), &[&url, "--rows", "8"]);
    assert_eq!(document["measured"][0]["errors"], Value::Null, "{document}");
    let usage = server.admin.get("/admin/v1/usage").ok();
    let used = &usage["items"][0];
    assert_eq!(used["rows"].as_u64(), used["requests"].as_u64().map(|count| 8 * count), "{used}");
}

/// Measure the model `ranker` over gRPC and HTTP, for a tenant with a key.
fn measure_ranker(server: &Server, cli: &Cli, schemes: [&str; 2]) {
    const KEY: &str = "the-key-of-acme-1";
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["ranker"] }));
    let [grpc, http] = schemes;
    let grpc = format!("{grpc}://{}/ranker", server.grpc);
    let http = format!("{http}://{}/v2/models/ranker", server.data.authority());
    let closed = ["-c", "4", "--threads", "2"];
    let open = ["--rate", "200", "-c", "4", "--threads", "2"];
    for (url, pace) in [(&grpc, &closed[..]), (&grpc, &open), (&http, &closed), (&http, &open)] {
        let document = bench(cli, &[&[url, "--rows", "8", "--key", KEY], pace].concat());
        let measured = &document["measured"][0];
        assert_eq!(measured["errors"], Value::Null, "{url}: {measured}");
        assert!(measured["answered"].as_u64() > Some(10), "{url}: {measured}");
    }
    let usage = server.admin.get("/admin/v1/usage").ok();
    let used = &usage["items"][0];
    assert_eq!(used["rows"].as_u64(), used["requests"].as_u64().map(|count| 8 * count), "{used}");

    let refused = cli.refused(&["bench", &grpc, "--rows", "8", "--key", "another-key-of-acme"]);
    assert!(refused.contains("\"ranker\" is not described"), "{refused}");
    assert!(refused.contains("gRPC 7"), "{refused}");
}

#[test]
fn calls_of_grpc_are_measured() {
    measure_ranker(&Server::start(), &Cli::new(), ["grpc", "http"]);
}

#[test]
fn requests_over_tls_are_measured() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    let cli = Cli::new().with("GRISTMILL_CA_FILE", authority.ca().to_str().unwrap());
    measure_ranker(&server, &cli, ["grpcs", "https"]);
}

#[test]
fn errors_are_counted_by_their_status() {
    let server = Server::with_acme();
    let url = format!("{}/v1/nobody/infer", server.data.address());
    let document = bench(&Cli::new(), &[&url, "--method", "POST", "--rate", "50"]);
    let measured = &document["measured"][0];
    assert_eq!(measured["rate"], 50.0);
    assert!(measured["errors"]["401"].as_u64() > Some(10), "{measured}");
    // An empty message names no model, and its caller has no key.
    let cli = Cli::new();
    let empty = cli.write("empty", "");
    let url = format!("grpc://{}/inference.GRPCInferenceService/ModelInfer", server.grpc);
    let document = bench(&cli, &[&url, "--body", empty.to_str().unwrap()]);
    let measured = &document["measured"][0];
    assert!(measured["errors"]["gRPC 16"].as_u64() > Some(10), "{measured}");
}

#[test]
fn several_targets_are_mixed_by_their_weights() {
    let server = Server::with_acme();
    let cli = Cli::new();
    cli.write("seven.png", files::digit(7));
    let address = server.data.address();
    let targets = format!(
        "[[target]]\nurl = \"{address}/v1/acme/infer/digits\"\nbody = \"seven.png\"\n\
         [[target]]\nurl = \"{address}/livez\"\nweight = 3\n"
    );
    let targets = cli.write("targets.toml", targets);
    let document = bench(&cli, &["--targets", targets.to_str().unwrap(), "-c", "2"]);
    let measured = &document["measured"][0];
    assert_eq!(measured["errors"], Value::Null, "{measured}");
    let usage = server.admin.get("/admin/v1/usage").ok();
    let inferred = usage["items"][0]["requests"].as_f64().unwrap();
    let share = inferred / measured["answered"].as_f64().unwrap();
    assert!(share > 0.1 && share < 0.45, "{share}");
}

/// A server that takes one connection and answers at once. Returns its URL and the lines of the
/// requests.
fn recording() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
            let is_end = line.is_empty();
            if sender.send(line).is_err() {
                return;
            }
            if is_end
                && stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err()
            {
                return;
            }
        }
    });
    (url, lines)
}

#[test]
fn a_key_goes_only_to_the_server_that_the_command_names() {
    const KEY: &str = "the-key-of-acme-1";
    let server = Server::start();
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["ranker"] }));
    let (other, lines) = recording();
    let cli = Cli::new().with("GRISTMILL_API_KEY", KEY);
    let address = server.data.address();
    let write = |file: &str, url: &str| {
        let path = cli.write(file, format!("[[target]]\nurl = \"{url}\"\n"));
        path.to_str().unwrap().to_owned()
    };
    let own_targets = write("own.toml", &format!("{address}/v2/models/ranker"));
    let foreign = write("foreign.toml", &other);
    let errors = |arguments: &[&str]| {
        let document = bench(&cli, &[arguments, &["--rate", "50", "-c", "1"]].concat());
        document["measured"][0]["errors"].clone()
    };
    assert_eq!(errors(&["--targets", &own_targets, address]), Value::Null);
    assert_ne!(errors(&["--targets", &own_targets]), Value::Null);
    assert_eq!(errors(&["--targets", &foreign, address]), Value::Null);
    let lines: Vec<_> = lines.try_iter().collect();
    assert!(lines.iter().any(|line| line.starts_with("GET / ")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains(KEY)), "{lines:?}");

    let refused = Cli::new().refused(&["bench", "--targets", &own_targets, "--key", KEY]);
    assert!(refused.contains("--key is given, and no URL"), "{refused}");
    let refused = Cli::new().refused(&["bench", "--targets", &own_targets, address]);
    assert!(refused.contains("URL is given, and no key"), "{refused}");
}

/// A server that takes one connection and answers at once, but not its third request: that takes
/// `stall`. Returns its URL.
fn stalling(stall: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for number in 1.. {
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            if number == 3 {
                thread::sleep(stall);
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    });
    url
}

#[test]
fn requests_that_wait_for_a_connection_are_measured_from_their_time() {
    let url = stalling(Duration::from_millis(500));
    let arguments = [&*url, "--rate", "100", "--arrivals", "constant", "-c", "1"];
    let document = bench(&Cli::new(), &arguments);
    let measured = &document["measured"][0];
    // About 50 requests fall into the stall. Their times are spread from 0 to 500 ms, so a quarter
    // of all 100 took 250 ms or longer. A client that forgets them sees one slow request.
    let times = &measured["latency_us"];
    assert!(times["max"].as_u64() >= Some(500_000), "{measured}");
    assert!(times["p90"].as_u64() >= Some(250_000), "{measured}");
}

#[test]
fn a_matrix_has_a_row_for_each_number_of_connections_and_a_picture() {
    let server = Server::with_acme();
    let cli = Cli::new();
    let url = format!("{}/livez", server.data.address());
    let picture = cli.folder().join("load.svg");
    let plot = picture.to_str().unwrap();
    let document = bench(&cli, &[&url, "--mode", "matrix", "--plot", plot]);
    let connections: Vec<_> = document["measured"]
        .as_array()
        .unwrap()
        .iter()
        .map(|measured| &measured["connections"])
        .collect();
    assert_eq!(connections, [1, 4, 16, 64, 256]);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.matches("<circle").count() == 15, "{svg}");
}

#[test]
fn a_sustained_rate_meets_its_objective() {
    let server = Server::with_acme();
    let url = format!("{}/livez", server.data.address());
    let arguments = [&*url, "--mode", "sustained", "--p99-ms", "1000"];
    let document = bench(&Cli::new(), &arguments);
    let best = document["measured"].as_array().unwrap().last().unwrap();
    assert!(best["latency_us"]["p99"].as_u64() <= Some(1_000_000), "{best}");
    assert!(best["rate"].as_f64() > Some(1.0), "{best}");
}

#[test]
fn two_measurements_are_compared() {
    let measured = |answered: [u64; 6]| {
        let second = |answered: u64| json!({ "answered": answered, "p50": 100, "p99": 900 });
        let latency = json!({
            "mean": 100.0, "p50": 100, "p90": 100, "p95": 100, "p99": 900, "p999": 900, "max": 900,
        });
        let measured = json!({
            "connections": 16, "duration_s": 6.0, "answered": 6000, "per_second": 1000.0,
            "latency_us": latency, "client_cpu_us": 9.0, "seconds": answered.map(second),
        });
        json!({ "format": 1, "version": "0.1.0", "what": "x", "measured": [measured] }).to_string()
    };
    let cli = Cli::new();
    cli.write("before.json", measured([1000, 1010, 990, 1005, 995, 1000]));
    cli.write("same.json", measured([1004, 1001, 994, 1003, 992, 1006]));
    cli.write("after.json", measured([1200, 1210, 1190, 1205, 1195, 1200]));
    let path = |name: &str| cli.folder().join(name).to_str().unwrap().to_owned();
    let compare = |after: &str| cli.json(&["bench", "compare", &path("before.json"), &path(after)]);
    let differs = compare("after.json");
    assert_eq!(
        (&differs[0]["figure"], &differs[0]["is_noise"]),
        (&"answers a second".into(), &false.into())
    );
    assert!((differs[0]["ratio"].as_f64().unwrap() - 1.2).abs() < 0.01, "{differs}");
    assert_eq!(differs[1]["is_noise"], true, "{differs}");
    assert_eq!(compare("same.json")[0]["is_noise"], true);
    let text = cli.ok(&["bench", "compare", &path("before.json"), &path("after.json")]);
    assert!(text.contains("differs") && text.contains("noise"), "{text}");
    cli.write("other.json", "{}");
    let error = cli.refused(&["bench", "compare", &path("before.json"), &path("other.json")]);
    assert!(error.contains("is not a file of gristmill bench --save"), "{error}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let cli = Cli::new();
    for (arguments, named) in [
        (&["ftp://127.0.0.1/"][..], &["\"ftp://127.0.0.1/\" is not a URL", "grpc://"][..]),
        (&["http://127.0.0.1:9/"], &["cannot connect to the server"]),
        (&["http://127.0.0.1:9/", "--body", "none.png"], &["cannot read none.png"]),
        (&["http://127.0.0.1:9/", "--rate", "0"], &["--rate is 0", "0.1 to 10000000"]),
        (&["http://127.0.0.1:9/", "--duration", "0.5"], &["--duration is 500ms", "1 second"]),
        (&["http://127.0.0.1:9/", "--header", "a"], &["\"a\"", "\"name: value\""]),
    ] {
        let error = cli.refused(&[&["bench"], arguments].concat());
        named.iter().for_each(|named| assert!(error.contains(named), "{arguments:?}: {error}"));
    }
}
