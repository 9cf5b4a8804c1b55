//! The admin API, tried with calls that schemathesis makes from its description. Each answer must
//! have a status, a content type, headers and a document that the description states. Calls that
//! break the description must be refused, and no call may be answered with 5xx.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;
use crate::support::soak::times;

/// A server with all that tests/schemathesis/schemathesis.toml names.
pub(crate) fn server() -> Server {
    let server = Server::start();
    server.put_json(
        "tenants/acme",
        &json!({ "api_keys": [{ "name": "ci", "key": "the-key-of-acme-1" }] }),
    );
    server.digits_for("acme");
    server.open_tenant("other");
    server.put_json("tokens/ci", &json!({ "role": "read" }));
    server
}

/// Run it. Fails with its report unless all calls pass. Prints their number, also if the test's
/// output is captured.
#[test]
fn calls_made_from_the_description_are_answered_as_it_says() {
    let mut server = server();
    let python = std::env::var_os("GRISTMILL_TEST_SCHEMATHESIS").map(PathBuf::from);
    let python = python.expect("GRISTMILL_TEST_SCHEMATHESIS is not set: run cargo xtask test");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    // The same calls in each run of the tests; others each time that they are soaked. One worker:
    // with several, Python 3.11 fails now and then.
    let soaks = times(0, 1) == 1;
    let (examples, least) = (times(4, 150), times(4_000, 10_000));
    let mut run = Command::new(python);
    run.args(["-B", "-m", "schemathesis.cli", "--config-file"])
        .arg(cases.join("schemathesis.toml"));
    run.args(["run", &format!("{}/admin/v1/openapi.json", server.admin.address())]);
    run.args(["--header", &format!("Authorization: Bearer {ADMIN_TOKEN}")]);
    run.args(["--workers", "1", "--no-color", "--continue-on-failure", "--max-failures", "20"]);
    // Complaints about making data, which is often made anew, say nothing about the server.
    run.args(["--max-examples", &examples.to_string(), "--suppress-health-check", "all"]);
    run.args(["--report", "json", "--report-json-path"]).arg(&report);
    run.args(match soaks {
        true => {
            ["--generation-database", "none", "--phases", "coverage,fuzzing,stateful"].as_slice()
        }
        false => &["--generation-deterministic", "--phases", "coverage,fuzzing"],
    });
    run.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", &cases).current_dir(folder.path());
    run.env("GRISTMILL_PLUGIN", files::plugin_path("digits"));
    run.env("GRISTMILL_MODEL", files::model_path("digits"));
    let run = run.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let failed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}\n{said}\n{failed}\n{}", run.status, server.log());
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let calls = report["test_cases"]["generated"].as_u64().unwrap();
    assert!(calls >= least as u64, "{calls} calls are too few:\n{said}");
    server.assert_alive();
    let _ = writeln!(std::io::stderr(), "schemathesis: {calls} calls");
}
