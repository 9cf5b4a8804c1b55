//! What hostile plugins ask: stores and services that work, and such as hang, end late or never, or
//! answer garbage.
//!
//! They stand for other machines, so they have a small share of the processor.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use gristmill_platform::Share;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as Connection};
use tokio::runtime::Runtime;

/// How long Redis may take to listen.
const LISTENS_IN: Duration = Duration::from_secs(60);
/// How many ports are tried for it: another process may take one before it does.
const PORTS_TRIED: usize = 10;
/// The memory that it has: hostile plugins fill it.
const MEMORY_MAX: &str = "256mb";
/// The pause between two bytes of a slow service.
const SLOW_INTERVAL: Duration = Duration::from_millis(100);

/// How a peer behaves once it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Prompt,
    Silent,
    /// Sends one byte of its answer after the other.
    Slow,
    Endless,
    /// Leads to a peer that is not granted.
    Redirecting,
    /// The tenant may not ask it. It is silent.
    Forbidden,
    /// Greets like Redis. Its answers claim more than can be.
    FalseRedis,
}

/// Those over HTTP.
const SERVICES: [Peer; 6] =
    [Peer::Prompt, Peer::Silent, Peer::Slow, Peer::Endless, Peer::Redirecting, Peer::Forbidden];

pub(crate) struct Peers {
    redis: Redis,
    stopped_redis: Redis,
    /// Nothing listens there any more.
    gone: SocketAddr,
    false_redis: SocketAddr,
    services: Vec<(Peer, SocketAddr)>,
}

impl Peers {
    /// Start all, Redis by this program. All but Redis end with this process.
    pub(crate) fn start(redis_server: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let forbidden = serve(&runtime, Peer::Forbidden, None)?;
        let serve = |peer| serve(&runtime, peer, Some(forbidden));
        let others = SERVICES.into_iter().filter(|peer| *peer != Peer::Forbidden);
        let mut services =
            others.map(|peer| Ok((peer, serve(peer)?))).collect::<Result<Vec<_>>>()?;
        services.push((Peer::Forbidden, forbidden));
        let false_redis = serve(Peer::FalseRedis)?;
        thread::Builder::new().name("peers".into()).spawn(move || {
            let _ = Share::Long.apply();
            runtime.block_on(pending::<()>());
        })?;
        let gone = Redis::start(redis_server)?.address;
        let stopped_redis = Redis::start(redis_server)?;
        stopped_redis.stop()?;
        let redis = Redis::start(redis_server)?;
        Ok(Self { redis, stopped_redis, gone, false_redis, services })
    }

    /// The server's configuration: its stores.
    pub(crate) fn configuration(&self) -> String {
        let stores = [
            ("features", self.redis.address),
            ("stopped", self.stopped_redis.address),
            ("gone", self.gone),
            ("garbage", self.false_redis),
        ];
        let table = |(name, address): (&str, SocketAddr)| {
            format!("[stores.{name}]\nredis = \"redis://{address}/0\"\n")
        };
        stores.map(table).concat() + "[stores.sessions]\nembedded = true\n"
    }

    /// The stores that a tenant's document grants.
    pub(crate) fn granted_stores() -> Value {
        json!({
            "features": "write", "stopped": "write", "gone": "write", "garbage": "write",
            "sessions": "write",
        })
    }

    /// The services that a tenant's document grants: all but the forbidden one.
    pub(crate) fn granted_services(&self) -> Value {
        let granted = self.services.iter().filter(|(peer, _)| *peer != Peer::Forbidden);
        let grant = |(_, address): &(Peer, SocketAddr)| {
            json!({
                "scheme": "http", "host": address.ip().to_string(), "port": address.port(),
                "addresses": ["127.0.0.0/8"],
            })
        };
        granted.map(grant).collect()
    }

    /// What the plugin `hostile-services` shall do to ask this service many times in one call.
    pub(crate) fn asking(&self, service: Peer) -> Result<Value> {
        let found = self.services.iter().find(|(peer, _)| *peer == service);
        let (_, address) = found.with_context(|| format!("{service:?} is no service"))?;
        Ok(json!({ "url": format!("http://{address}/"), "times": 1_000 }))
    }
}

/// A Redis server without files, killed when dropped.
struct Redis {
    process: Child,
    address: SocketAddr,
}

impl Redis {
    /// It listens when this returns.
    fn start(program: &Path) -> Result<Self> {
        for _ in 0..PORTS_TRIED {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            drop(listener);
            let process = Command::new(program)
                .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
                .args(["--save", "", "--maxmemory", MEMORY_MAX])
                .args(["--maxmemory-policy", "allkeys-lru", "--dir"])
                .arg(std::env::temp_dir())
                .stdout(Stdio::null())
                .spawn()
                .with_context(|| program.display().to_string())?;
            let mut redis = Self { process, address };
            if redis.listens()? {
                return Ok(redis);
            }
        }
        bail!("Redis ended on each of {PORTS_TRIED} ports")
    }

    /// Wait until it does. Returns false if it ends.
    fn listens(&mut self) -> Result<bool> {
        let give_up = Instant::now() + LISTENS_IN;
        while TcpStream::connect(self.address).is_err() {
            ensure!(Instant::now() < give_up, "Redis does not listen within {LISTENS_IN:?}");
            thread::sleep(Duration::from_millis(20));
            if self.process.try_wait()?.is_some() {
                return Ok(false);
            }
        }
        Ok(self.process.try_wait()?.is_none())
    }

    /// Let it stand still: the system accepts connections for it, and it answers nothing.
    fn stop(&self) -> Result<()> {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-STOP", &pid]).status()?;
        ensure!(sent.success(), "Redis cannot be stopped");
        Ok(())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Begin to serve on this runtime. `other` is where a redirect leads.
fn serve(runtime: &Runtime, peer: Peer, other: Option<SocketAddr>) -> Result<SocketAddr> {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    let location = other.map(|other| format!("http://{other}/")).unwrap_or_default();
    let location = Arc::<str>::from(location);
    runtime.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(answer_all(peer, client, location.clone()));
        }
    });
    Ok(address)
}

/// Answer what comes over a connection, until its client leaves.
async fn answer_all(peer: Peer, mut client: Connection, location: Arc<str>) -> io::Result<()> {
    let mut received = vec![0; 64 << 10];
    loop {
        let length = client.read(&mut received).await?;
        if length == 0 {
            return Ok(());
        }
        match peer {
            Peer::Silent | Peer::Forbidden => {}
            Peer::Prompt => client.write_all(&whole("200 OK", "", "hello")).await?,
            Peer::Redirecting => {
                let header = format!("location: {location}\r\n");
                client.write_all(&whole("302 Found", &header, "")).await?;
            }
            Peer::Slow => {
                client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await?;
                loop {
                    client.write_all(b"x").await?;
                    tokio::time::sleep(SLOW_INTERVAL).await;
                }
            }
            Peer::Endless => {
                client.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
                let part = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).into_bytes();
                loop {
                    client.write_all(&part).await?;
                }
            }
            Peer::FalseRedis => {
                let text = String::from_utf8_lossy(&received[..length]);
                let greetings = text.matches("SETINFO").count();
                if greetings == 0 {
                    client.write_all(b"*1000000000\r\n$536870912\r\nx").await?;
                }
                client.write_all("+OK\r\n".repeat(greetings).as_bytes()).await?;
            }
        }
    }
}

/// An answer with this status, these lines of headers and this body.
fn whole(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}
