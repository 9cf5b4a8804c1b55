//! Why a plugin call failed, for the clients of a pipeline that has `debug`.
//!
//! Invariant: a document has lines of its own request only, and of no pipeline without `debug`.

use gristmill_core::Name;
use gristmill_sandbox::Line;
use gristmill_serve::InferError;
use gristmill_snapshot::Route;
use gristmill_transport::Problem;
use serde::Serialize;

/// The most lines of a document, and the most bytes that they take: more than one line can have.
const LINES_MAX: usize = 50;
const BYTES_MAX: usize = 32 << 10;

/// The member of a problem document.
const MEMBER: &str = "plugin_error";

#[derive(Serialize)]
struct PluginError<'a> {
    plugin: &'a Name,
    call: &'static str,
    message: String,
    /// The last lines of the call, in the order in which they came.
    lines: Vec<&'a Line>,
}

/// The problem of a request that failed. `lines` are those of the request.
pub(crate) fn problem_of(error: InferError, route: &Route, lines: &[Line]) -> Problem {
    let shown = match &error {
        InferError::Plugin { stage, error } if route.debug => {
            let source = route.program.source_of(*stage);
            Some(PluginError {
                plugin: &source.plugin,
                call: source.call,
                message: error.detail(),
                lines: last_lines(source.call, lines),
            })
        }
        _ => None,
    };
    let mut problem = Problem::from(error);
    if let Some(shown) = shown {
        problem.members.insert(MEMBER.into(), serde_json::to_value(shown).unwrap_or_default());
    }
    problem
}

/// The last lines of this call.
fn last_lines<'a>(call: &str, lines: &'a [Line]) -> Vec<&'a Line> {
    let mut bytes = 0;
    let fits = |line: &&Line| {
        bytes += line.bytes();
        bytes <= BYTES_MAX
    };
    let own_lines = lines.iter().rev().filter(|line| line.call == call);
    let mut last: Vec<_> = own_lines.take(LINES_MAX).take_while(fits).collect();
    last.reverse();
    last
}
