//! `gristmill serve` as a process of its own, with its data in a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde_json::Value;

use crate::connection::Connection;

pub const ADMIN_TOKEN: &str = "benchmark-admin-token";

/// A running server; killed when dropped, and its data removed.
pub struct Server {
    child: Child,
    data_dir: PathBuf,
    /// Host and port of each plane.
    pub data_plane: String,
    pub grpc: String,
    pub admin_plane: String,
}

impl Server {
    /// Start the binary `gristmill` with an empty data directory, on the library in `ORT_DYLIB_PATH`, and with
    /// these flags beside its addresses. Its log goes to `log`.
    pub fn start(gristmill: &Path, flags: &[&str], log: impl Into<Stdio>) -> Result<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let library = std::env::var_os("ORT_DYLIB_PATH").context("ORT_DYLIB_PATH is not set")?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("gristmill-bench-{}-{number}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        // Of a run that was killed, in a container that counts its processes from the same number.
        let _ = std::fs::remove_dir_all(&data_dir);
        let child = Command::new(gristmill)
            .args(["serve", "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"])
            .args(["--admin-listen", "127.0.0.1:0"])
            .args(flags)
            .arg("--data-dir")
            .arg(&data_dir)
            .env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("GRISTMILL_ONNXRUNTIME_LIBRARY", library)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", gristmill.display()))?;
        let (data_plane, grpc, admin_plane) = (String::new(), String::new(), String::new());
        let mut server = Self { child, data_dir, data_plane, grpc, admin_plane };
        server.read_addresses()?;
        Ok(server)
    }

    /// Wait until the server says where it listens.
    fn read_addresses(&mut self) -> Result<()> {
        let stdout = self.child.stdout.take().context("no standard output")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            let Some((plane, address)) = line.split_once(" http://") else { continue };
            match plane.trim_end() {
                "data plane" => self.data_plane = address.to_owned(),
                "grpc" => self.grpc = address.to_owned(),
                "admin plane" => {
                    self.admin_plane = address.to_owned();
                    return Ok(());
                }
                _ => {}
            }
        }
        bail!("the server did not start: {}", self.child.wait()?)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended.
    pub fn is_alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Put a document by the admin API.
    pub async fn put_json(&self, path: &str, document: &Value) -> Result<()> {
        self.put(path, "application/json", document.to_string().into_bytes()).await
    }

    /// Put a file by the admin API.
    pub async fn put(&self, path: &str, content_type: &str, body: Vec<u8>) -> Result<()> {
        let request = Request::put(format!("/admin/v1/{path}"))
            .header(HOST, "localhost")
            .header(AUTHORIZATION, format!("Bearer {ADMIN_TOKEN}"))
            .header(CONTENT_TYPE, content_type)
            .body(Full::from(Bytes::from(body)))?;
        let mut connection = Connection::open(&self.admin_plane).await?;
        connection.send(request).await.with_context(|| format!("PUT {path}"))?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}
