//! Pre- and postprocessing of a detector in Python, with arrays of the host, and the same with
//! NumPy in its own process: the median time of both steps for one request at a time, in turns.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_client::{Client, block_on};
use http::Request;
use serde_json::{Value, json};

use super::answers::distance;
use super::harness::{Bench, grant};
use super::rounds::{Measured, compare, in_turns, median, median_of};
use crate::server::Server;
use crate::shell::{output, program, root, run as run_program, step, target};
use crate::table::Bound::AtLeast;
use crate::{runtimes, setup};

const ROUNDS: usize = 5;
const REQUESTS: usize = 40;

/// The target, over NumPy.
const RATIO_MIN: f64 = 1.0;

/// How far an element may be from NumPy's.
const DISTANCE_MAX: f64 = 1e-3;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let sources = root().join("benches/scenarios/detector");
    let python = setup::python_environment("sdk-python", "sdk/python/tests/requirements.txt")?;
    let (plugin, body) = (target().join("detector.tar"), target().join("detector.bin"));
    if bench.options.build {
        runtimes::build()?;
    }
    run_program(
        program(&bench.gristmill).args(["plugin", "build"]).arg(&sources).arg("--out").arg(&plugin),
    )?;
    let numpy = |arguments: &[&str]| {
        output(program(&python).arg(sources.join("by_numpy.py")).args(arguments))
    };
    let path = |path: &Path| path.to_str().map(str::to_owned).context("the path is not UTF-8");
    let (body_path, answer) = (path(&body)?, path(&target().join("detector.json"))?);
    numpy(&["body", &body_path])?;
    let server = bench.start()?;
    let identity = root().join("host/app/tests/fixtures/identity-fp32.onnx");
    server.admin.put_file("models/identity", &identity)?;
    grant(&server.admin, &["digits", "ranker", "identity"])?;
    server.admin.put_file("tenants/demo/plugins/detector", &plugin)?;
    for reuse in ["none", "request", "tenant"] {
        let spec = json!({
            "pre": "detector", "model": "identity", "post": "detector", "instance_reuse": reuse,
        });
        server.admin.put_json(&format!("tenants/demo/pipelines/detector-{reuse}"), &spec)?;
    }
    let detector = Detector { server: &server, body: std::fs::read(&body)?.into() };
    let by_numpy = || {
        let median = numpy(&[&REQUESTS.to_string(), &body_path, &answer])?;
        Ok(of_ms(median.trim().parse()?))
    };
    by_numpy()?;
    let wanted = serde_json::from_slice(&std::fs::read(PathBuf::from(&answer))?)?;
    for reuse in ["none", "request", "tenant"] {
        step(&format!("a detector with instance_reuse: {reuse}"));
        let found = detector.answer(reuse)?.1;
        ensure!(distance(&found, &wanted) < DISTANCE_MAX, "{found}\nis not\n{wanted}");
        let [ours, theirs] = in_turns(ROUNDS, [&|| detector.measure(reuse), &|| by_numpy()])?;
        let compared = compare(&ours, &theirs);
        let figures = json!({
            "ratio_to_numpy": compared.ratio, "ratios": compared.ratios,
            "gristmill_us": median_of(&ours, |round| round.p50_us),
            "numpy_us": median_of(&theirs, |round| round.p50_us),
        });
        let row =
            bench.table.row(format!("[1, 84, 8400] with NMS, instance_reuse: {reuse}"), figures);
        row.with_bound(compared.ratio, AtLeast(RATIO_MIN), "x NumPy");
    }
    Ok(())
}

struct Detector<'a> {
    server: &'a Server,
    body: Bytes,
}

impl Detector<'_> {
    /// The milliseconds of both steps of a request, and its answer.
    fn answer(&self, reuse: &str) -> Result<(f64, Value)> {
        let client = Client::new(self.server.url.parse()?);
        let path = format!("/v1/demo/infer/detector-{reuse}");
        let request = Request::post(path).body(self.body.clone())?;
        let answer = block_on(client.send(request))?.ok()?;
        let timing = answer.header("server-timing");
        let stages = timing.split(", ").filter_map(|stage| stage.split_once(";dur="));
        let steps = stages.filter(|(stage, _)| matches!(*stage, "pre" | "post"));
        let times = steps.map(|(_, time)| Ok(time.parse::<f64>()?));
        let times = times.collect::<Result<Vec<_>>>()?;
        ensure!(times.len() == 2, "the answer has the timing {timing:?}");
        Ok((times.iter().sum(), serde_json::from_slice(&answer.body)?))
    }

    fn measure(&self, reuse: &str) -> Result<Measured> {
        let times = (0..REQUESTS).map(|_| Ok(self.answer(reuse)?.0));
        Ok(of_ms(median(times.collect::<Result<Vec<_>>>()?)))
    }
}

fn of_ms(median: f64) -> Measured {
    Measured { per_second: 1e3 / median, p50_us: median * 1e3, ..Measured::default() }
}
