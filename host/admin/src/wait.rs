//! `?wait=all`: the answer to a change comes when all servers that share the store serve it.
//!
//! The release stands in any case. So the answer is the same as without waiting, with `replicas` in
//! its document. Its status is 202 if some servers do not serve the release yet, or if that is not
//! known.

use std::borrow::Cow;

use gristmill_control::Control;
use gristmill_core::ErrorCode;
use gristmill_transport::Problem;
use serde_json::{Value, json};

use crate::resource::waited;

const WAIT: &str = "wait";

/// The outcome of the waiting, for the answer.
pub(crate) struct Outcome {
    pub(crate) document: Value,
    /// Whether all servers serve the release.
    pub(crate) is_complete: bool,
}

/// Take the parameter out of the query of a change. Returns the rest, and whether to wait.
///
/// # Errors
/// The value is another one, or it is given twice.
pub(crate) fn taken(query: Option<&str>) -> Result<(Option<Cow<'_, str>>, bool), Problem> {
    let Some(query) = query else { return Ok((None, false)) };
    let (own, rest): (Vec<_>, Vec<_>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(WAIT));
    let invalid = |detail: String| Err(Problem::new(ErrorCode::InvalidRequest, detail));
    match own[..] {
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
    match control.wait_for_all(release).await {
        Ok(None) => Outcome { document: json!({ "live": 1, "behind": [] }), is_complete: true },
        Ok(Some(found)) => {
            Outcome { document: waited(&found), is_complete: found.behind.is_empty() }
        }
        Err(error) => {
            Outcome { document: json!({ "unknown": error.to_string() }), is_complete: false }
        }
    }
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
        let said = |query| read(Some(query)).unwrap_err().detail;
        assert_eq!(said("wait=one"), "wait is \"one\": must be all");
        assert_eq!(said("wait"), "wait is \"\": must be all");
        assert_eq!(said("wait=all&wait=all"), "wait is given twice");
    }
}
