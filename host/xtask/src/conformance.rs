//! `cargo xtask conformance`: the `onnx` package's backend node tests through the `backend` crate.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::setup;
use crate::shell::{cargo, program, root, run as run_command, step, target};
use crate::table::Table;

/// The backends under test, each with the reference that runs the same tests without our code.
const BACKENDS: [(&str, &str); 2] = [("onnxruntime", ONNXRUNTIME), ("tract", PLAIN_TRACT)];
const ONNXRUNTIME: &str = "ONNX Runtime by itself (Python)";
const PLAIN_TRACT: &str = "tract by itself";

/// Verdict and reason by test.
type Verdicts = BTreeMap<String, (String, String)>;

pub(crate) fn run() -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    let python =
        setup::python_environment("conformance-python", "benches/conformance/requirements.txt")?;
    let exported = target().join("conformance");
    step("exporting the tests, running them on ONNX Runtime by itself");
    run_command(program(python).arg(root().join("benches/conformance/export.py")).arg(&exported))?;
    let itself: BTreeMap<String, String> =
        serde_json::from_str(&std::fs::read_to_string(exported.join("onnxruntime.json"))?)?;
    step("building");
    run_command(cargo().args(["build", "--workspace", "--all-targets"]))?;
    let mut table = Table::new("conformance", "cargo xtask conformance".into());
    let cases = exported.join("cases");
    for (backend, without_us) in BACKENDS {
        step(&format!("running {} tests on {backend}", itself.len()));
        let baseline = match without_us {
            PLAIN_TRACT => {
                let verdicts = verdicts("plain-tract", &cases, &onnxruntime)?;
                verdicts.into_iter().map(|(name, (verdict, _))| (name, verdict)).collect()
            }
            _ => itself.clone(),
        };
        let count =
            |verdict: &str| baseline.values().filter(|own_verdict| *own_verdict == verdict).count();
        let (passed, failed, unsupported) =
            (count("passed"), count("failed"), count("unsupported"));
        let figures = json!({ "passed": passed, "failed": failed, "unsupported": unsupported });
        table.row(without_us, figures);
        let verdicts = verdicts(backend, &cases, &onnxruntime)?;
        let of = |wanted: &str| {
            let named = verdicts.iter().filter(move |(_, (verdict, _))| verdict == wanted);
            named.map(|(name, (_, why))| (name.clone(), why.clone())).collect::<BTreeMap<_, _>>()
        };
        let (passed, failed, unsupported) = (of("passed"), of("failed"), of("unsupported"));
        let added: BTreeMap<_, _> = failed
            .iter()
            .chain(&unsupported)
            .filter(|(name, _)| {
                baseline.get(*name).is_some_and(|own_verdict| own_verdict == "passed")
            })
            .collect();
        let is_reached = added.is_empty();
        let figures = json!({
            "passed": passed.len(), "failed": failed, "unsupported": unsupported.len(),
            "not_passed_that_pass_without_us": added,
        });
        let (failed, passed) = (failed.len(), passed.len());
        let words = format!("failed {failed}, passed {passed}, unsupported {}", unsupported.len());
        let row = table.row(backend, figures).shown(words);
        row.with_target("no test not passed that passes without us", is_reached);
    }
    table.finish()
}

/// Run all tests on `backend`. A test that ends the process has failed; the run continues with the
/// next one.
fn verdicts(backend: &str, cases: &Path, onnxruntime: &Path) -> Result<Verdicts> {
    let mut verdicts = Verdicts::new();
    let mut first = String::new();
    loop {
        let mut running = program(target().join("debug/conformance"))
            .arg(backend)
            .arg(cases)
            .arg(&first)
            .env("ORT_DYLIB_PATH", onnxruntime)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = running.stdout.take().context("no standard output")?;
        let mut cut_off = None;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            let mut fields = line.splitn(3, '\t').map(str::to_owned);
            let name = fields.next().unwrap_or_default();
            match (fields.next(), fields.next()) {
                (Some(verdict), Some(why)) => drop(verdicts.insert(name, (verdict, why))),
                _ => cut_off = Some(name),
            }
        }
        let status = running.wait()?;
        match cut_off {
            Some(name) => {
                first = format!("{name}\u{1}");
                let why = format!("the process ended: {status}");
                verdicts.insert(name, ("failed".into(), why));
            }
            None => {
                ensure!(status.success(), "the tests on {backend} did not run: {status}");
                return Ok(verdicts);
            }
        }
    }
}
