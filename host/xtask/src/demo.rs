//! `cargo xtask demo`: a running server with two tenants, a proof that their requests shared a
//! batch, and commands to paste. With `--all` also the samples around models of others, which it
//! fetches, and around a store.

use std::path::Path;
use std::thread;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_client::http::Request;
use gristmill_client::{Client, Listen, block_on};
use serde_json::{Map, Value};

use crate::build;
use crate::server::{ACME_KEY, MANIFEST, Server};
use crate::setup::fetch_models;
use crate::shell::{self, program, root, step, target};

/// Requests that each tenant sends, and how many of them at a time.
const REQUESTS: usize = 240;
const AT_A_TIME: usize = 8;

/// The samples around models of others and around a store, and the server's settings for them.
const MANIFEST_OF_ALL: &str = "plugins/demo-all.toml";
const SETTINGS_OF_ALL: &str = "plugins/demo-all-server.toml";

/// The products of the sample `recommend`.
const PRODUCTS: &str = "10000";

pub(crate) fn command() -> Command {
    Command::new("demo")
        .about(
            "Build the server and its sample plugins, start it with two tenants, show them share a \
             batch, print commands to paste; Ctrl-C stops it",
        )
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help(
            "Also the samples around models of others, which are fetched (70 MB), and stores",
        ))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let is_all = matches.get_flag("all");
    if is_all {
        fetch_models()?;
    }
    let (gristmill, onnxruntime) = build::build_demo()?;
    step("starting the server");
    let listen = Listen { data: "127.0.0.1:8080", grpc: "127.0.0.1:8082", admin: "127.0.0.1:8081" };
    let data = target().join("demo");
    let mut command = Server::command(&gristmill, &data, &onnxruntime, listen);
    if is_all {
        command.env("GRISTMILL_CONFIG", root().join(SETTINGS_OF_ALL));
    }
    let server = Server::spawn(&mut command)?;
    let others = is_all.then_some(MANIFEST_OF_ALL);
    for manifest in [MANIFEST].into_iter().chain(others) {
        step(&format!("deploying {manifest}"));
        server.deploy_manifest(&gristmill, manifest)?;
    }
    if is_all {
        load_features(&server, &gristmill)?;
    }
    step("sending digits of two tenants at the same time");
    send_as_both_tenants(&server.url)?;
    let lane = server.admin.get("status")?["models"]["digits"]["statistics"].take();
    print_lines(&server);
    if is_all {
        print_lines_of_all(&server);
    }
    println!();
    println!("{}", summary(&lane));
    println!();
    println!("Ctrl-C stops it.");
    server.wait()
}

/// The features of users and products, which the sample `recommend` finds in its store.
fn load_features(server: &Server, gristmill: &Path) -> Result<()> {
    step("loading the features of users and products");
    let folder = target().join("models/recommend");
    let mut features = program("python3");
    shell::run(
        features.arg("models/recommend/features.py").arg(&folder).args(["--products", PRODUCTS]),
    )?;
    for file in ["users.csv", "products.csv"] {
        let mut load = server.cli(gristmill);
        load.args(["kv", "load", "features"]).arg(folder.join(file));
        shell::run(load.args(["--heading", "--tenant", "demo"]))?;
    }
    Ok(())
}

/// Digits for `demo`, which is open, and for `acme`, which has a key.
fn send_as_both_tenants(url: &str) -> Result<()> {
    let picture = Bytes::from(std::fs::read(root().join("models/digits/samples/seven.png"))?);
    let anyone = Client::new(url.parse()?);
    let acme = anyone.clone().with_token(ACME_KEY)?;
    let send = |tenant: &str| -> Result<()> {
        let client = if tenant == "acme" { &acme } else { &anyone };
        let path = format!("/v1/{tenant}/infer/digits");
        let answer = block_on(client.send(Request::post(&path).body(picture.clone())?));
        answer?.ok().with_context(|| format!("POST {path}"))?;
        Ok(())
    };
    let repeat = |tenant: &str| (0..REQUESTS / AT_A_TIME).try_for_each(|_| send(tenant));
    thread::scope(|scope| {
        let senders: Vec<_> = ["demo", "acme"]
            .into_iter()
            .flat_map(|tenant| vec![tenant; AT_A_TIME])
            .map(|tenant| scope.spawn(move || repeat(tenant)))
            .collect();
        senders.into_iter().try_for_each(|sender| match sender.join() {
            Ok(sent) => sent,
            Err(_) => anyhow::bail!("a sender panicked"),
        })
    })
}

fn print_lines(server: &Server) {
    let (url, grpc) = (&server.url, &server.grpc);
    let host = url.trim_start_matches("http://");
    println!();
    println!("The server is running. Read a handwritten digit:");
    println!();
    println!("  curl --data-binary @models/digits/samples/seven.png {url}/v1/demo/infer");
    println!();
    println!("The same as the tenant acme, which has a key and a pipeline of its own:");
    println!();
    println!("  curl -H 'authorization: Bearer {ACME_KEY}' \\");
    println!("    --data-binary @models/digits/samples/three.jpg {url}/v1/acme/infer/digits");
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
    println!("See what is loaded, and under recent_mixed_batches which tenants shared a batch:");
    println!();
    println!(
        "  curl -H 'authorization: Bearer {}' {}/admin/v1/status",
        server.admin.token, server.admin.url
    );
}

fn print_lines_of_all(Server { url, .. }: &Server) {
    println!();
    println!("Read the text of a picture, or see where it stands:");
    println!();
    println!("  curl --data-binary @models/ocr/samples/turned.png {url}/v1/demo/infer/ocr");
    println!("  curl --data-binary @models/ocr/samples/turned.png -o drawn.png \\");
    println!("    '{url}/v1/demo/infer/ocr?format=png'");
    println!();
    println!("Ask what is on a photo, of a plugin in Rust and of one in Python:");
    println!();
    println!("  curl --data-binary @target/models/photo/coffee.png {url}/v1/demo/infer/photo");
    println!("  curl -F image=@target/models/photo/chelsea.png {url}/v1/demo/infer/photo-python");
    println!();
    println!("Embed texts, also with OpenAI's client and the base URL {url}/v1/demo/infer:");
    println!();
    println!("  curl -d '{{\"texts\": [\"a cat\", \"a dog\"]}}' {url}/v1/demo/infer/embeddings");
    println!();
    println!("Order products for a user, by features from a store:");
    println!();
    println!(
        "  curl -d '{{\"userId\": 7, \"productIds\": [1, 2, 3, 4]}}' {url}/v1/demo/infer/recommend"
    );
}

/// A sentence about the batches of the digits model that had rows of both tenants.
fn summary(lane: &Value) -> String {
    let count = |name: &str| lane[name].as_u64().unwrap_or_default();
    let (batches, mixed) = (count("batches"), count("mixed_batches"));
    let sent = format!(
        "Just now demo and acme sent {REQUESTS} digits each, {AT_A_TIME} at a time. They ran in \
         {batches} batches, {mixed} of them with rows of both tenants"
    );
    let recent = lane["recent_mixed_batches"].as_array();
    // The batch with the most rows.
    let largest =
        recent.into_iter().flatten().filter_map(Value::as_object).max_by_key(|batch| rows(batch));
    match largest {
        Some(batch) => {
            let shares: Vec<_> =
                batch.iter().map(|(tenant, rows)| format!("{rows} of {tenant}")).collect();
            format!("{sent}; one of these had {} rows: {}.", rows(batch), shares.join(", "))
        }
        None => format!("{sent}."),
    }
}

fn rows(batch: &Map<String, Value>) -> u64 {
    batch.values().filter_map(Value::as_u64).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::summary;

    #[test]
    fn the_batch_that_both_share_is_told_with_its_rows() {
        let lane = json!({
            "batches": 90,
            "mixed_batches": 60,
            "recent_mixed_batches": [{ "acme": 1, "demo": 1 }, { "acme": 3, "demo": 4 }],
        });
        let text = summary(&lane);
        assert!(text.contains("90 batches, 60 of them with rows of both tenants"), "{text}");
        assert!(text.ends_with("one of these had 7 rows: 3 of acme, 4 of demo."), "{text}");
    }

    #[test]
    fn no_shared_batch_is_told_as_it_is() {
        let text =
            summary(&json!({ "batches": 480, "mixed_batches": 0, "recent_mixed_batches": [] }));
        assert!(text.ends_with("480 batches, 0 of them with rows of both tenants."), "{text}");
    }
}
