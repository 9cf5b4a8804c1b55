//! The admin API and the Open Inference Protocol, tried with calls that schemathesis makes from
//! their descriptions. Each answer must have a status, a content type, headers and a document that
//! the description states. Calls that break the description must be refused, and no call may be
//! answered with 5xx.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::files;
use crate::support::scores::{Score, note};
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;
use crate::support::soak::times;

const KEY: &str = "the-key-of-acme-1";

/// A server with all that tests/schemathesis/schemathesis.toml names.
pub(crate) fn server() -> Server {
    let server = Server::start();
    server.put_json("tenants/acme", &json!({ "api_keys": [{ "name": "ci", "key": KEY }] }));
    server.digits_for("acme");
    server.open_tenant("other");
    server.put_json("tokens/ci", &json!({ "role": "read" }));
    server
}

/// Calls that are made from a description.
struct Calls<'a> {
    /// The name of what is described.
    topic: &'a str,
    /// Its configuration, in tests/schemathesis.
    config: &'a str,
    /// A URL or a file.
    description: String,
    secret: &'a str,
    flags: &'a [&'a str],
    /// The examples of each operation, and the fewest calls in all.
    examples: usize,
    least: u64,
}

impl Calls<'_> {
    /// Make them. Fails with a report unless all calls pass. Prints their number, also if the
    /// test's output is captured.
    #[track_caller]
    fn assert_pass(&self, server: &mut Server) {
        let python = std::env::var_os("GRISTMILL_TEST_SCHEMATHESIS").map(PathBuf::from);
        let python = python.expect("GRISTMILL_TEST_SCHEMATHESIS is not set: run cargo xtask test");
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.json");
        // The same calls in each run of the tests; others each time that they are soaked. One
        // worker: with several, Python 3.11 fails now and then.
        let soaks = times(0, 1) == 1;
        let mut run = Command::new(python);
        run.args(["-B", "-m", "schemathesis.cli", "--config-file"]).arg(cases.join(self.config));
        run.args(["run", &self.description]).args(self.flags);
        run.args(["--header", &format!("Authorization: Bearer {}", self.secret)]);
        run.args(["--workers", "1", "--no-color", "--continue-on-failure", "--max-failures", "20"]);
        // Complaints about making data, which is often made anew, say nothing about the server.
        run.args(["--max-examples", &self.examples.to_string()]);
        run.args(["--suppress-health-check", "all"]);
        run.args(["--report", "json", "--report-json-path"]).arg(&report);
        run.args(match soaks {
            true => ["--generation-database", "none", "--phases", "coverage,fuzzing,stateful"]
                .as_slice(),
            false => &["--generation-deterministic", "--phases", "coverage,fuzzing"],
        });
        run.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", &cases);
        run.env("GRISTMILL_PLUGIN", files::plugin_path("digits"));
        run.env("GRISTMILL_MODEL", files::model_path("digits"));
        let run = run.current_dir(folder.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stdout);
        let failed = String::from_utf8_lossy(&run.stderr);
        let calls = fs::read(report).ok().and_then(|text| {
            serde_json::from_slice::<Value>(&text).ok()?["test_cases"]["generated"].as_u64()
        });
        let passed = calls.filter(|_| run.status.success()).unwrap_or_default();
        let failures = u64::from(!run.status.success());
        note(&Score { suite: "schemathesis", topic: self.topic, passed, failed: failures });
        assert!(run.status.success(), "{}\n{printed}\n{failed}\n{}", run.status, server.log());
        assert!(passed >= self.least, "{passed} calls are too few:\n{printed}");
        server.assert_alive();
        let _ = writeln!(std::io::stderr(), "schemathesis, {}: {passed} calls", self.topic);
    }
}

#[test]
fn calls_made_from_the_description_are_answered_as_it_says() {
    let mut server = server();
    let calls = Calls {
        topic: "the admin API",
        config: "schemathesis.toml",
        description: format!("{}/admin/v1/openapi.json", server.admin.address()),
        secret: ADMIN_TOKEN,
        flags: &[],
        examples: times(4, 150),
        least: times(4_000, 10_000) as u64,
    };
    calls.assert_pass(&mut server);
}

#[test]
fn calls_made_from_the_protocols_description_are_answered_as_it_says() {
    let mut server = Server::start();
    for model in ["digits", "ranker"] {
        server.model(model);
    }
    let tenant = json!({ "api_keys": [KEY], "models": ["digits", "ranker"] });
    server.put_json("tenants/acme", &tenant);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/inference.json");
    let address = server.data.address().to_owned();
    let calls = Calls {
        topic: "the Open Inference Protocol",
        config: "inference.toml",
        description: file.display().to_string(),
        secret: KEY,
        flags: &["--url", &address],
        examples: times(50, 2_000),
        least: times(300, 5_000) as u64,
    };
    calls.assert_pass(&mut server);
}
