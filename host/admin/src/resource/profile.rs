//! `GET /admin/v1/debug/profile`: where the server spends its CPU time, as a flame graph or
//! for pprof.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use gristmill_control::Control;
use gristmill_core::{Code, ErrorCode};
use gristmill_profile::{ProfileError, record};
use gristmill_sandbox::Plugin;
use gristmill_transport::{Allowed, Problem};
use http::Method;
use tokio::task::spawn_blocking;

use super::query::{count_in, invalid, parameters};
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The time that is recorded by default, and at most.
const SECONDS: usize = 10;
const SECONDS_MAX: usize = 60;

const SVG: &str = "image/svg+xml";
const PPROF: &str = "application/vnd.google.protobuf+gzip";

pub(crate) struct Profile;

/// Ends the recording when its caller leaves.
struct StopsWhenDropped(Arc<AtomicBool>);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Profile {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Record where the server spends its CPU time";
        let operation = Operation::get("debug/profile", summary)
            .about(
                "One profile is recorded at a time. Functions of plugins have their names, if the \
                 plugins do.",
            )
            .number("seconds", Some(SECONDS_MAX), "How long to record; 10 by default")
            .choice("format", ["svg", "pprof"], "A flame graph, or for pprof; `svg` by default")
            .problems(&[ErrorCode::Conflict]);
        vec![operation.answers_as([SVG, PPROF])]
    }
}

impl Resource for Profile {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let [seconds, format] = parameters(["seconds", "format"], received.query)?;
            let seconds =
                seconds.map_or(Ok(SECONDS), |seconds| count_in("seconds", seconds, SECONDS_MAX))?;
            let is_pprof = match format {
                None | Some("svg") => false,
                Some("pprof") => true,
                Some(other) => {
                    return Err(invalid(format!("format is {other:?}: must be svg or pprof")));
                }
            };
            let stops = Arc::new(AtomicBool::new(false));
            let _stops = StopsWhenDropped(stops.clone());
            let control = state.control.clone();
            let recording = spawn_blocking(move || {
                let time = Duration::from_secs(seconds as u64);
                let profile = record(time, || stops.load(Relaxed), || code(&control))?;
                Ok(match is_pprof {
                    true => Bytes::from(profile.pprof()),
                    false => Bytes::from(profile.flame_graph()),
                })
            });
            let recorded = recording.await.map_err(|error| failed(&error.to_string()))?;
            let answer = match recorded {
                Ok(bytes) => AdminAnswer::text(bytes, if is_pprof { PPROF } else { SVG }),
                Err(error @ ProfileError::Busy) => {
                    return Err(Problem::new(ErrorCode::Conflict, error.to_string()));
                }
                Err(ProfileError::System(error)) => return Err(failed(&error.to_string())),
            };
            Ok(answer.unkept())
        })
    }
}

fn failed(error: &str) -> Problem {
    tracing::error!(error, "the profile cannot be recorded");
    Problem::new(ErrorCode::Internal, "the profile cannot be recorded: the log says why")
}

/// The compiled code of all plugins that are loaded, and of the runtimes that they share, each
/// once. Code that several plugins share has the name of one of them, and the number of the others.
fn code(control: &Control) -> Vec<Code> {
    let serving = control.serving();
    let tenants = serving.snapshot.tenants.iter();
    let plugins = tenants.flat_map(|(tenant, entry)| {
        entry.plugins.iter().flat_map(move |(name, state)| {
            let newest =
                state.newest.as_ref().ok().map(|plugin| (format!("{tenant}/{name}"), plugin));
            let kept = state.kept.iter().filter_map(move |(version, kept)| {
                Some((format!("{tenant}/{name}@{version}"), kept.loaded.as_ref().ok()?))
            });
            newest.into_iter().chain(kept)
        })
    });
    let mut users: BTreeMap<*const Plugin, (&Arc<Plugin>, String, usize)> = BTreeMap::new();
    for (name, plugin) in plugins {
        let user = users.entry(Arc::as_ptr(plugin));
        user.and_modify(|(.., others)| *others += 1).or_insert((plugin, name, 0));
    }
    let mut runtimes = BTreeMap::new();
    let mut codes = Vec::new();
    for (plugin, name, others) in users.into_values() {
        if let Some(code) = plugin.runtime_code() {
            runtimes.entry(code.addresses.start).or_insert(code);
        }
        codes.push(match others {
            0 => plugin.code(name),
            _ => plugin.code(format!("{name} and {others} more")),
        });
    }
    codes.extend(runtimes.into_values());
    codes
}
