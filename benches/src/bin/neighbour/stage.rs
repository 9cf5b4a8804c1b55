//! The server, and on it the tenant `good` with the pipeline `ranker`, and the tenant `evil`. The
//! tenant `models` runs hostile models, and the open tenant `visited` has a page to try its
//! pipelines.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_benches::corpus::{assets, messages};
use gristmill_benches::load::Question;
use gristmill_benches::server::Server;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cases::{PATIENT, TABLE, TOKENIZER};
use crate::peers::Peers;

/// The API keys of the tenants `evil` and `models`.
pub(crate) const KEY: &str = "the-key-of-evil-0001";
pub(crate) const MODELS_KEY: &str = "the-key-of-models-01";
/// The page of the tenant `visited`.
pub(crate) const TRY_PAGE: &str = "/v1/visited/try";

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

/// Those that are handlers, likewise.
const HANDLERS: [(&str, &str); 3] = [
    ("handler", "hostile-handler"),
    ("services", "hostile-services"),
    ("keyvalue", "hostile-keyvalue"),
];

pub(crate) struct Stage {
    pub(crate) server: Server,
    log: PathBuf,
    config: PathBuf,
}

impl Stage {
    pub(crate) fn set(
        runtime: &Runtime,
        gristmill: &Path,
        components: &Path,
        peers: &Peers,
    ) -> Result<Self> {
        let file = |ending: &str| {
            std::env::temp_dir().join(format!("gristmill-bench-{}.{ending}", std::process::id()))
        };
        let (log, config) = (file("log"), file("toml"));
        std::fs::write(&config, peers.configuration())?;
        let (bytes, seconds) = (TENANT_BYTES.to_string(), (DEADLINE_MS / 1_000).to_string());
        let config_path = config.to_str().context("the folder for temporary files")?;
        let flags = [
            ["--config", config_path],
            ["--tenant-bytes-max", &bytes],
            ["--infer-timeout-s", &seconds],
        ];
        let server = Server::start(gristmill, flags.as_flattened(), File::create(&log)?)?;
        let stage = Self { server, log, config };
        runtime.block_on(stage.deploy(components, peers))?;
        Ok(stage)
    }

    async fn deploy(&self, components: &Path, peers: &Peers) -> Result<()> {
        let admin = &self.server.admin;
        self.server.put_good(components).await?;
        let evil = json!({
            "api_keys": [KEY], "models": [messages::MODEL], "stores": Peers::granted_stores(),
            "http": peers.granted_services(),
        });
        admin.put_json("tenants/evil", &evil).await?;
        admin.put_json("tenants/models", &json!({ "api_keys": [MODELS_KEY] })).await?;
        admin.put_json("tenants/visited", &json!({ "open": true, "try_page": true })).await?;
        self.server.put_plugins(components, "evil", &["digits"]).await?;
        let hostile = HOSTILE.map(|(_, plugin)| plugin);
        self.server.put_plugins(components, "evil", &hostile).await?;
        let handlers = HANDLERS.map(|(_, plugin)| plugin);
        self.server.put_plugins(components, "evil", &handlers).await?;
        for (name, file) in [(TOKENIZER, assets::tokenizer(0)), (TABLE, assets::csv(0))] {
            admin.put(&format!("tenants/evil/assets/{name}"), file).await?;
        }
        let pipeline = async |name: &str, plugin: &str, cpu_ms: u64, reuse: &str| {
            let mut spec = json!({
                "pre": plugin, "model": "digits", "post": plugin, "limits": limits(cpu_ms),
                "instance_reuse": reuse,
            });
            if plugin == "hostile" {
                spec["assets"] = json!({ "tokenizer.json": TOKENIZER, "products.csv": TABLE });
            }
            admin.put_json(&format!("tenants/evil/pipelines/{name}"), &spec).await
        };
        pipeline("digits", "digits", CPU_MS, "none").await?;
        pipeline(PATIENT, "hostile", PATIENT_CPU_MS, "none").await?;
        for (name, plugin) in HOSTILE {
            pipeline(name, plugin, CPU_MS, "none").await?;
            pipeline(&format!("{name}-kept"), plugin, CPU_MS, "tenant").await?;
        }
        for (name, plugin) in HANDLERS {
            let models = json!({ "digits": "digits" });
            let spec = json!({ "handler": plugin, "models": models, "limits": limits(CPU_MS) });
            admin.put_json(&format!("tenants/evil/pipelines/{name}"), &spec).await?;
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
        let _ = std::fs::remove_file(&self.config);
    }
}

pub(crate) const OCTETS: &str = "application/octet-stream";
pub(crate) const JSON: &str = "application/json";

/// The limits of a pipeline whose calls have so much CPU time.
fn limits(cpu_ms: u64) -> Value {
    json!({ "timeout_ms": DEADLINE_MS, "cpu_ms": cpu_ms })
}
