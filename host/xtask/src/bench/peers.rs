//! The same services on other inference servers: Gristmill and each peer in turns, with one client.
//!
//! `peer` has the servers, `interface` the form in which each takes a request. The services are
//! loads: `ranker` and `photos`.

pub(super) mod peer;

mod interface;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use gristmill_client::http::Request as HttpRequest;
use gristmill_client::{Client, block_on};
use serde_json::{Value, json};

use self::interface::{Interface, Request};
use self::peer::{PEERS, Peer};
use super::answers::distance;
use super::clients::Round;
use super::harness::{Bench, photos_config};
use super::loads::{Load, PHOTOS, RANKER};
use super::rounds::{Measured, compare, in_turns, median_of};
use super::running::within;
use crate::shell::{step, target};
use crate::table::Bound::AtLeast;

const CONCURRENCY: [u32; 3] = [1, 16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 4;
/// A round of each server that does not count: adaptive batchers learn in it.
const WARM_UP: Round = Round { concurrency: 16, seconds: 3 };

/// The tolerance of the ranker's scores, and of the probability of a picture's best label. Decoders
/// of JPEG and resizers round differently.
const SCORES_DIFFER: f64 = 1e-4;
const PROBABILITIES_DIFFER: f64 = 0.05;

/// How long a peer may take from the first connection to its first right answer.
const FIRST_ANSWER: Duration = Duration::from_secs(60);

/// The ratio that is to be reached at least, by service, concurrency and peer.
const TARGETS: [(&str, u32, &str, f64); 3] = [
    ("ranker", 16, "triton", 4.0),
    ("photos", 16, "fastapi-plain", 2.5),
    ("photos", 16, "triton", 2.5),
];

/// A service of a running server, with the request of which the client sends many.
struct LoadTarget<'a> {
    load: &'a Load,
    /// `http://host:port`.
    server: String,
    interface: Interface,
    request: Request,
    /// The file of the request's body.
    body: PathBuf,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let mut installed = Vec::new();
    for peer in chosen(&bench.options.only)? {
        match peer.install() {
            Ok(python) => installed.push((peer, python)),
            Err(error) => bench.add_failure(peer.name.to_owned(), &error),
        }
    }
    let server = bench.start_with_photos()?;
    bench.table.row("gristmill", photos_config());
    for load in [RANKER, PHOTOS] {
        let name = format!("gristmill-{}", load.model());
        let interface = Interface::Body { under: "/v1/demo/infer" };
        let ours = LoadTarget::new(&load, server.url.clone(), interface, &name)?;
        for (peer, python) in &installed {
            if let Err(error) = measure(bench, &ours, peer, python) {
                bench.add_failure(format!("{}, over {}", load.model(), peer.name), &error);
            }
        }
    }
    Ok(())
}

/// The peers of these names; all if there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Peer>> {
    let is_peer = |name: &&String| PEERS.iter().any(|peer| peer.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_peer(name)) {
        bail!("no peer {unknown:?}: there are {}", PEERS.map(|peer| peer.name).join(", "));
    }
    let is_chosen = |peer: &&Peer| names.is_empty() || names.iter().any(|name| name == peer.name);
    Ok(PEERS.iter().filter(is_chosen).collect())
}

/// Start the peer, compare its answer with ours, run rounds of both in turns, and add the rows.
fn measure(bench: &mut Bench<'_>, ours: &LoadTarget<'_>, peer: &Peer, python: &Path) -> Result<()> {
    let (load, answer) = (ours.load, ours.answer()?);
    let (service, name) = (load.model(), peer.name);
    step(&format!("starting {name} for {service}"));
    let _running = peer.start(python, service)?;
    let server = format!("http://{}", peer.address());
    let theirs = LoadTarget::new(load, server, peer.interface, &format!("{name}-{service}"))?;
    within(FIRST_ANSWER, || agree(load, &answer, &theirs.answer()?))
        .map_err(|error| anyhow!("it does not answer as Gristmill does: {error:#}"))?;
    for target in [ours, &theirs] {
        target.measure(&bench.gristmill, WARM_UP)?;
    }
    for concurrency in CONCURRENCY {
        let what = format!("{service}, concurrency {concurrency}, over {name}");
        step(&what);
        let round = Round { concurrency, seconds: ROUND_SECONDS };
        let [rounds, their_rounds] = in_turns(
            ROUNDS,
            [&|| ours.measure(&bench.gristmill, round), &|| {
                theirs.measure(&bench.gristmill, round)
            }],
        )?;
        let compared = compare(&rounds, &their_rounds);
        let mut figures = compared.figures("gristmill_per_s", "peer_per_s");
        figures["gristmill_p99_us"] = median_of(&rounds, |round| round.p99_us).into();
        figures["peer_p99_us"] = median_of(&their_rounds, |round| round.p99_us).into();
        let row = bench.table.row(what, figures);
        let is_target = |(of, clients, over, _): &&(&str, u32, &str, f64)| {
            (*of, *clients, *over) == (service, concurrency, name)
        };
        if let Some((.., least)) = TARGETS.iter().find(is_target) {
            row.with_bound(compared.ratio, AtLeast(*least), "");
        }
    }
    Ok(())
}

/// Compare a peer's answer with Gristmill's: of a picture the best label and its probability; of
/// the ranker the ids in their order, and the scores.
///
/// # Errors
/// They differ; the text says where.
fn agree(load: &Load, ours: &Value, theirs: &Value) -> Result<()> {
    let compared = |answer: &Value| match load.is_picture() {
        true => json!([answer["label"], answer["probability"]]),
        false => answer["items"].clone(),
    };
    let most = if load.is_picture() { PROBABILITIES_DIFFER } else { SCORES_DIFFER };
    let (ours, theirs) = (compared(ours), compared(theirs));
    ensure!(distance(&ours, &theirs) <= most, "{theirs} is too far from Gristmill's {ours}");
    Ok(())
}

impl<'a> LoadTarget<'a> {
    /// `name` tells the target's file from others.
    fn new(load: &'a Load, server: String, interface: Interface, name: &str) -> Result<Self> {
        let request = interface.request(load)?;
        let folder = target().join("peers");
        std::fs::create_dir_all(&folder)?;
        let body = folder.join(format!("{name}.body"));
        std::fs::write(&body, &request.body).with_context(|| body.display().to_string())?;
        Ok(Self { load, server, interface, request, body })
    }

    /// Send the request once. Returns the JSON of the answer.
    fn answer(&self) -> Result<Value> {
        let mut request = HttpRequest::post(&self.request.path);
        for (name, value) in &self.request.headers {
            request = request.header(*name, value);
        }
        let request = request.body(self.request.body.clone().into())?;
        self.interface.answer(block_on(Client::new(self.server.parse()?).send(request))?)
    }

    /// Measure it under load.
    fn measure(&self, gristmill: &Path, round: Round) -> Result<Measured> {
        let url = format!("{}{}", self.server, self.request.path);
        let body = self.body.display().to_string();
        let headers: Vec<String> =
            self.request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let mut flags = vec!["--body", &*body];
        flags.extend(headers.iter().flat_map(|header| ["--header", header]));
        round.measure(gristmill, &url, &flags)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PHOTOS, RANKER, agree};

    #[test]
    fn rankings_agree_in_order_and_score_and_pictures_in_the_best_label() {
        let ranking = |first: &str, second: &str, score: f64| {
            let first = json!({ "id": first, "score": 0.9 });
            json!({ "items": [first, { "id": second, "score": score }] })
        };
        let ours = ranking("a", "b", 0.5);
        assert!(agree(&RANKER, &ours, &ranking("a", "b", 0.50001)).is_ok());
        for other in [ranking("a", "b", 0.51), ranking("b", "a", 0.5), json!({ "detail": "no" })] {
            assert!(agree(&RANKER, &ours, &other).is_err(), "{other}");
        }
        let picture = |label: u32, probability: f64| json!({ "label": label, "probability": probability, "top": label });
        assert!(agree(&PHOTOS, &picture(486, 0.49), &picture(486, 0.47)).is_ok());
        for other in [picture(486, 0.6), picture(3, 0.49), json!({ "label": 486 })] {
            assert!(agree(&PHOTOS, &picture(486, 0.49), &other).is_err(), "{other}");
        }
    }
}
