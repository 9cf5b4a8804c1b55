//! The server with two tenants: `good` with the pipeline `ranker`, and `busy` with the pipeline
//! `spin`, whose calls take as long as they are told.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use gristmill_benches::load::Question;
use gristmill_benches::server::Server;
use gristmill_client::http::Request;
use gristmill_client::{Answer, Client, Tls, TlsFiles};
use gristmill_load::median;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tokio::runtime::Runtime;

/// The API key of the tenant `busy`.
const KEY: &str = "the-key-of-busy-0001";

/// The time of a request of `busy`: the default.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Stage {
    pub(crate) server: Server,
    /// Trusts the server, if it speaks TLS.
    pub(crate) tls: Option<Tls>,
    /// The certificate and its key.
    folder: PathBuf,
}

/// The numbers of rounds that are tried for a call of some time.
const TRIES: usize = 100;

impl Stage {
    /// Start the server, with TLS or without, and put everything on it.
    pub(crate) fn set(
        runtime: &Runtime,
        gristmill: &Path,
        components: &Path,
        with_tls: bool,
    ) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("gristmill-pace-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let path = |name: &str| folder.join(name).display().to_string();
        let (certificate, key) = (path("certificate.pem"), path("key.pem"));
        let mut flags = vec!["--log", "error"];
        let mut tls = None;
        if with_tls {
            let pair = KeyPair::generate()?;
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
            std::fs::write(&certificate, params.self_signed(&pair)?.pem())?;
            std::fs::write(&key, pair.serialize_pem())?;
            flags.extend(["--tls-certificate", &certificate, "--tls-key", &key]);
            let ca = Some(PathBuf::from(&certificate));
            tls = Some(Tls::open(&TlsFiles { ca, identity: None })?);
        }
        let server = Server::start_with(gristmill, &flags, Stdio::inherit(), tls.clone())?;
        let stage = Self { server, tls, folder };
        runtime.block_on(stage.deploy(components))?;
        Ok(stage)
    }

    async fn deploy(&self, components: &Path) -> Result<()> {
        let admin = &self.server.admin;
        self.server.put_good(components).await?;
        admin.put_json("tenants/busy", &json!({ "api_keys": [KEY] })).await?;
        self.server.put_plugins(components, "busy", &["hostile"]).await?;
        let limits = json!({ "timeout_ms": TIMEOUT.as_millis() as u64 });
        let spin =
            json!({ "pre": "hostile", "model": "digits", "post": "hostile", "limits": limits });
        admin.put_json("tenants/busy/pipelines/spin", &spin).await?;
        Ok(())
    }

    /// A request of `good`.
    pub(crate) fn question(&self) -> Result<Question> {
        Question::ranker(&self.server.data_plane, "/v1/good/infer/ranker")
    }

    /// A request of `busy` whose preprocess takes `time` of CPU time, by the server's own count.
    ///
    /// # Errors
    /// A request fails, or no number of rounds takes this time: an empty call may take longer.
    pub(crate) async fn spin(&self, time: Duration) -> Result<Request<Bytes>> {
        let wanted = time.as_secs_f64() * 1e6;
        let mut rounds = 1 << 14;
        for _ in 0..TRIES {
            let mut took = Vec::new();
            for _ in 0..9 {
                took.push(self.cpu_us(rounds).await?);
            }
            let took = median(&took).unwrap_or_default().max(1.0);
            let next = (rounds as f64 * wanted / took) as u64;
            if (0.9..=1.1).contains(&(took / wanted)) {
                return request(next);
            }
            rounds = next.clamp(rounds / 4, rounds * 4).max(1);
        }
        bail!("no call takes {wanted} us: the last one had {rounds} rounds")
    }

    /// The CPU time in microseconds of the plugin calls of one request.
    async fn cpu_us(&self, rounds: u64) -> Result<f64> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let client = Client::new(format!("{scheme}://{}", self.server.data_plane).parse()?);
        let client = match &self.tls {
            Some(tls) => client.with_tls(tls.clone()),
            None => client,
        };
        let mut request = request(rounds)?;
        request.headers_mut().insert("gristmill-receipt", "true".try_into()?);
        let answer: Answer = client.send(request).await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.beginning());
        let receipt = answer.header("gristmill-receipt");
        let used = receipt.split(", ").find_map(|part| part.strip_prefix("plugin-cpu-us="));
        used.context("no CPU time in a receipt")?.parse().context("no number in a receipt")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn request(rounds: u64) -> Result<Request<Bytes>> {
    let request = Request::post(format!("/v1/busy/infer/spin?do=spin&rounds={rounds}"));
    Ok(request.header("authorization", format!("Bearer {KEY}")).body(Bytes::new())?)
}
