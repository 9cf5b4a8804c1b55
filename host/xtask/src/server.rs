//! A server of this repository, started for a task, with the demo's tenants.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use gristmill_client::{Client, Listen, ServerProcess, block_on, serve};
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::setup;
use crate::shell::{program, root, run, send};

pub(crate) const TOKEN: &str = "demo-admin-token-not-for-production";
/// The key of the demo's second tenant, `acme`.
const ACME_KEY: &str = "acme-demo-key-0001";

/// A running server; stopped when dropped.
pub(crate) struct Server {
    process: ServerProcess,
    /// The URL of the data plane over HTTP.
    pub(crate) url: String,
    /// The address of the data plane over gRPC: host and port, as clients of the Open Inference
    /// Protocol need it.
    pub(crate) grpc: String,
    pub(crate) admin: Admin,
}

impl Server {
    /// Start `gristmill serve` with its data in `data`, which is emptied first. Calls of the Open
    /// Inference Protocol without a key belong to the tenant `demo`.
    pub(crate) fn start(
        gristmill: &Path,
        data: &Path,
        onnxruntime: &Path,
        listen: Listen<'_>,
    ) -> Result<Self> {
        Self::spawn(&mut Self::command(gristmill, data, onnxruntime, listen))
    }

    /// The command that [`start`](Self::start) runs.
    pub(crate) fn command(
        gristmill: &Path,
        data: &Path,
        onnxruntime: &Path,
        listen: Listen<'_>,
    ) -> Command {
        let _ = std::fs::remove_dir_all(data);
        let mut command = serve(gristmill, data, listen);
        command
            .current_dir(root())
            .args(["--open-tenant", "demo"])
            // A comparison may start an older server, which ignores an unknown variable but
            // refuses an unknown flag.
            .env("GRISTMILL_SHUTDOWN_DELAY_S", "0")
            // A benchmark may upload a thousand plugins.
            .env("GRISTMILL_TENANT_COMPILED_BYTES_MAX", (64_u64 << 30).to_string())
            // Nothing is compiled beside what is measured or tried.
            .env("GRISTMILL_PREPARE_RUNTIMES", "false")
            .env("GRISTMILL_ADMIN_TOKEN", TOKEN)
            .env("GRISTMILL_ONNXRUNTIME_LIBRARY", onnxruntime);
        command
    }

    /// Run the command of a server, and wait until it serves.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let mut process = ServerProcess::spawn(command)?;
        let addresses = process.wait_until_serving()?;
        let grpc = addresses.grpc_authority().to_owned();
        let admin = Admin::new(addresses.admin, TOKEN)?;
        Ok(Self { process, url: addresses.data, grpc, admin })
    }

    /// Deploy a manifest, such as the demo's. Its plugins are built.
    pub(crate) fn deploy_manifest(&self, gristmill: &Path, manifest: &str) -> Result<()> {
        let mut deploy = self.cli(gristmill);
        setup::set_build_folders(&mut deploy);
        deploy.args(["deploy", manifest, "--yes", "--message", "a benchmark"]);
        run(deploy.env("ACME_DEMO_KEY", ACME_KEY))
    }

    /// A figure of the process in KiB, by its name in `/proc/PID/status`: `VmRSS` is what is in
    /// memory, `RssAnon` the part of it that is of no file.
    pub(crate) fn memory_kib(&self, figure: &str) -> Result<f64> {
        let path = format!("/proc/{}/status", self.process.child.id());
        let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let line = line.with_context(|| format!("{path} has no {figure}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// The program `gristmill`, for commands to this server.
    pub(crate) fn cli(&self, gristmill: &Path) -> Command {
        let mut command = program(gristmill);
        command.env("GRISTMILL_ADMIN_URL", &self.admin.url);
        command.env("GRISTMILL_ADMIN_TOKEN", &self.admin.token);
        command
    }

    /// Deploy the tenants of `gristmill demo`: `demo` is open, `acme` has a key, and both use the
    /// model `digits`. These are calls of the admin API that older servers have, too, which a
    /// comparison may have started. The plugins are built already.
    pub(crate) fn deploy_demo(&self, components: &Path) -> Result<()> {
        let admin = &self.admin;
        let models = ["digits", "ranker"];
        for model in models {
            let file = root().join(format!("models/{model}/{model}.onnx"));
            admin.put_file(&format!("models/{model}"), &file)?;
        }
        let demo = json!({ "open": true, "models": models });
        let acme = json!({ "api_keys": [ACME_KEY], "models": models });
        admin.put_json("tenants/demo", &demo)?;
        admin.put_json("tenants/acme", &acme)?;
        let plugins = [
            ("demo", "digits"),
            ("demo", "ranker-pre"),
            ("demo", "ranker-post"),
            ("acme", "digits"),
        ];
        for (tenant, plugin) in plugins {
            let file = components.join(format!("{plugin}.wasm"));
            admin.put_file(&format!("tenants/{tenant}/plugins/{plugin}"), &file)?;
        }
        let digits = json!({ "pre": "digits", "model": "digits", "post": "digits" });
        let ranker = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
        admin.put_json("tenants/demo/pipelines/digits", &digits)?;
        admin.put_json("tenants/demo/pipelines/ranker", &ranker)?;
        admin.put_json("tenants/acme/pipelines/digits", &digits)?;
        // A default pipeline must exist.
        let demo = json!({ "open": true, "default_pipeline": "digits", "models": models });
        admin.put_json("tenants/demo", &demo)
    }

    /// The statistics of a model since it was loaded, in Triton's form.
    pub(crate) fn statistics(&self, model: &str) -> Result<Value> {
        let path = format!("/v2/models/{model}/stats");
        let answer = block_on(Client::new(self.url.parse()?).get(&path))?;
        let answer = answer.ok().with_context(|| format!("GET {path}"))?;
        let mut document: Value = serde_json::from_slice(&answer.body)?;
        Ok(document["model_stats"][0].take())
    }

    /// Tell it to end, and wait until it has.
    pub(crate) fn end(self) -> Result<()> {
        send("TERM", self.process.child.id());
        self.wait()
    }

    /// Wait until the server ends by itself.
    pub(crate) fn wait(mut self) -> Result<()> {
        self.process.child.wait()?;
        Ok(())
    }
}
