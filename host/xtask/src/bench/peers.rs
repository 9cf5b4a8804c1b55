//! The same services on other inference servers: Gristmill and each peer in turns, with one client.
//!
//! `service` has the requests, `interface` the form in which a server takes them, `peer` the
//! servers, `answer` compares their answers, `client` measures, `chart` draws the ratios.

mod answer;
mod chart;
mod client;
mod interface;
mod peer;
mod service;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use self::chart::{Group, Panel};
use self::client::Target;
use self::interface::Interface;
use self::peer::{PEERS, Peer};
use self::service::Service;
use super::options::Options;
use super::own_client::{Measured, Round};
use super::rounds::{Ratios, in_turns, median};
use super::services;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::server::Server;
use crate::shell::{root, step, target};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 4;
/// A round of each server that does not count: adaptive batchers learn in it.
const WARM_UP: Round = Round { concurrency: 16, seconds: 3 };

/// How long a peer may take from the first connection to its first right answer.
const FIRST_ANSWER: Duration = Duration::from_secs(60);

/// The ratio that is to be reached at least, by service, concurrency and peer.
const TARGETS: [(Service, u32, &str, f64); 3] = [
    (Service::Ranker, 16, "triton", 4.0),
    (Service::Photos, 16, "fastapi-plain", 2.5),
    (Service::Photos, 16, "triton", 2.5),
];

/// A service of Gristmill, with which the peers are compared.
struct Ours {
    service: Service,
    gristmill: PathBuf,
    target: Target,
    answer: Value,
}

/// A peer whose packages are installed.
struct Installed {
    peer: &'static Peer,
    python: PathBuf,
}

/// A service of a running peer.
struct Theirs {
    peer: &'static Peer,
    target: Target,
}

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let peers = chosen(&options.only)?;
    let mut table = Table::new("peers", "cargo xtask bench peers");
    let mut installed = Vec::new();
    for peer in peers {
        let (version, command) = (peer.version()?, peer.shown_command());
        match peer.install() {
            Ok(python) => {
                let figures = json!({ "version": version, "command": command });
                table.row(peer.name, format!("{version}: {command}"), figures);
                installed.push(Installed { peer, python });
            }
            Err(error) => add_failure(&mut table, peer.name.to_owned(), &error),
        }
    }

    std::fs::create_dir_all(target().join("peers"))?;
    let server = services::start(shipped)?;
    let config = services::photos_config();
    table.row("gristmill", format!("its model photos with {config}"), config);
    let mut panels = Vec::new();
    for service in Service::ALL {
        let ours = Ours::new(shipped, &server, service)?;
        let mut groups = Vec::new();
        for installed in &installed {
            let name = installed.peer.name;
            let mut ratios = vec![None; CONCURRENCY.len()];
            if let Err(error) = measure(&ours, installed, &mut ratios, &mut table) {
                add_failure(&mut table, format!("{}, over {name}", service.name()), &error);
            }
            groups.push(Group { name: name.to_owned(), ratios });
        }
        panels.push(Panel { title: service.name().to_owned(), groups });
    }
    let legend = CONCURRENCY.map(|concurrency| match concurrency {
        1 => "1 client".to_owned(),
        several => format!("{several} clients"),
    });
    let picture =
        chart::draw("Gristmill's answers a second over a peer's (dashed: equal)", &legend, &panels);
    std::fs::write(root().join("benches/results/peers.svg"), picture)?;
    table.finish()
}

/// The peers of these names; all if there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Peer>> {
    let known = || PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>();
    if let Some(unknown) = names.iter().find(|name| !known().contains(&name.as_str())) {
        bail!("no peer {unknown:?}: there are {}", known().join(", "));
    }
    let is_chosen = |peer: &&Peer| names.is_empty() || names.iter().any(|name| name == peer.name);
    Ok(PEERS.iter().filter(is_chosen).collect())
}

/// Add a row for a peer that cannot be measured. It has only the outermost reason: those below may
/// show paths of this machine, so they are only printed.
fn add_failure(table: &mut Table, what: String, error: &anyhow::Error) {
    step(&format!("{what}: {error:#}"));
    let figures = json!({ "error": error.to_string() });
    let verdict = Verdict::new("measured", false);
    table.row_to_reach(what, format!("not measured: {error}"), figures, verdict);
}

impl Ours {
    fn new(shipped: &Shipped, server: &Server, service: Service) -> Result<Self> {
        let interface = Interface::Body { under: "/v1/demo/infer" };
        let name = format!("gristmill-{}", service.name());
        let target = Target::new(&name, server.url.clone(), interface.request(service)?)?;
        let answer = interface.answer(target.send()?)?;
        Ok(Self { service, gristmill: shipped.gristmill.clone(), target, answer })
    }

    /// Wait until a peer that has just started gives the right answer.
    ///
    /// # Errors
    /// It does not within [`FIRST_ANSWER`]; the error is that of the last try.
    fn await_same_answer(&self, theirs: &Theirs) -> Result<()> {
        let compare = || {
            let answer = theirs.peer.interface.answer(theirs.target.send()?)?;
            answer::compare(self.service, &self.answer, &answer)
        };
        let give_up = Instant::now() + FIRST_ANSWER;
        loop {
            match compare() {
                Err(_) if Instant::now() < give_up => {
                    std::thread::sleep(Duration::from_millis(250));
                }
                outcome => return outcome,
            }
        }
    }
}

/// Start the peer, compare its answer, run rounds of both in turns, and add the rows. `ratios` gets
/// one of each concurrency.
fn measure(
    ours: &Ours,
    Installed { peer, python }: &Installed,
    ratios: &mut [Option<f64>],
    table: &mut Table,
) -> Result<()> {
    let service = ours.service.name();
    step(&format!("starting {} for {service}", peer.name));
    let _running = peer.start(python, ours.service)?;
    let (server, request) =
        (format!("http://{}", peer.address()), peer.interface.request(ours.service)?);
    let target = Target::new(&format!("{}-{service}", peer.name), server, request)?;
    let theirs = Theirs { peer, target };
    ours.await_same_answer(&theirs)
        .map_err(|error| anyhow!("it does not answer as Gristmill does: {error:#}"))?;
    for target in [&ours.target, &theirs.target] {
        target.measure(&ours.gristmill, WARM_UP)?;
    }
    for (concurrency, ratio) in CONCURRENCY.into_iter().zip(ratios) {
        *ratio = Some(compare(ours, &theirs, concurrency, table)?);
    }
    Ok(())
}

/// Run rounds of both, alternating which is first, and add the row. Returns the ratio.
fn compare(ours: &Ours, theirs: &Theirs, concurrency: u32, table: &mut Table) -> Result<f64> {
    let (service, peer) = (ours.service, theirs.peer.name);
    let what = format!("{}, concurrency {concurrency}, over {peer}", service.name());
    step(&what);
    let round = Round { concurrency, seconds: ROUND_SECONDS };
    let (our_rounds, their_rounds) = in_turns(
        ROUNDS,
        || ours.target.measure(&ours.gristmill, round),
        || theirs.target.measure(&ours.gristmill, round),
    )?;
    let per_second = |own: &Measured| own.per_second;
    let ratios = Ratios::of(our_rounds.iter().map(per_second), their_rounds.iter().map(per_second));
    let Ratios { least: lowest, median: ratio, most: highest, all } = ratios;
    let of = |rounds: &[Measured], figure: fn(&Measured) -> f64| {
        median(rounds.iter().map(figure).collect())
    };
    let p99_us = |rounds: &[Measured]| of(rounds, |own| own.p99_us);
    let (our_rate, their_rate) = (of(&our_rounds, per_second), of(&their_rounds, per_second));
    let (our_p99, their_p99) = (p99_us(&our_rounds), p99_us(&their_rounds));
    let measured = format!(
        "{ratio:5.2} ({lowest:.2} to {highest:.2}; {our_rate:6.0}/s and {their_rate:6.0}/s; \
         p99 {:.1} and {:.1} ms)",
        our_p99 / 1e3,
        their_p99 / 1e3
    );
    let figures = json!({
        "ratio": ratio,
        "ratios": all,
        "gristmill_per_s": our_rate,
        "peer_per_s": their_rate,
        "gristmill_p99_us": our_p99,
        "peer_p99_us": their_p99,
    });
    let least = TARGETS.iter().find_map(|(for_service, clients, over, least)| {
        let is_own = (*for_service, *clients, *over) == (service, concurrency, peer);
        is_own.then_some(*least)
    });
    match least {
        Some(least) => {
            let verdict = Verdict::new(format!("at least {least:.1}"), ratio >= least);
            table.row_to_reach(what, measured, figures, verdict);
        }
        None => table.row(what, measured, figures),
    }
    Ok(ratio)
}
