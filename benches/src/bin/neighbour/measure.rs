//! The figures of the neighbour: alone, and while each case attacks the same server.
//!
//! A case has three phases: one lone call, if the case has a CPU budget; the attack, with the
//! neighbour's load beside it; and a rest, after which the next case begins. A server that does not
//! recover is replaced by a new one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_benches::corpus::{messages, models, pictures};
use gristmill_benches::files::read;
use gristmill_benches::load::{Load, Question, Report};
use gristmill_benches::server::resident_bytes;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::attack::{Addresses, Attack, Turn};
use crate::attackers::{Outcomes, Plan};
use crate::cases::{CASES, Case, Kind, PATIENT};
use crate::peers::Peers;
use crate::stage::{CPU_MS, DEADLINE_MS, Stage, TENANT_BYTES, TRY_PAGE};
use crate::watch::{Watch, cpu_at_rest};

const ALONE: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_secs(1);
const ATTACK: Duration = Duration::from_secs(3);
/// Long enough for all deeds, and for a p99 of 2,000 requests.
const CORPUS_ATTACK: Duration = Duration::from_secs(30);
/// The neighbour's load continues for this time after the attack, because work of the attack may
/// still run.
const AFTERMATH: Duration = Duration::from_secs(1);
/// A hostile request is waited for until this time after the end of the attack.
const PATIENCE: Duration = Duration::from_secs(15);
const JAVASCRIPT_PATIENCE: Duration = Duration::from_secs(300);
/// A server that is still busy after this time is restarted, because it would change the figures of
/// the next case.
const RECOVERS_IN: Duration = Duration::from_secs(5);
/// The same for a server that holds so much more memory than before the case.
const RECOVERED_BYTES: u64 = 256 << 20;

pub(crate) struct Bench {
    gristmill: PathBuf,
    components: PathBuf,
    peers: Peers,
    runtime: Runtime,
    stage: Option<(Stage, Question)>,
    /// The number of the next upload. Each upload gets another one, so that no two are the same.
    rounds: u64,
}

impl Bench {
    pub(crate) fn new(gristmill: PathBuf, components: PathBuf, peers: Peers) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { gristmill, components, peers, runtime, stage: None, rounds: 0 })
    }

    /// The server and the neighbour's request. A server is started if none runs.
    fn stage(&mut self) -> Result<(&mut Stage, Question)> {
        if self.stage.is_none() {
            let stage = Stage::set(&self.runtime, &self.gristmill, &self.components, &self.peers)?;
            let question = self.runtime.block_on(stage.question()?.answered())?;
            let warm = Load::start(question.clone())?;
            thread::sleep(WARM_UP);
            warm.finish()?;
            self.stage = Some((stage, question));
        }
        let (stage, question) = self.stage.as_mut().context("no server")?;
        Ok((stage, question.clone()))
    }

    /// The neighbour's figures without attackers.
    pub(crate) fn alone(&mut self) -> Result<Value> {
        eprintln!("alone");
        let (_, question) = self.stage()?;
        let load = Load::start(question)?;
        thread::sleep(ALONE);
        let mut figures = neighbour(load.finish()?);
        figures["what"] = "alone".into();
        Ok(figures)
    }

    /// The figures of the case. For the corpus also the neighbour's p99 without attackers just
    /// before and after it: the machine's other work may change while all cases run.
    pub(crate) fn measure(&mut self, case: &Case, attackers: usize) -> Result<Value> {
        if !matches!(case.kind, Kind::Corpus) {
            return self.beside(case, attackers);
        }
        let before = self.alone()?;
        let mut figures = self.beside(case, attackers)?;
        let after = self.alone()?;
        figures["alone_p99_ms"] = json!([before["p99_ms"], after["p99_ms"]]);
        Ok(figures)
    }

    /// The neighbour's figures while this many attackers run the case, and the attackers' figures.
    fn beside(&mut self, case: &Case, attackers: usize) -> Result<Value> {
        let name = format!("{}, {attackers} at once", case.name);
        eprintln!("{name}");
        let attack = Arc::new(self.attack(&case.kind)?);
        self.rounds += 1_000;
        let first_round = self.rounds;
        let (stage, question) = self.stage()?;
        let (pid, to) = (stage.server.pid(), addresses(stage));
        let (resident, logged) = (resident_bytes(pid)?, stage.log_bytes()?);
        let watch = Watch::start(pid);
        let once = matches!(case.kind, Kind::JavaScript);
        let is_corpus = matches!(case.kind, Kind::Corpus);
        let plan = Plan {
            attack: attack.clone(),
            to,
            attackers,
            time: if is_corpus { CORPUS_ATTACK } else { ATTACK },
            patience: if once { JAVASCRIPT_PATIENCE } else { PATIENCE },
            once,
            over: watch.killed(),
            first_round,
        };
        let lone = case.kind.has_cpu_budget().then(|| lone_call(pid, &plan)).transpose()?;
        let load = Load::start(question)?;
        let outcomes = plan.run()?;
        thread::sleep(AFTERMATH);
        let mut figures = neighbour(load.finish()?);
        let seen = watch.finish()?;
        let (stage, _) = self.stage()?;
        let grown = seen.peak_bytes.saturating_sub(resident);
        figures["what"] = name.into();
        figures["alive"] = stage.server.is_alive()?.into();
        figures["memory"] = json!({
            "grown_mib": grown >> 20,
            "beyond_budget_mib_per_request": beyond_budget(grown, attackers) >> 20,
            "killed": seen.killed,
        });
        figures["log_bytes"] = (stage.log_bytes()? - logged).into();
        let overrun = attack.has_deadline().then(|| over(outcomes.longest, DEADLINE_MS));
        figures["overrun"] = json!({ "cpu_ms": lone.flatten(), "deadline_ms": overrun });
        figures["attackers"] = json!({
            "outcomes": outcomes.counts,
            "unanswered": outcomes.unanswered,
            "longest_ms": milliseconds(outcomes.longest),
        });
        self.recover(&outcomes, resident)?;
        Ok(figures)
    }

    /// Wait until the server has recovered. If it does not, drop it, and the next case starts
    /// another one.
    fn recover(&mut self, outcomes: &Outcomes, resident_before: u64) -> Result<()> {
        if let Some(why) = self.trouble(outcomes, resident_before)? {
            eprintln!("  starting another server: {why}");
            self.stage = None;
        }
        Ok(())
    }

    /// What is wrong with the server after a case.
    fn trouble(&mut self, outcomes: &Outcomes, before: u64) -> Result<Option<String>> {
        let (stage, question) = self.stage()?;
        let pid = stage.server.pid();
        if !stage.server.is_alive()? {
            return Ok(Some("it ended".into()));
        }
        if outcomes.unanswered > 0 {
            return Ok(Some(format!("{} requests have no answer", outcomes.unanswered)));
        }
        if !came_to_rest(pid)? {
            return Ok(Some(format!("it still works after {RECOVERS_IN:?}")));
        }
        let now = resident_bytes(pid)?;
        if now > before + RECOVERED_BYTES {
            let [before, now] = [before, now].map(|bytes| bytes >> 20);
            return Ok(Some(format!("it holds {now} MiB, and held {before} MiB before")));
        }
        let answers = self.runtime.block_on(question.is_answered(RECOVERS_IN));
        Ok((!answers).then(|| format!("it gives no answer within {RECOVERS_IN:?}")))
    }

    fn attack(&mut self, kind: &Kind) -> Result<Attack> {
        if let Some((path, body)) = kind.deed(&self.peers)? {
            return Ok(Attack::Post { path, body });
        }
        let honest_plugin = || read(&self.components.join("ranker-pre.wasm"));
        Ok(match kind {
            Kind::ShortCalls => {
                let rounds = self.rounds_of_a_short_call()?;
                let path = format!("/v1/evil/infer/hostile?do=spin&rounds={rounds}");
                Attack::Post { path, body: pictures::bmp_1x1().into() }
            }
            Kind::RareGuest(deed) => Attack::RarePost {
                path: format!("/v1/evil/infer/hostile?do={deed}"),
                harmless: "/v1/evil/infer/hostile".into(),
            },
            Kind::SlowReaders(deed) => {
                Attack::SlowRead { path: format!("/v1/evil/infer/hostile?do={deed}") }
            }
            Kind::Picture(pipeline, make) => {
                Attack::Post { path: format!("/v1/evil/infer/{pipeline}"), body: make()?.into() }
            }
            Kind::LeavingClients(pipeline, make) => Attack::LeavingPost {
                path: format!("/v1/evil/infer/{pipeline}"),
                body: make()?.into(),
            },
            Kind::Json(make) => {
                let path = format!("/v2/models/{}/infer", messages::MODEL);
                Attack::Post { path, body: make()?.into() }
            }
            Kind::Grpc(make) => Attack::Grpc { message: make()?.into() },
            Kind::Plugin(make) => Attack::Plugin { file: make(&honest_plugin()?), same: false },
            Kind::SamePlugin => {
                let file = read(&self.components.join("hostile.wasm"))?;
                Attack::Plugin { file, same: true }
            }
            Kind::JavaScript => {
                let file = read(&self.components.join("hostile-js.wasm"))?;
                Attack::Plugin { file, same: false }
            }
            Kind::Model(make, input) => Attack::Model { onnx: make(), input: *input },
            Kind::Asset(name, make, (path, text)) => Attack::Asset {
                name,
                make: *make,
                path: format!("/v1/evil/infer/{path}"),
                body: text.as_bytes().into(),
            },
            Kind::PaddedModel => {
                let pad = json!({ "x": { "axis": 1, "value": 0, "buckets": [16, 65_536] } });
                let cut = json!({ "y": { "axis": 1, "as": "x" } });
                let config = json!({ "pad": pad, "cut": cut, "max_batch_size": 8 });
                Attack::ConfiguredModel { onnx: models::shares(), config }
            }
            Kind::TryPage => Attack::Get { path: TRY_PAGE },
            Kind::Events => Attack::Follow,
            Kind::Corpus => {
                let deeds = CASES.iter().map(|case| case.kind.deed(&self.peers));
                let requests = deeds.filter_map(Result::transpose).collect::<Result<_>>()?;
                Attack::PostInTurn { requests, sent: AtomicUsize::new(0) }
            }
            Kind::Guest(_) | Kind::GuestIn(..) | Kind::Told(..) | Kind::Asks(_) => {
                unreachable!("a deed of a plugin")
            }
        })
    }

    /// The number of rounds that the hostile plugin spins in about four fifths of its CPU budget.
    fn rounds_of_a_short_call(&mut self) -> Result<u64> {
        const LEAST: Duration = Duration::from_millis(CPU_MS / 5);
        let (stage, _) = self.stage()?;
        let to = addresses(stage);
        let mut rounds = 1 << 20;
        loop {
            let path = format!("/v1/evil/infer/hostile?do=spin&rounds={rounds}");
            let attack = Attack::Post { path, body: Bytes::new() };
            let began = Instant::now();
            let turn = Turn { attacker: 0, round: 0, until: began };
            let ended = self.runtime.block_on(attack.run(&to, turn))?;
            ensure!(ended == "200", "a short call ended with {ended}");
            if began.elapsed() >= LEAST {
                return Ok((rounds as f64 * 4.0 * LEAST.div_duration_f64(began.elapsed())) as u64);
            }
            rounds *= 2;
        }
    }
}

impl Kind {
    /// Whether each of its requests calls one plugin with the default CPU budget.
    fn has_cpu_budget(&self) -> bool {
        match *self {
            Self::GuestIn(pipeline, _) => pipeline != PATIENT,
            Self::Told(to, _) => to.starts_with("hostile?"),
            _ => matches!(self, Self::Guest(_) | Self::Picture(..)),
        }
    }
}

/// The CPU time in milliseconds that the server used for one lone request beyond the budgets
/// of its plugin calls. A request that succeeds has made two calls. Work after the answer counts;
/// other load on the machine does not. None if the server ended.
fn lone_call(pid: u32, plan: &Plan) -> Result<Option<f64>> {
    let lone = Plan {
        attack: plan.attack.clone(),
        to: plan.to.clone(),
        over: plan.over.clone(),
        attackers: 1,
        once: true,
        ..*plan
    };
    let before = cpu_at_rest(pid, RECOVERS_IN)?;
    let outcomes = lone.run()?;
    let Ok(after) = cpu_at_rest(pid, RECOVERS_IN) else { return Ok(None) };
    let calls = if outcomes.counts.keys().any(|ended| ended == "200") { 2 } else { 1 };
    Ok(Some(over(after - before, calls * CPU_MS)))
}

/// Wait for the server to have no more work. Returns whether it came to rest in time.
fn came_to_rest(pid: u32) -> Result<bool> {
    let began = Instant::now();
    cpu_at_rest(pid, RECOVERS_IN)?;
    Ok(began.elapsed() < RECOVERS_IN)
}

/// The neighbour's figures in the output.
fn neighbour(report: Report) -> Value {
    json!({
        "p50_ms": report.percentile_ms(50.0),
        "p99_ms": report.percentile_ms(99.0),
        "max_ms": report.percentile_ms(100.0),
        "answered": report.latencies.len(),
        "failed": report.failures.values().sum::<usize>(),
        "failures": report.failures,
        "client_had_real_time": report.had_real_time,
    })
}

/// The bytes by which the memory grew beyond the tenant's budget, for each hostile request.
fn beyond_budget(grown: u64, attackers: usize) -> u64 {
    grown.saturating_sub(TENANT_BYTES) / attackers as u64
}

/// The milliseconds by which `time` is over the limit.
fn over(time: Duration, limit_ms: u64) -> f64 {
    milliseconds(time.saturating_sub(Duration::from_millis(limit_ms)))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn addresses(stage: &Stage) -> Addresses {
    let server = &stage.server;
    Addresses {
        data: server.data_plane.clone(),
        grpc: server.grpc.clone(),
        admin: server.admin_plane.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_say_whether_the_client_was_real_time() {
        for had_real_time in [true, false] {
            let figures = neighbour(Report { had_real_time, ..Report::default() });
            assert_eq!(figures["client_had_real_time"], had_real_time);
        }
    }
}
