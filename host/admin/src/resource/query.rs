//! The query of a request: flags such as `?force=true`, and deleting with `?cascade=true`.

use gristmill_control::Change;
use gristmill_core::ErrorCode;
use gristmill_transport::Problem;

use crate::answer::{Answer, Outcome};
use crate::state::State;

/// The value of the flag `name`. The resource knows no other parameter.
///
/// # Errors
/// The query has another parameter, or the value is not `true` or `false`.
pub(super) fn flag(name: &str, query: Option<&str>) -> Result<bool, Problem> {
    let invalid = |detail: String| Problem::new(ErrorCode::InvalidRequest, detail);
    let mut value = false;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        value = match pair.split_once('=').unwrap_or((pair, "")) {
            (known, "true") if known == name => true,
            (known, "false") if known == name => false,
            (known, other) if known == name => {
                return Err(invalid(format!("{name} is {other:?}: must be true or false")));
            }
            (other, _) => {
                return Err(invalid(format!("unknown parameter {other:?}; known is {name}")));
            }
        };
    }
    Ok(value)
}

/// Make `change`, which deletes something. With `?cascade=true`, its users are deleted, too.
pub(super) async fn delete(state: &State, change: Change, query: Option<&str>) -> Outcome {
    let cascade = flag("cascade", query)?;
    let published = state.control.delete(change, cascade).await?;
    Answer::released(published, None)
}

#[cfg(test)]
mod tests {
    use super::flag;

    #[test]
    fn only_the_known_flag_is_taken() {
        assert!(flag("force", Some("force=true")).unwrap());
        assert!(!flag("force", Some("&force=false")).unwrap() && !flag("force", None).unwrap());
        for (query, named) in
            [("force", "\"\""), ("force=1", "\"1\""), ("cascade=true", "known is force")]
        {
            let detail = flag("force", Some(query)).unwrap_err().detail;
            assert!(detail.contains(named), "{query}: {detail}");
        }
    }
}
