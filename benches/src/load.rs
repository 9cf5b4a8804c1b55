//! Requests at a steady pace of 100 a second, independent of their answers. Each is timed from the
//! moment when it was due.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use gristmill_client::http::Request;
use gristmill_client::http::header::CONTENT_TYPE;
use gristmill_client::{Answer, Connection};
use gristmill_platform::Share;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::files::read;
use crate::harness::percentile_ms;

const INTERVAL: Duration = Duration::from_millis(10);
/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says what is wrong with an answer, or whether its latency is of interest.
pub type Check = Arc<dyn Fn(&Answer) -> Result<bool> + Send + Sync>;

/// A request, and what its answer must be. Other answers than 200 have failed anyway.
#[derive(Clone)]
pub struct Question {
    pub address: String,
    pub path: String,
    pub body: Bytes,
    pub check: Check,
}

/// The load under way. One thread decides when a request is due, the other one sends requests and
/// receives answers.
pub struct Load {
    ended: Arc<AtomicBool>,
    pacer: JoinHandle<bool>,
    client: JoinHandle<Report>,
}

/// The latencies and failures of the requests.
#[derive(Default)]
pub struct Report {
    pub latencies: Vec<Duration>,
    /// The number of failed requests for each reason.
    pub failures: BTreeMap<String, usize>,
    /// Whether the client had real-time priority. If not, it may have been late itself.
    pub had_real_time: bool,
}

impl Load {
    pub fn start(question: Question) -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let (due, dues) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // The client stands for a separate machine. If it waited for this machine's processor, the
        // figures would blame the server.
        let client = thread::spawn(move || {
            let had_real_time = run_promptly();
            let report = runtime.block_on(answer_all(question, dues));
            Report { had_real_time, ..report }
        });
        let until = ended.clone();
        // The pacer is a thread, because the runtime's timers are only precise to a millisecond,
        // and latencies are about two.
        let pacer = thread::spawn(move || {
            let had_real_time = run_promptly();
            pace(&due, &until);
            had_real_time
        });
        Ok(Self { ended, pacer, client })
    }

    /// Send no more requests, and wait for those under way.
    pub fn finish(self) -> Result<Report> {
        self.ended.store(true, Ordering::Relaxed);
        let panicked = |_| anyhow!("the client's thread panicked");
        let pacer_had = self.pacer.join().map_err(panicked)?;
        let report = self.client.join().map_err(panicked)?;
        Ok(Report { had_real_time: pacer_had && report.had_real_time, ..report })
    }
}

/// Let the system run this thread as soon as it has work, before all threads of the server. Without
/// real-time priority half of the slowest answers were slow because the client itself had waited.
/// Returns whether it got that priority.
fn run_promptly() -> bool {
    let Err(error) = set_real_time() else { return true };
    eprintln!("the client has no real-time priority, and may be late: {error:#}");
    if let Err(error) = Share::Serving.apply() {
        eprintln!("cannot shorten the time slice of the client: {error}");
    }
    false
}

/// Give the calling thread the lowest real-time priority.
fn set_real_time() -> Result<()> {
    let itself = std::fs::read_link("/proc/thread-self")?;
    let thread = itself.file_name().context("/proc/thread-self has no thread")?;
    let set = Command::new("chrt").args(["--fifo", "--pid", "1"]).arg(thread).output()?;
    ensure!(set.status.success(), "chrt: {}", String::from_utf8_lossy(&set.stderr).trim());
    Ok(())
}

fn pace(due: &UnboundedSender<Instant>, ended: &AtomicBool) {
    let mut next = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        next += INTERVAL;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if due.send(next).is_err() {
            return;
        }
    }
}

type Idle = Arc<Mutex<Vec<Connection>>>;

async fn answer_all(question: Question, mut dues: UnboundedReceiver<Instant>) -> Report {
    let (question, idle) = (Arc::new(question), Idle::default());
    let (mut report, mut tasks) = (Report::default(), JoinSet::new());
    while let Some(due) = dues.recv().await {
        let (question, idle) = (question.clone(), idle.clone());
        tasks.spawn(async move {
            let answered = tokio::time::timeout(PATIENCE, ask(&question, &idle)).await;
            let answered = answered.unwrap_or_else(|_| Err(anyhow!("no answer in {PATIENCE:?}")));
            answered.map(|(_, counts)| counts.then(|| due.elapsed()))
        });
        while let Some(ended) = tasks.try_join_next() {
            report.add(ended);
        }
    }
    while let Some(ended) = tasks.join_next().await {
        report.add(ended);
    }
    report
}

/// Ask once, on a connection that is idle or on a new one. Returns the answer, and whether its
/// latency is of interest.
async fn ask(question: &Question, idle: &Idle) -> Result<(Answer, bool)> {
    let connection = idle.lock().pop();
    let mut connection = match connection {
        Some(connection) => connection,
        None => Connection::open(&question.address).await?,
    };
    let request = Request::post(&question.path)
        .header(CONTENT_TYPE, "application/json")
        .body(question.body.clone())?;
    let answer = connection.send(request).await?.ok()?;
    idle.lock().push(connection);
    let counts = (question.check)(&answer)?;
    Ok((answer, counts))
}

impl Question {
    /// A request of a pipeline with the model `ranker`, whose answer is not looked at.
    ///
    /// # Errors
    /// The file with the body cannot be read.
    pub fn ranker(address: &str, path: &str) -> Result<Self> {
        Ok(Self {
            address: address.to_owned(),
            path: path.to_owned(),
            body: read(Path::new("benches/scenarios/ranker.json"))?.into(),
            check: Arc::new(|_| Ok(true)),
        })
    }

    /// Ask once, and expect the same answer from now on.
    ///
    /// # Errors
    /// The first request fails.
    pub async fn answered(mut self) -> Result<Self> {
        let (first, _) = ask(&self, &Idle::default()).await.context("the first request")?;
        self.check = Arc::new(move |answer| {
            ensure!(answer.body == first.body, "another answer");
            Ok(true)
        });
        Ok(self)
    }

    /// Whether the answer is right and comes within `time`.
    pub async fn is_answered(&self, time: Duration) -> bool {
        let idle = Idle::default();
        tokio::time::timeout(time, ask(self, &idle)).await.is_ok_and(|answer| answer.is_ok())
    }
}

impl Report {
    fn add(&mut self, ended: Result<Result<Option<Duration>>, tokio::task::JoinError>) {
        match ended {
            Ok(Ok(latency)) => self.latencies.extend(latency),
            Ok(Err(error)) => *self.failures.entry(format!("{error:#}")).or_default() += 1,
            Err(error) => *self.failures.entry(error.to_string()).or_default() += 1,
        }
    }

    /// The milliseconds within which `percent` of the answers came. None if no answer came.
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        percentile_ms(&self.latencies, percent)
    }
}
