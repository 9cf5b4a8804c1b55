//! The harness of every benchmark: what is measured, its servers, and the table of its figures.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_client::Listen;
use serde_json::{Value, json};

use super::clients::Round;
use super::loads::Load;
use super::models;
use super::options::Options;
use super::rounds::Measured;
use super::running::Running;
use crate::admin::Admin;
use crate::server::Server;
use crate::setup;
use crate::shell::{cargo, json_lines, program, root, run, step, target};
use crate::table::Table;

/// The address of the echo.
const ECHO: &str = "127.0.0.1:18095";

/// Where the echo answers.
pub(super) const ECHO_URL: &str = "http://127.0.0.1:18095/";

/// ONNX Runtime's threads for ResNet-50, in the server and in a bare loop.
pub(super) const RESNET50_THREADS: usize = 1;

/// A benchmark that runs.
pub(super) struct Bench<'a> {
    pub(super) options: &'a Options,
    /// The server's binary. Those of `benches/` lie beside it.
    pub(super) gristmill: PathBuf,
    /// The folder of the built plugins.
    pub(super) components: PathBuf,
    pub(super) table: Table,
}

impl<'a> Bench<'a> {
    pub(super) fn new(name: &'static str, options: &'a Options) -> Self {
        let binaries = options.binaries.clone().unwrap_or_else(|| target().join("release"));
        Self {
            options,
            gristmill: binaries.join("gristmill"),
            components: target().join("components"),
            table: Table::new(name, format!("cargo xtask bench {name}")),
        }
    }

    /// Build the server, the programs of `benches/` and the plugins in the release profile.
    pub(super) fn build() -> Result<()> {
        setup::install_wasm_toolchain()?;
        step("building as shipped (the first time takes about 20 minutes on 2 cores)");
        let build = ["build", "--release", "--workspace", "--bins", "--bench", "sandbox"];
        run(cargo().args(build))?;
        setup::build_components(&target().join("release/gristmill")).map(drop)
    }

    /// Whether a case is to run: all do, or those whose names begin with a word of `--only`.
    pub(super) fn wants(&self, case: &str) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|only| case.starts_with(only))
    }

    /// A program of `benches/`.
    pub(super) fn binary(&self, name: &str) -> PathBuf {
        self.gristmill.with_file_name(name)
    }

    /// What a program of `benches/` prints, a JSON document a line.
    pub(super) fn lines(&self, name: &str, arguments: &[&OsStr]) -> Result<Vec<Value>> {
        let mut measuring = program(self.binary(name));
        measuring.env("ORT_DYLIB_PATH", setup::install_onnxruntime()?);
        json_lines(measuring.args(arguments))
    }

    /// The same, of a program that starts the server itself and takes names of cases.
    pub(super) fn cases(&self, name: &str, arguments: &[&OsStr]) -> Result<Vec<Value>> {
        let subjects = [self.gristmill.as_os_str(), self.components.as_os_str()];
        let only: Vec<_> = self.options.only.iter().map(OsStr::new).collect();
        self.lines(name, &[&subjects, arguments, &only].concat())
    }

    /// Add the rows that a program of `benches/` has printed.
    pub(super) fn add_rows(&mut self, rows: Vec<Value>) -> Result<()> {
        for mut row in rows {
            let what = row["what"].as_str().context("a row without a name")?.to_owned();
            let figures = row["figures"].take();
            if what == "machine" {
                self.table.cores = figures["cores"].as_u64();
            }
            let added = self.table.row(what, figures);
            if let Some(target) = row["to_reach"].as_str() {
                added.with_target(target, row["is_reached"] == true);
            }
        }
        Ok(())
    }

    /// Add a row for a case that cannot be measured. It has only the outermost reason: those below
    /// may show paths of this machine, so they are only printed.
    pub(super) fn add_failure(&mut self, what: String, error: &anyhow::Error) {
        step(&format!("{what}: {error:#}"));
        let row = self.table.row(what, json!({ "error": error.to_string() }));
        row.with_target("measured", false);
    }

    /// Start the server with the demo's tenants.
    pub(super) fn start(&self) -> Result<Server> {
        step("starting Gristmill");
        start(&self.gristmill, "bench-data", &self.components)
    }

    /// The same. The tenant `demo` gets the picture classifier as well.
    pub(super) fn start_with_photos(&self) -> Result<Server> {
        let server = self.start()?;
        add_photos(&server.admin, &self.components)?;
        Ok(server)
    }

    /// Start a bare hyper server that sends every body back.
    pub(super) fn start_echo(&self) -> Result<Running> {
        Running::start(program(self.binary("echo")).arg(ECHO), ECHO)
    }

    /// Let `gristmill bench` send a load.
    pub(super) fn measure(&self, server: &Server, load: &Load, round: Round) -> Result<Measured> {
        round.measure(&self.gristmill, &format!("{}/{}", server.url, load.path), &load.flags())
    }
}

/// Start a binary of the server with the demo's tenants, with its data in this folder of `target`.
pub(super) fn start(gristmill: &Path, data: &str, components: &Path) -> Result<Server> {
    let (data, onnxruntime) = (target().join(data), setup::install_onnxruntime()?);
    let server = Server::start(gristmill, &data, &onnxruntime, Listen::FREE_PORTS)?;
    server.deploy_demo(components)?;
    Ok(server)
}

/// Upload the models with large inputs, and let the tenant `demo` run them as well as its own.
pub(super) fn deploy_large(admin: &Admin, resnet50: &Path) -> Result<()> {
    let identity = root().join("host/app/tests/fixtures/identity-fp32.onnx");
    admin.put_file("models/identity", &identity)?;
    let config = json!({ "threads": RESNET50_THREADS, "instances": 1, "providers": ["cpu"] });
    admin.put_file("models/resnet50", resnet50)?;
    admin.put_json("models/resnet50/config", &config)?;
    grant(admin, &["digits", "ranker", "identity", "resnet50"])
}

/// Let the tenant `demo` run these models, the demo's among them.
pub(super) fn grant(admin: &Admin, models: &[&str]) -> Result<()> {
    let tenant = json!({ "open": true, "default_pipeline": "digits", "models": models });
    admin.put_json("tenants/demo", &tenant)
}

/// The configuration of the picture classifier: as many sessions of one thread as the peers have.
pub(super) fn photos_config() -> Value {
    json!({ "threads": 1, "instances": 2 })
}

/// Give the tenant `demo` the picture classifier and its pipeline.
pub(crate) fn add_photos(admin: &Admin, components: &Path) -> Result<()> {
    admin.put_file("models/photos", &models::photos()?)?;
    admin.put_json("models/photos/config", &photos_config())?;
    grant(admin, &["digits", "ranker", "photos"])?;
    admin.put_file("tenants/demo/plugins/photos", &components.join("photos.wasm"))?;
    let pipeline = json!({ "pre": "photos", "model": "photos", "post": "photos" });
    admin.put_json("tenants/demo/pipelines/photos", &pipeline)
}
