//! Many tenants that share few plugins and models: the memory of each, the time of one more
//! release, the time of a start, and the latency of requests, in turns with that of a server with
//! few tenants.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_benches::corpus::{models, plugins};
use gristmill_benches::files::read;
use gristmill_benches::harness::percentile_ms;
use gristmill_benches::load::{Load, Question};
use gristmill_benches::report::{self, Goal};
use gristmill_benches::server::{Server, resident_bytes};
use gristmill_client::http::Request;
use gristmill_load::median;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

const FEW: usize = 100;
const MANY: usize = 10_000;
/// Of each of the two roles.
const PLUGINS: usize = 25;
const MODELS: usize = 5;
/// Four changes a tenant, and at most 1,000 changes a release.
const TENANTS_PER_RELEASE: usize = 250;
const DEPLOYS: u32 = 40;
/// Of requests to each of the two servers.
const ROUNDS: usize = 5;
const LOAD: Duration = Duration::from_secs(5);
/// Memory that was freed goes back to the system after a while.
const REST: Duration = Duration::from_secs(3);

/// The targets: the memory of a tenant, the time of a start, and the time of one more release as a
/// ratio to that with few tenants.
const KIB_PER_TENANT_MAX: f64 = 10.0;
const READY_S_MAX: f64 = 3.0;
const DEPLOY_RATIO_MAX: f64 = 1.5;

/// The digests of the files that tenants share.
struct Files {
    pre: Vec<String>,
    post: Vec<String>,
}

/// The figures of a number of tenants.
struct Figures {
    resident_bytes: u64,
    deploy_ms: f64,
}

pub(crate) fn measure(runtime: &Runtime, gristmill: &Path, components: &Path) -> Result<()> {
    let mut server = Server::start(gristmill, &[], Stdio::null())?;
    let files = runtime.block_on(upload(&server, components))?;
    runtime.block_on(make(&server, &files, 0..FEW))?;
    let few = figures(runtime, &server)?;
    runtime.block_on(make(&server, &files, FEW..MANY))?;
    let many = figures(runtime, &server)?;
    let (p50_ms, p99_ms) = latencies(runtime, (gristmill, components), &server)?;
    let ready = server.restart()?;
    let both = [&few, &many];
    let grown = many.resident_bytes.saturating_sub(few.resident_bytes);
    let resident_mib = both.map(|figures| figures.resident_bytes >> 20);
    let deploy_ms = both.map(|figures| figures.deploy_ms);
    let row = |what: &str, figures: Value, target: Goal| {
        report::row(&format!("10,000 tenants: {what}"), &figures, Some(target));
    };

    let bytes = grown / (MANY - FEW) as u64;
    let target = Goal::at_most(bytes as f64 / 1024.0, KIB_PER_TENANT_MAX, "KiB");
    row("memory of a tenant", json!({ "bytes": bytes, "resident_mib": resident_mib }), target);

    let seconds = ready.as_secs_f64();
    let target = Goal::at_most(seconds, READY_S_MAX, "s");
    row("start with warm caches", json!({ "seconds": seconds }), target);

    let ratio = many.deploy_ms / few.deploy_ms;
    let target = Goal::at_most(ratio, DEPLOY_RATIO_MAX, "x the time with 100 tenants");
    row("one more release", json!({ "ratio": ratio, "ms": deploy_ms }), target);

    let [few_ms, many_ms] =
        p50_ms.each_ref().map(|rounds| rounds.iter().flatten().copied().collect::<Vec<_>>());
    let slowest = few_ms.iter().copied().fold(0.0, f64::max);
    let is_reached = median(&many_ms).context("no answers")? <= slowest;
    let target = Goal::new("within the rounds with 100 tenants", is_reached);
    row("a request", json!({ "p50_ms": p50_ms, "p99_ms": p99_ms }), target);
    Ok(())
}

/// Upload the models, and the plugins' files for releases that come later.
async fn upload(server: &Server, components: &Path) -> Result<Files> {
    let onnx = read(Path::new("models/ranker/ranker.onnx"))?;
    for number in 0..MODELS {
        let onnx = models::distinct(&onnx, number as u64);
        server.admin.put(&format!("models/ranker-{number}"), onnx).await?;
    }
    let mut digests = Vec::new();
    for plugin in ["ranker-pre", "ranker-post"] {
        let component = read(&components.join(format!("{plugin}.wasm")))?;
        let mut of_role = Vec::new();
        for number in 0..PLUGINS {
            let file = plugins::distinct(&component, number as u64);
            let digest = gristmill_core::Digest::from_bytes(Sha256::digest(&file).into());
            let path = format!("/admin/v1/blobs/{digest}");
            let put = Request::put(path).body(Bytes::from(file))?;
            server.admin.client().send(put).await?.ok()?;
            of_role.push(digest.to_string());
        }
        digests.push(of_role);
    }
    let post = digests.pop().context("no digests")?;
    let pre = digests.pop().context("no digests")?;
    Ok(Files { pre, post })
}

/// Make the tenants with these numbers, many in a release.
async fn make(server: &Server, files: &Files, numbers: std::ops::Range<usize>) -> Result<()> {
    let numbers: Vec<_> = numbers.collect();
    for part in numbers.chunks(TENANTS_PER_RELEASE) {
        let changes: Vec<_> = part.iter().flat_map(|number| changes(files, *number)).collect();
        server.admin.post_json("releases", &json!({ "changes": changes })).await?;
    }
    Ok(())
}

fn changes(files: &Files, number: usize) -> [Value; 4] {
    let tenant = format!("t-{number}");
    let (pre, post) = (&files.pre[number % PLUGINS], &files.post[number / 7 % PLUGINS]);
    let model = format!("ranker-{}", number % MODELS);
    let open = json!({ "open": true });
    [
        json!({ "kind": "put_tenant", "tenant": tenant, "document": open }),
        json!({ "kind": "put_plugin", "tenant": tenant, "plugin": "pre", "digest": pre }),
        json!({ "kind": "put_plugin", "tenant": tenant, "plugin": "post", "digest": post }),
        json!({ "kind": "put_pipeline", "tenant": tenant, "pipeline": "main",
            "document": pipeline(&model, 0) }),
    ]
}

fn pipeline(model: &str, version: u32) -> Value {
    json!({ "pre": "pre", "model": model, "post": "post", "settings": { "version": version } })
}

fn figures(runtime: &Runtime, server: &Server) -> Result<Figures> {
    thread::sleep(REST);
    let resident_bytes = resident_bytes(server.pid())?;
    let mut deploys = Vec::new();
    for version in 1..=DEPLOYS {
        let (began, pipeline) = (Instant::now(), pipeline("ranker-1", version));
        runtime.block_on(server.admin.put_json("tenants/t-1/pipelines/main", &pipeline))?;
        deploys.push(began.elapsed());
    }
    let deploy_ms = percentile_ms(&deploys, 50.0).context("no deploys")?;
    Ok(Figures { resident_bytes, deploy_ms })
}

/// The latencies of each round, first those of a server with few tenants, then those of `many`.
type Rounds = [Vec<Option<f64>>; 2];

/// The medians and the 99th percentiles.
fn latencies(
    runtime: &Runtime,
    (gristmill, components): (&Path, &Path),
    many: &Server,
) -> Result<(Rounds, Rounds)> {
    let few = Server::start(gristmill, &[], Stdio::null())?;
    let files = runtime.block_on(upload(&few, components))?;
    runtime.block_on(make(&few, &files, 0..FEW))?;
    let (mut p50_ms, mut p99_ms) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        for (place, server) in [&few, many].into_iter().enumerate() {
            let question = Question::ranker(&server.data_plane, "/v1/t-1/infer/main")?;
            let load = Load::start(runtime.block_on(question.answered())?)?;
            thread::sleep(LOAD);
            let report = load.finish()?;
            ensure!(report.failures.is_empty(), "requests failed: {:?}", report.failures);
            p50_ms[place].push(report.percentile_ms(50.0));
            p99_ms[place].push(report.percentile_ms(99.0));
        }
    }
    Ok((p50_ms, p99_ms))
}
