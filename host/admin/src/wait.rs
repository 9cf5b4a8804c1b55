//! `?wait=all`: the answer to a change comes when all servers that share the store serve it.
//!
//! The release stands in any case. So the answer is the same as without waiting, with `replicas` in
//! its document. Its status is 202 if some servers do not serve the release yet, or if that is not
//! known.

use std::borrow::Cow;

use gristmill_control::Control;
use gristmill_core::{ErrorCode, Name};
use gristmill_state::NameText;
use gristmill_transport::Problem;
use serde::Serialize;
use utoipa::ToSchema;

const WAIT: &str = "wait";

/// The outcome of the waiting, for the answer.
pub(crate) struct Outcome {
    pub(crate) document: WaitedDocument,
    /// Whether all servers serve the release.
    pub(crate) is_complete: bool,
}

/// The servers that a change has waited for, with `?wait=all`. It may be for an author who sees a
/// few tenants only, so it has nothing else about the servers.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = WaitedReplicas)]
pub(crate) struct WaitedDocument {
    /// How many servers live.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<usize>,
    /// Those of them that do not serve the release yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<Vec<BehindDocument>>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// A server that does not serve the release yet.
#[derive(Serialize, ToSchema)]
#[schema(as = ReplicaBehind)]
struct BehindDocument {
    #[schema(value_type = NameText)]
    name: Name,
    /// The release that it serves.
    release: u64,
}

/// Take the parameter out of the query of a change. Returns the rest, and whether to wait.
///
/// # Errors
/// The value is another one, or it is given twice.
pub(crate) fn taken(query: Option<&str>) -> Result<(Option<Cow<'_, str>>, bool), Problem> {
    let Some(query) = query else { return Ok((None, false)) };
    let (waits, rest): (Vec<_>, Vec<_>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(WAIT));
    let invalid = |detail: String| Err(Problem::new(ErrorCode::InvalidRequest, detail));
    match waits[..] {
        [] => Ok((Some(query.into()), false)),
        ["wait=all"] => Ok((Some(rest.join("&").into()), true)),
        [pair] => {
            let value = pair.split_once('=').map_or("", |(_, value)| value);
            invalid(format!("{WAIT} is {value:?}: must be all"))
        }
        _ => invalid(format!("{WAIT} is given twice")),
    }
}

/// Wait until all servers serve the release, but not for ever.
pub(crate) async fn wait(control: &Control, release: u64) -> Outcome {
    let (live, behind) = match control.wait_for_all(release).await {
        Ok(None) => (1, Vec::new()),
        Ok(Some(replicas)) => (replicas.live, replicas.behind),
        Err(error) => {
            let unknown = Some(error.to_string());
            let document = WaitedDocument { unknown, ..WaitedDocument::default() };
            return Outcome { document, is_complete: false };
        }
    };
    let is_complete = behind.is_empty();
    let behind = behind.into_iter();
    let behind =
        behind.map(|replica| BehindDocument { name: replica.name, release: replica.release });
    let (live, behind) = (Some(live), Some(behind.collect()));
    Outcome { document: WaitedDocument { live, behind, unknown: None }, is_complete }
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn the_parameter_is_taken_out_of_the_query() {
        let read = |query| taken(query).map(|(rest, waits)| (rest.map(String::from), waits));
        let rest = |text: &str| Some(text.to_owned());
        assert_eq!(read(None).unwrap(), (None, false));
        assert_eq!(read(Some("force=true")).unwrap(), (rest("force=true"), false));
        assert_eq!(read(Some("wait=all")).unwrap(), (rest(""), true));
        assert_eq!(read(Some("a=1&wait=all&b=2")).unwrap(), (rest("a=1&b=2"), true));
        let detail = |query| read(Some(query)).unwrap_err().detail;
        assert_eq!(detail("wait=one"), "wait is \"one\": must be all");
        assert_eq!(detail("wait"), "wait is \"\": must be all");
        assert_eq!(detail("wait=all&wait=all"), "wait is given twice");
    }
}
