//! The server, and on it the tenant `good` with the pipeline `ranker`, and the tenant `evil`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;
use gristmill_benches::load::Question;
use gristmill_benches::server::Server;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cases::PATIENT;

/// The API key of the tenant `evil`.
pub(crate) const KEY: &str = "the-key-of-evil-0001";

/// The value of `tenant_bytes_max`: so low that more memory would be noticed.
pub(crate) const TENANT_BYTES: u64 = 512 << 20;
/// The timeout of all requests of `evil`.
pub(crate) const DEADLINE_MS: u64 = 2_000;
/// The CPU budget of a plugin call: the default.
pub(crate) const CPU_MS: u64 = 250;
/// The CPU budget of a plugin call that should end at its deadline.
const PATIENT_CPU_MS: u64 = 60_000;

/// The hostile plugins with the names of their pipelines. Another pipeline of each, `-kept`, lets
/// instances stay.
const HOSTILE: [(&str, &str); 5] = [
    ("hostile", "hostile"),
    ("wasi", "hostile-wasi"),
    ("python", "hostile-python"),
    ("js", "hostile-js"),
    ("c", "hostile-c"),
];

pub(crate) struct Stage {
    pub(crate) server: Server,
    log: PathBuf,
}

impl Stage {
    pub(crate) fn set(runtime: &Runtime, gristmill: &Path, components: &Path) -> Result<Self> {
        let log = std::env::temp_dir().join(format!("gristmill-bench-{}.log", std::process::id()));
        let (bytes, seconds) = (TENANT_BYTES.to_string(), (DEADLINE_MS / 1_000).to_string());
        let flags = ["--tenant-bytes-max", &bytes, "--infer-timeout-s", &seconds];
        let server = Server::start(gristmill, &flags, File::create(&log)?)?;
        let stage = Self { server, log };
        runtime.block_on(stage.deploy(components))?;
        Ok(stage)
    }

    async fn deploy(&self, components: &Path) -> Result<()> {
        let admin = &self.server.admin;
        self.server.put_good(components).await?;
        admin.put_json("tenants/evil", &evil(&["ranker"])).await?;
        self.server.put_plugins(components, "evil", &["digits"]).await?;
        let hostile = HOSTILE.map(|(_, plugin)| plugin);
        self.server.put_plugins(components, "evil", &hostile).await?;
        let pipeline = async |name: &str, plugin: &str, cpu_ms: u64, reuse: &str| {
            let limits = json!({ "timeout_ms": DEADLINE_MS, "cpu_ms": cpu_ms });
            let spec = json!({
                "pre": plugin, "model": "digits", "post": plugin, "limits": limits,
                "instance_reuse": reuse,
            });
            admin.put_json(&format!("tenants/evil/pipelines/{name}"), &spec).await
        };
        pipeline("digits", "digits", CPU_MS, "none").await?;
        pipeline(PATIENT, "hostile", PATIENT_CPU_MS, "none").await?;
        for (name, plugin) in HOSTILE {
            pipeline(name, plugin, CPU_MS, "none").await?;
            pipeline(&format!("{name}-kept"), plugin, CPU_MS, "tenant").await?;
        }
        Ok(())
    }

    /// The neighbour's request.
    pub(crate) fn question(&self) -> Result<Question> {
        Question::ranker(&self.server.data_plane, "/v1/good/infer/ranker")
    }

    pub(crate) fn log_bytes(&self) -> Result<u64> {
        Ok(self.log.metadata()?.len())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
    }
}

pub(crate) const OCTETS: &str = "application/octet-stream";

/// The tenant `evil`, which may run these models directly.
pub(crate) fn evil(models: &[&str]) -> Value {
    json!({ "api_keys": [KEY], "models": models })
}
