//! `gristmill serve` as a process, with its data in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gristmill_client::{AdminClient, Client, Listen, ServerProcess, Tls, serve};
use serde_json::json;

use crate::files::read;

pub const ADMIN_TOKEN: &str = "benchmark-admin-token";

const PAGE_BYTES: u64 = 4096;

/// A running server; killed when dropped, and its data removed.
pub struct Server {
    command: Command,
    tls: Option<Tls>,
    process: ServerProcess,
    data_dir: PathBuf,
    /// Host and port of each plane.
    pub data_plane: String,
    pub grpc: String,
    pub admin_plane: String,
    pub admin: AdminClient,
}

impl Server {
    /// Start the binary `gristmill` with an empty data directory, on the library in
    /// `ORT_DYLIB_PATH`, and with these flags beside its addresses. Its log goes to `log`.
    pub fn start(gristmill: &Path, flags: &[&str], log: impl Into<Stdio>) -> Result<Self> {
        Self::start_with(gristmill, flags, log, None)
    }

    /// The same with flags that give it TLS, which is reached with these settings.
    pub fn start_with(
        gristmill: &Path,
        flags: &[&str],
        log: impl Into<Stdio>,
        tls: Option<Tls>,
    ) -> Result<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let library = std::env::var_os("ORT_DYLIB_PATH").context("ORT_DYLIB_PATH is not set")?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("gristmill-bench-{}-{number}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        // In a container, an earlier run that was killed may have had the same process id.
        let _ = std::fs::remove_dir_all(&data_dir);
        let mut command = serve(gristmill, &data_dir, Listen::FREE_PORTS);
        command
            .args(flags)
            // Nothing is compiled beside what is measured.
            .env("GRISTMILL_PREPARE_RUNTIMES", "false")
            .env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("GRISTMILL_ONNXRUNTIME_LIBRARY", library)
            .stderr(log);
        let mut process = ServerProcess::spawn(&mut command)?;
        let Planes { data_plane, grpc, admin_plane, admin } =
            Planes::of(&mut process, tls.clone())?;
        Ok(Self { command, tls, process, data_dir, data_plane, grpc, admin_plane, admin })
    }

    /// End it at once, as `kill -9` does, and start it again on the same data. Returns the time
    /// from the start until it serves. Its addresses may be others then.
    pub fn restart(&mut self) -> Result<Duration> {
        self.process.kill();
        let began = Instant::now();
        self.process = ServerProcess::spawn(&mut self.command)?;
        let Planes { data_plane, grpc, admin_plane, admin } =
            Planes::of(&mut self.process, self.tls.clone())?;
        let took = began.elapsed();
        (self.data_plane, self.grpc, self.admin_plane, self.admin) =
            (data_plane, grpc, admin_plane, admin);
        Ok(took)
    }

    /// Put the models `ranker` and `digits`, and the tenant `good`, which needs no key, with the
    /// pipeline `ranker`.
    pub async fn put_good(&self, components: &Path) -> Result<()> {
        for model in ["ranker", "digits"] {
            let onnx = read(&PathBuf::from(format!("models/{model}/{model}.onnx")))?;
            self.admin.put(&format!("models/{model}"), onnx).await?;
        }
        self.admin.put_json("tenants/good", &json!({ "open": true })).await?;
        self.put_plugins(components, "good", &["ranker-pre", "ranker-post"]).await?;
        let ranker = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
        self.admin.put_json("tenants/good/pipelines/ranker", &ranker).await?;
        Ok(())
    }

    /// Give a tenant these of the built plugins.
    pub async fn put_plugins(
        &self,
        components: &Path,
        tenant: &str,
        plugins: &[&str],
    ) -> Result<()> {
        for plugin in plugins {
            let file = read(&components.join(format!("{plugin}.wasm")))?;
            self.admin.put(&format!("tenants/{tenant}/plugins/{plugin}"), file).await?;
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Whether the process has not ended.
    pub fn is_alive(&mut self) -> Result<bool> {
        Ok(self.process.child.try_wait()?.is_none())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data are removed once it has ended.
        self.process.kill();
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

/// How a server is reached.
struct Planes {
    data_plane: String,
    grpc: String,
    admin_plane: String,
    admin: AdminClient,
}

impl Planes {
    /// Those of a server that was just started, once it serves.
    fn of(process: &mut ServerProcess, tls: Option<Tls>) -> Result<Self> {
        let addresses = process.wait_until_serving()?;
        let client = Client::new(addresses.admin.parse()?);
        let client = match tls {
            Some(tls) => client.with_tls(tls),
            None => client,
        };
        let admin_plane = client.address().authority().to_owned();
        let admin = AdminClient::new(client.with_token(ADMIN_TOKEN)?);
        let data_plane = addresses.data_authority().to_owned();
        let grpc = addresses.grpc_authority().to_owned();
        Ok(Self { data_plane, grpc, admin_plane, admin })
    }
}

/// The memory that the process `pid` has.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages = statm.split_whitespace().nth(1).context("no resident pages")?;
    Ok(pages.parse::<u64>()? * PAGE_BYTES)
}
