//! A Redis Cluster: several servers, each with the keys of some slots, and the way of commands to
//! them. Each server has links as one alone has (`server`), so that all bounds of a connection hold
//! for each; nothing of this knows a connection.
//!
//! Which server has which slot is asked of one of them when that is not known, when a server
//! fails, and when one says that a slot has moved: at most once in [`REFRESH_INTERVAL`], for all
//! tenants together, over the operator's link. A slot that has moved is noted at once.
//!
//! Invariants:
//! - commands go to another server only if the one before did not run them, and to at most
//!   [`ROUNDS_MAX`] in all;
//! - a server that fails is an error of the calls that need one of its keys alone;
//! - a list of keys ends by an error if slots were seen to move since it began.

mod cursor;
mod map;
mod slots;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use gristmill_core::Turn;
use gristmill_sandbox::{KeyPage, StoreCall};
use parking_lot::Mutex;
use redis::{Pipeline, ServerError, Value};
use tokio::time::timeout_at;

pub(crate) use self::cursor::Cursor;
pub(crate) use self::map::Step;
use self::map::{Map, Node, NodeSteps, Pending};
pub(crate) use self::slots::slot_of;
use self::slots::{Address, Redirect, ranges};
use crate::answers::{Refusal, error_in};
use crate::endpoint::{Endpoint, EndpointError};
use crate::link::{Commands, LinkError, Until};
use crate::password::Password;
use crate::redis_url::RedisUrl;

/// Maximum times that the commands about a key are sent.
const ROUNDS_MAX: usize = 5;

/// How often the servers of the slots are asked for.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The time in which a server must say which slots there are, before another one is asked.
const ASK_TIMEOUT: Duration = Duration::from_secs(1);

/// A cluster.
pub(crate) struct Cluster {
    map: Mutex<Map>,
    /// The last look for the servers of the slots.
    latest: Mutex<Option<Refresh>>,
}

/// A look for the servers of the slots, which all that wait for it share.
type Looking = Shared<BoxFuture<'static, Result<(), LinkError>>>;

struct Refresh {
    began: Instant,
    outcome: Looking,
}

/// What came of a part.
struct Outcome {
    /// The answers to the steps that are done, by their places.
    answers: Vec<(usize, Vec<Value>)>,
    pending: Vec<Pending>,
}

/// What all parts of a call have in common.
pub(crate) struct Terms {
    pub(crate) only_read: bool,
    /// Whether these can be the answers to a step.
    pub(crate) are_right: fn(&[Value]) -> bool,
    pub(crate) call: Arc<StoreCall>,
}

/// How a page of keys is asked for.
pub(crate) struct PageTerms<C, R> {
    /// The commands for a page from a server's cursor on.
    pub(crate) commands: C,
    /// Reads their answer.
    pub(crate) read: R,
}

impl Cluster {
    /// A cluster that has these servers, to which no connection is made yet.
    ///
    /// # Errors
    /// [`EndpointError`]
    pub(crate) fn new(
        urls: &[RedisUrl],
        password: Option<&Password>,
    ) -> Result<Self, EndpointError> {
        let seed = |url| Ok(Arc::new(Node::new(Endpoint::new(url, password)?)));
        let seeds = urls.iter().map(seed).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { map: Mutex::new(Map::new(seeds)), latest: Mutex::default() })
    }

    /// Drop the links that nobody uses, nor did for a while.
    pub(crate) fn drop_idle(&self, now: Instant) {
        self.map.lock().nodes().for_each(|node| node.server.drop_idle(now));
    }

    /// The answers to all commands of these steps, in their order. This is called on the runtime
    /// on which the connections live.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        steps: Vec<Step>,
        terms: &Terms,
        until: Until,
    ) -> Result<Vec<Value>, LinkError> {
        let mut answers = vec![Vec::new(); steps.len()];
        let pending = |(place, step)| Pending { place, step, asked: None };
        let mut pending: Vec<_> = steps.into_iter().enumerate().map(pending).collect();
        for round in 0..ROUNDS_MAX {
            let (parts, has_waited) = self.parts(pending, terms, until).await?;
            let is_whole = until.is_whole && round == 0 && !has_waited;
            let until = Until { is_whole, ..until };
            let asking = parts.into_iter().map(|part| self.send(part, terms, until));
            pending = Vec::new();
            for outcome in join_all(asking).await {
                let outcome = outcome?;
                pending.extend(outcome.pending);
                for (place, answer) in outcome.answers {
                    if let Some(slot) = answers.get_mut(place) {
                        *slot = answer;
                    }
                }
            }
            if pending.is_empty() {
                let answers: Vec<_> = answers.into_iter().flatten().collect();
                return match error_in(&answers) {
                    Some(error) => Err(LinkError::Refused(self.refused(error))),
                    None => Ok(answers),
                };
            }
        }
        Err(LinkError::NoServer)
    }

    /// A page of the keys of one server after the other. This is called on the runtime on which the
    /// connections live.
    pub(crate) async fn keys(
        self: &Arc<Self>,
        cursor: Option<Cursor>,
        call: Arc<StoreCall>,
        until: Until,
        terms: PageTerms<impl FnOnce(u64) -> Pipeline, impl FnOnce(Vec<Value>) -> Option<KeyPage>>,
    ) -> Result<KeyPage, LinkError> {
        let PageTerms { commands, read } = terms;
        // No server says that another one has slots, too. So look whether that is so.
        let looking = self.refresh();
        let is_whole = until.is_whole && looking.peek().is_some();
        let until = Until { is_whole, ..until };
        timeout_at(until.at.into(), looking).await.unwrap_or(Err(LinkError::TooLate))?;
        let turn = Turn::begin();
        let (division, servers) = self.map.lock().division();
        let cursor = cursor.unwrap_or(Cursor { division, server: 0, at: 0 });
        if cursor.division != division {
            return Err(LinkError::KeysMoved);
        }
        let node = servers.get(cursor.server).ok_or(LinkError::NoServer)?;
        let pipeline = commands(cursor.at);
        charge(&call, turn);
        let link = node.server.link(call.owner().cloned());
        let commands = Arc::new(Commands { pipeline, only_read: true, call: Some(call) });
        // Checked here, as in `send`.
        let page = |answer| {
            let KeyPage { keys, next } = read(answer)?;
            let next = next.map(|next| next.parse()).transpose().ok()?;
            let next = cursor.after(next, servers.len()).map(|next| next.to_string());
            Some(KeyPage { keys, next })
        };
        let page = link.ask(&commands, until, page).await;
        if page.is_err() {
            drop(self.refresh());
        }
        page
    }

    /// The steps by their servers, and whether that had to be asked for.
    async fn parts(
        self: &Arc<Self>,
        pending: Vec<Pending>,
        terms: &Terms,
        until: Until,
    ) -> Result<(Vec<NodeSteps>, bool), LinkError> {
        let has_servers = self.map.lock().has_servers(&pending);
        if !has_servers {
            let refreshed = timeout_at(until.at.into(), self.refresh()).await;
            refreshed.unwrap_or(Err(LinkError::TooLate))?;
        }
        let turn = Turn::begin();
        let parts = self.map.lock().parts(pending);
        terms.charge(turn);
        Ok((parts.ok_or(LinkError::NoServer)?, !has_servers))
    }

    /// Send steps to their server.
    async fn send(
        self: &Arc<Self>,
        NodeSteps { node, steps }: NodeSteps,
        terms: &Terms,
        until: Until,
    ) -> Result<Outcome, LinkError> {
        let turn = Turn::begin();
        let mut pipeline = Pipeline::new();
        // The error of one step is none of the others'.
        pipeline.ignore_errors();
        let mut sent = Vec::with_capacity(steps.len());
        for Pending { place, step: Step { slot, commands }, asked } in steps {
            // It holds for the next command, or for the transaction that this begins.
            let begin = pipeline.len() + usize::from(asked.is_some());
            if asked.is_some() {
                pipeline.cmd("ASKING");
            }
            for command in commands {
                pipeline.add_command(command);
            }
            sent.push(Sent { place, slot, begin, end: pipeline.len() });
        }
        terms.charge(turn);
        let (only_read, call) = (terms.only_read, Some(terms.call.clone()));
        let commands = Arc::new(Commands { pipeline, only_read, call });
        let count = commands.pipeline.len();
        // Checked here: the link must not be used again after an answer that cannot be.
        let all = |answer: Vec<Value>| {
            let is_right = |sent: &Sent| sent.is_answered(&answer, terms.are_right);
            (answer.len() == count && sent.iter().all(is_right)).then_some(answer)
        };
        let link = node.server.link(terms.call.owner().cloned());
        let answer = match link.ask(&commands, until, all).await {
            Ok(answer) => answer,
            Err(error) => {
                drop(self.refresh());
                return Err(error);
            }
        };
        let turn = Turn::begin();
        let outcome = self.outcome(&node, &commands.pipeline, sent, answer);
        terms.charge(turn);
        outcome
    }

    /// What came of the steps that were sent to a server.
    fn outcome(
        self: &Arc<Self>,
        node: &Node,
        pipeline: &Pipeline,
        sent: Vec<Sent>,
        answer: Vec<Value>,
    ) -> Result<Outcome, LinkError> {
        let (mut answers, mut pending) = (Vec::with_capacity(sent.len()), Vec::new());
        let (mut answer, mut read) = (answer.into_iter(), 0);
        for Sent { place, slot, begin, end } in sent {
            let own_answers: Vec<_> = answer.by_ref().take(end - read).skip(begin - read).collect();
            read = end;
            let redirect =
                error_in(&own_answers).and_then(|error| Redirect::of(error, &node.address));
            let Some(redirect) = redirect else {
                answers.push((place, own_answers));
                continue;
            };
            let commands = pipeline.cmd_iter().skip(begin).take(end - begin).cloned().collect();
            let step = Step { slot, commands };
            let asked = match redirect {
                Redirect::Moved(address) => {
                    self.moved(slot, &address)?;
                    None
                }
                Redirect::Ask(address) => Some(self.map.lock().node(&address)?),
            };
            pending.push(Pending { place, step, asked });
        }
        Ok(Outcome { answers, pending })
    }

    /// A server refuses a command.
    fn refused(self: &Arc<Self>, error: &ServerError) -> Refusal {
        let refusal = Refusal::new(error);
        if !refusal.is_about_value() {
            // It may have lost the slot (`CLUSTERDOWN`).
            drop(self.refresh());
        }
        refusal
    }

    /// A slot has moved to the server at `address`.
    fn moved(self: &Arc<Self>, slot: u16, address: &Address) -> Result<(), LinkError> {
        self.map.lock().moved(slot, address)?;
        // Others may have moved with it.
        drop(self.refresh());
        Ok(())
    }

    /// Look for the servers of the slots. This goes on if nobody waits for it.
    fn refresh(self: &Arc<Self>) -> Looking {
        let mut latest = self.latest.lock();
        if let Some(Refresh { began, outcome }) = &*latest
            && (outcome.peek().is_none() || began.elapsed() < REFRESH_INTERVAL)
        {
            return outcome.clone();
        }
        let cluster = self.clone();
        let looking = tokio::spawn(async move { cluster.look().await });
        let outcome = looking.map(|looked| looked.unwrap_or(Err(LinkError::Garbage)));
        let outcome = outcome.boxed().shared();
        // Its outcome is known also if nobody waits for it.
        drop(tokio::spawn(outcome.clone().map(drop)));
        *latest = Some(Refresh { began: Instant::now(), outcome: outcome.clone() });
        outcome
    }

    /// Ask one server after the other for the servers of the slots, until one knows them.
    async fn look(&self) -> Result<(), LinkError> {
        let mut failure = LinkError::NoServer;
        let nodes = self.map.lock().nodes_to_ask();
        for node in nodes {
            let (at, timeout) = (Instant::now() + ASK_TIMEOUT, ASK_TIMEOUT);
            let until = Until { at, timeout, is_whole: true };
            let mut pipeline = redis::pipe();
            pipeline.cmd("CLUSTER").arg("SLOTS");
            let commands = Arc::new(Commands { pipeline, only_read: true, call: None });
            let read = |answer: Vec<Value>| ranges(&answer, &node.address);
            match node.server.link(None).ask(&commands, until, read).await {
                // It belongs to no cluster yet, or not any more.
                Ok(ranges) if ranges.is_empty() => failure = LinkError::NoServer,
                Ok(ranges) => return self.map.lock().take(&ranges),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// The place of a step among the commands that a server gets.
struct Sent {
    place: usize,
    slot: u16,
    begin: usize,
    end: usize,
}

impl Sent {
    /// Whether `answer`, that of the server to all commands, has one to this step: a refusal or
    /// redirect, too.
    fn is_answered(&self, answer: &[Value], are_right: fn(&[Value]) -> bool) -> bool {
        let own_answers = answer.get(self.begin..self.end);
        own_answers
            .is_some_and(|own_answers| error_in(own_answers).is_some() || are_right(own_answers))
    }
}

impl Terms {
    /// Charge the tenant for a turn.
    fn charge(&self, turn: Turn) {
        charge(&self.call, turn);
    }
}

/// Charge the tenant of a call for a turn.
fn charge(call: &StoreCall, turn: Turn) {
    call.charge(Duration::from_nanos(turn.took()));
}

#[cfg(test)]
mod tests;
