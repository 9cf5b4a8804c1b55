//! Clients of `busy`: some that wait for each answer, and an open loop, whose requests are sent
//! when they are due. All of them run on one thread with a small share of the processor, because
//! they stand for other machines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use gristmill_benches::harness::percentile_ms;
use gristmill_client::Connection;
use gristmill_client::http::Request;
use gristmill_platform::Share;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::stage::Stage;

/// The connections over which the streams of HTTP/2 are spread.
const HTTP2_CONNECTIONS: usize = 4;

/// A request without an answer after this time has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// How requests travel.
#[derive(Clone)]
pub(crate) enum Way {
    Http1 {
        address: String,
        idle: Arc<Mutex<Vec<Connection>>>,
    },
    Http2 {
        connections: Vec<http2::SendRequest<Full<Bytes>>>,
        next: Arc<AtomicUsize>,
        host: String,
    },
}

/// The outcomes of requests.
#[derive(Default)]
pub(crate) struct Outcomes {
    /// Answers with 200 that came while it was measured.
    pub(crate) good: usize,
    /// The latencies of these.
    pub(crate) latencies: Vec<Duration>,
    /// The other outcomes while it was measured, by status or reason.
    pub(crate) others: BTreeMap<String, usize>,
}

/// Clients that wait for each answer.
#[derive(Clone, Copy)]
pub(crate) struct ClosedLoop {
    pub(crate) clients: usize,
    /// The time before outcomes count, and the time in which they do.
    pub(crate) warm_up: Duration,
    pub(crate) time: Duration,
}

/// An open loop.
#[derive(Clone, Copy)]
pub(crate) struct Arrivals {
    pub(crate) per_s: f64,
    /// Requests that can be under way. Others are not sent.
    pub(crate) under_way_max: usize,
    /// The time before outcomes count, and the time in which they do.
    pub(crate) warm_up: Duration,
    pub(crate) time: Duration,
}

/// Run `work` on a thread that has a small share of the processor.
pub(crate) fn elsewhere<T: Send>(work: impl AsyncFnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            Share::Long.apply()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work())
        });
        running.join().map_err(|_| anyhow!("the clients' thread panicked"))?
    })
}

impl Way {
    pub(crate) async fn to(stage: &Stage) -> Result<Self> {
        let address = stage.server.data_plane.clone();
        let Some(tls) = stage.tls.as_ref().map(gristmill_client::Tls::for_http2) else {
            return Ok(Self::Http1 { address, idle: Arc::default() });
        };
        let mut connections = Vec::new();
        for _ in 0..HTTP2_CONNECTIONS {
            let stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let stream = TokioIo::new(tls.connect("127.0.0.1", stream).await?);
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            connections.push(sender);
        }
        Ok(Self::Http2 { connections, next: Arc::default(), host: address })
    }

    /// Send a request. Returns the answer's status.
    async fn send(&self, request: &Request<Bytes>) -> Result<u16> {
        match self {
            Self::Http1 { address, idle } => {
                let connection = idle.lock().pop();
                let mut connection = match connection {
                    Some(connection) => connection,
                    None => Connection::open(address).await?,
                };
                let answer = connection.send(request.clone()).await?;
                idle.lock().push(connection);
                Ok(answer.status.as_u16())
            }
            Self::Http2 { connections, next, host } => {
                let at = next.fetch_add(1, Ordering::Relaxed) % connections.len();
                let mut sender = connections[at].clone();
                let (mut head, body) = request.clone().into_parts();
                head.uri = format!("https://{host}{}", head.uri).parse()?;
                sender.ready().await?;
                let request = Request::from_parts(head, Full::new(body));
                let answer = sender.send_request(request).await?;
                let status = answer.status().as_u16();
                answer.into_body().collect().await?;
                Ok(status)
            }
        }
    }

    async fn outcome(&self, request: &Request<Bytes>) -> String {
        match tokio::time::timeout(PATIENCE, self.send(request)).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => "no answer".into(),
        }
    }

    async fn closed_loop(self, request: &Request<Bytes>, load: ClosedLoop) -> Result<Outcomes> {
        let from = Instant::now() + load.warm_up;
        let until = from + load.time;
        let mut tasks = JoinSet::new();
        for _ in 0..load.clients {
            let (way, request) = (self.clone(), request.clone());
            tasks.spawn(async move {
                let mut outcomes = Outcomes::default();
                while Instant::now() < until {
                    let sent = Instant::now();
                    let outcome = way.outcome(&request).await;
                    if (from..until).contains(&Instant::now()) {
                        outcomes.add(outcome, sent.elapsed());
                    }
                }
                outcomes
            });
        }
        let mut all = Outcomes::default();
        while let Some(outcomes) = tasks.join_next().await {
            all.join(outcomes?);
        }
        Ok(all)
    }

    /// Requests that are sent when they are due.
    pub(crate) async fn open_loop(
        self,
        request: &Request<Bytes>,
        arrivals: Arrivals,
    ) -> Result<Outcomes> {
        let Arrivals { per_s, under_way_max, warm_up, time } = arrivals;
        let (began, interval) = (Instant::now(), Duration::from_secs_f64(1.0 / per_s));
        let (from, until) = (began + warm_up, began + warm_up + time);
        let (mut due, mut tasks, mut all) = (began, JoinSet::new(), Outcomes::default());
        while due < until {
            tokio::time::sleep_until(due.into()).await;
            if tasks.len() < under_way_max {
                let (way, request, sent) = (self.clone(), request.clone(), due);
                tasks.spawn(async move {
                    let outcome = way.outcome(&request).await;
                    (outcome, sent.elapsed(), Instant::now())
                });
            } else if due >= from {
                *all.others.entry("not sent".into()).or_default() += 1;
            }
            while let Some(ended) = tasks.try_join_next() {
                let (outcome, took, at) = ended?;
                if (from..until).contains(&at) {
                    all.add(outcome, took);
                }
            }
            due += interval;
        }
        tasks.abort_all();
        Ok(all)
    }
}

impl ClosedLoop {
    /// The outcomes of this request to the server.
    pub(crate) fn run(self, stage: &Stage, request: &Request<Bytes>) -> Result<Outcomes> {
        elsewhere(async || Way::to(stage).await?.closed_loop(request, self).await)
    }
}

impl Outcomes {
    fn add(&mut self, outcome: String, took: Duration) {
        if outcome == "200" {
            self.good += 1;
            self.latencies.push(took);
        } else {
            *self.others.entry(outcome).or_default() += 1;
        }
    }

    fn join(&mut self, other: Self) {
        self.good += other.good;
        self.latencies.extend(other.latencies);
        for (outcome, count) in other.others {
            *self.others.entry(outcome).or_default() += count;
        }
    }

    /// The milliseconds within which `percent` of the good answers came. None if no answer came.
    pub(crate) fn percentile_ms(&self, percent: f64) -> Option<f64> {
        percentile_ms(&self.latencies, percent)
    }
}
