//! The dashboards and alerts in `host/dashboards`, against a Prometheus that reads a loaded server.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::Setup;

fn dashboards_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards")
}

fn program(name: &str) -> Command {
    let folder = std::env::var_os("GRISTMILL_TEST_PROMETHEUS").map(PathBuf::from);
    let folder = folder.expect("GRISTMILL_TEST_PROMETHEUS is not set: run cargo xtask test");
    Command::new(folder.join(name))
}

/// The dashboards, by their files' names.
fn dashboards() -> Vec<(String, Value)> {
    let files = fs::read_dir(dashboards_folder().join("grafana")).unwrap();
    let dashboard = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).unwrap();
        (file.file_name().into_string().unwrap(), serde_json::from_str(&text).unwrap())
    };
    files.map(|file| dashboard(file.unwrap())).collect()
}

/// The queries of all panels, each with its dashboard and title. Variables stand for all values.
fn queries() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for (file, dashboard) in dashboards() {
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let query = target["expr"].as_str().unwrap();
                let query = query.replace("$__rate_interval", "1m");
                let query = query.replace("$tenant", ".*").replace("$model", ".*");
                queries.push((format!("{file}: {}", panel["title"]), query));
            }
        }
    }
    queries
}

/// A Prometheus that reads a server, with the alerts. It is killed when it is dropped.
struct Prometheus {
    process: Child,
    client: Client,
    _directory: TempDir,
}

impl Prometheus {
    fn start(server: &Server) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = server.metrics.as_ref().unwrap().authority().to_owned();
        let rules = dashboards_folder().join("prometheus/gristmill.rules.yml");
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules.to_str()],
            "scrape_configs": [{
                "job_name": "gristmill",
                "static_configs": [{ "targets": [target] }],
            }],
        });
        // JSON is YAML.
        let file = directory.path().join("prometheus.yml");
        fs::write(&file, config.to_string()).unwrap();
        let address: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = program("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let client = Client::new(&format!("http://{address}"), None);
        let prometheus = Self { process, client, _directory: directory };
        eventually("Prometheus is ready", || prometheus.get("/-/ready").is_some());
        prometheus
    }

    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let request = hyper::Request::builder().uri(path).body(bytes::Bytes::new()).unwrap();
        let answer = self.client.try_send(request).ok()?;
        (answer.status == 200).then_some(answer.body)
    }

    /// The series that a query gives.
    fn query(&self, query: &str) -> Vec<Value> {
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
        let answer = self.client.get(&format!("/api/v1/query?{query}")).ok();
        answer["data"]["result"].as_array().unwrap().clone()
    }

    fn alerts(&self) -> Value {
        self.client.get("/api/v1/rules").ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn promtool_accepts_the_alerts_and_each_says_what_to_do() {
    let rules = dashboards_folder().join("prometheus/gristmill.rules.yml");
    let checked = program("promtool").args(["check", "rules"]).arg(&rules).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let text = fs::read_to_string(&rules).unwrap();
    let alerts = text.matches("- alert:").count();
    assert!(alerts >= 10);
    for part in ["summary:", "description:", "severity:"] {
        assert_eq!(text.matches(part).count(), alerts, "{part}");
    }
}

#[test]
fn promtool_accepts_the_metrics() {
    let server = Server::start();
    server.digits("acme");
    server.assert_reads_digits("acme");
    let text = server.admin.get("/metrics").text();
    let mut command = program("promtool");
    let checking = command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = checking.spawn().unwrap();
    std::io::Write::write_all(&mut checking.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let checked = checking.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn dashboards_load_without_edits() {
    let all = dashboards();
    assert_eq!(all.len(), 6);
    let mut uids = BTreeSet::new();
    for (file, dashboard) in &all {
        assert!(uids.insert(dashboard["uid"].as_str().unwrap()), "{file}");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        assert!(variables.iter().any(|variable| variable["type"] == "datasource"), "{file}");
        for panel in dashboard["panels"].as_array().unwrap() {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{file}");
            assert_ne!(panel["description"], "", "{file}: {}", panel["title"]);
        }
    }
}

#[test]
fn every_panel_has_data_from_a_loaded_server() {
    let server = Setup::new().flag("--metrics-listen", "127.0.0.1:0").start();
    server.ranker("acme");
    server.digits("globex");
    server.hostile("mallory");
    let prometheus = Prometheus::start(&server);
    let mut timeout_ms = 10_000;
    let mut send = || {
        // Another release each time.
        timeout_ms += 1;
        let limits = json!({ "timeout_ms": timeout_ms });
        server.pipeline("globex", "digits", &processor("digits", limits));
        server.assert_ranks("acme");
        server.assert_reads("globex", 3);
        server.data.post("/v1/globex/infer/digits", b"nothing");
        server.data.post("/v1/mallory/infer/hostile?do=panic", b"");
        server.data.post("/v1/nobody/infer", b"");
    };
    let missing = || {
        let queries = queries().into_iter();
        let missing = queries.filter(|(_, query)| {
            let points = prometheus.query(query);
            let is_number = |series: &Value| series["value"][1] != "NaN";
            !points.iter().any(is_number)
        });
        missing.collect::<Vec<_>>()
    };
    eventually("every panel has data", || {
        send();
        let missing = missing();
        if !missing.is_empty() {
            // Shown if it never comes.
            println!("no data: {missing:#?}");
        }
        missing.is_empty()
    });
    let rules = prometheus.alerts();
    for group in rules["data"]["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["lastError"].as_str().unwrap_or_default(), "", "{rule}");
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
}
