//! `cargo xtask demo`: a running server with something to try.

use anyhow::Result;

use crate::server::Server;
use crate::setup;
use crate::shell::{step, target};

pub(crate) fn run() -> Result<()> {
    let built = setup::build_all()?;
    step("starting the server");
    let addresses = ["127.0.0.1:8080", "127.0.0.1:8082", "127.0.0.1:8081"];
    let data = target().join("demo");
    let server = Server::start(&built.gristmill, &data, &built.onnxruntime, addresses)?;
    server.deploy_demo(&built.components)?;
    let (url, grpc) = (&server.url, &server.grpc);
    let host = url.trim_start_matches("http://");
    println!();
    println!("The server is running. Read a handwritten digit:");
    println!();
    println!("  curl --data-binary @models/digits/samples/seven.png {url}/v1/demo/infer");
    println!();
    println!("Rank ten items:");
    println!();
    println!("  curl --data-binary @benches/scenarios/ranker.json {url}/v1/demo/infer/ranker");
    println!();
    println!(
        "Ask as any client of the Open Inference Protocol does, over HTTP, or over gRPC at {grpc}:"
    );
    println!();
    println!("  curl {url}/v2/models/ranker");
    println!("  perf_analyzer -u {host} -m ranker --shape input:32 --concurrency-range 16");
    println!();
    println!("See what is loaded and which tenants shared a batch:");
    println!();
    println!(
        "  curl -H 'authorization: Bearer {}' {}/admin/v1/status",
        server.admin.token, server.admin.url
    );
    println!();
    println!("Ctrl-C stops it.");
    server.wait()
}
