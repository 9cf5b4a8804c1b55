//! The query of a request: flags such as `?force=true`, numbers such as `?limit=10`, and deleting
//! with `?cascade=true`.

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
    match parameter(name, query)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(invalid(format!("{name} is {other:?}: must be true or false"))),
    }
}

/// The value of the number `name`, at most `most`, which is also its default. The resource knows no
/// other parameter.
///
/// # Errors
/// The query has another parameter, or the value is not 1 to `most`.
pub(super) fn count(name: &str, query: Option<&str>, most: usize) -> Result<usize, Problem> {
    let Some(value) = parameter(name, query)? else { return Ok(most) };
    let count = value.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| invalid(format!("{name} is {value:?}: must be 1 to {most}")))
}

/// The last value of the parameter `name`, if it is given. There must be no other parameter.
fn parameter<'a>(name: &str, query: Option<&'a str>) -> Result<Option<&'a str>, Problem> {
    let mut found = None;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (known, value) = pair.split_once('=').unwrap_or((pair, ""));
        if known != name {
            return Err(invalid(format!("unknown parameter {known:?}; known is {name}")));
        }
        found = Some(value);
    }
    Ok(found)
}

fn invalid(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// Make `change`, which deletes something. With `?cascade=true`, its users are deleted, too.
pub(super) async fn delete(state: &State, change: Change, query: Option<&str>) -> Outcome {
    let cascade = flag("cascade", query)?;
    let published = state.control.delete(change, cascade).await?;
    Answer::released(published, None)
}

#[cfg(test)]
mod tests {
    use super::{count, flag};

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

    #[test]
    fn a_number_is_within_its_range() {
        assert_eq!(count("limit", None, 9).ok(), Some(9));
        assert_eq!(count("limit", Some("limit=9"), 9).ok(), Some(9));
        for (query, named) in [
            ("limit=10", "limit is \"10\": must be 1 to 9"),
            ("limit=0", "limit is \"0\": must be 1 to 9"),
            ("limit=-1", "limit is \"-1\""),
            ("limit", "limit is \"\""),
            ("lines=1", "known is limit"),
        ] {
            let detail = count("limit", Some(query), 9).unwrap_err().detail;
            assert!(detail.contains(named), "{query}: {detail}");
        }
    }
}
