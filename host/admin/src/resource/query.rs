//! The query of a request: flags such as `?force=true` and numbers such as `?limit=10`.

use gristmill_core::ErrorCode;
use gristmill_transport::Problem;

use crate::operation::Flag;

/// The flag of each change that may touch a pipeline.
pub(super) const SKIP_SAMPLES: Flag =
    Flag("skip_samples", "Make the release without running the samples of pipelines");

/// The flag of a deletion.
pub(super) const CASCADE: Flag = Flag("cascade", "Delete what uses the thing, too");

/// The flag of a change of a model.
pub(super) const FORCE: Flag = Flag("force", "Replace a model also if its users do not fit it");

/// The flag of a whole release.
pub(super) const DRY_RUN: Flag =
    Flag("dry_run", "Check everything and answer the differences, but make no release");

/// The flag of a release of the past.
pub(super) const POWER: Flag =
    Flag("power", "Answer what may do more or less since the release; this reads the log up to it");

/// The flag of a dry run.
pub(super) const SHOW_ANSWERS: Flag = Flag(
    "show_answers",
    "With dry_run: run the samples of pipelines, and answer what each got in place of comparing it",
);

/// Check that there is no parameter.
///
/// # Errors
/// The query has one.
pub(crate) fn none(query: Option<&str>) -> Result<(), Problem> {
    parameters([], query).map(|[]| ())
}

/// The value of the flag. The resource knows no other parameter.
///
/// # Errors
/// The query has another parameter, or the value is not `true` or `false`.
pub(super) fn flag(flag: Flag, query: Option<&str>) -> Result<bool, Problem> {
    flags([flag], query).map(|[value]| value)
}

/// The values of the flags. The resource knows no other parameters.
///
/// # Errors
/// The query has another parameter, or a value is not `true` or `false`.
pub(super) fn flags<const N: usize>(
    flags: [Flag; N],
    query: Option<&str>,
) -> Result<[bool; N], Problem> {
    let names = flags.each_ref().map(|Flag(name, _)| *name);
    let values = parameters(names, query)?;
    let mut set = [false; N];
    for ((flag, value), set) in flags.into_iter().zip(values).zip(&mut set) {
        *set = is_set(flag, value)?;
    }
    Ok(set)
}

/// Whether the flag has this value.
///
/// # Errors
/// The value is not `true` or `false`.
pub(super) fn is_set(Flag(name, _): Flag, value: Option<&str>) -> Result<bool, Problem> {
    match value {
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
    let [value] = parameters([name], query)?;
    value.map_or(Ok(most), |value| count_in(name, value, most))
}

/// The number that is the value of the parameter `name`.
///
/// # Errors
/// The value is not 1 to `most`.
pub(super) fn count_in(name: &str, value: &str, most: usize) -> Result<usize, Problem> {
    let count = value.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| invalid(format!("{name} is {value:?}: must be 1 to {most}")))
}

/// The values of the parameters `known`, as far as they are given.
///
/// # Errors
/// There is another parameter, or one is given twice.
pub(super) fn parameters<'a, const N: usize>(
    names: [&str; N],
    query: Option<&'a str>,
) -> Result<[Option<&'a str>; N], Problem> {
    let mut values = [None; N];
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(at) = names.iter().position(|other| *other == name) else {
            let are = match N {
                0 => "this call has none".into(),
                1 => format!("known is {}", names.join("")),
                _ => format!("known are {}", names.join(", ")),
            };
            return Err(invalid(format!("unknown parameter {name:?}; {are}")));
        };
        if let Some(other) = values[at].replace(value) {
            return Err(invalid(format!("{name} is given twice: {other:?} and {value:?}")));
        }
    }
    Ok(values)
}

pub(super) fn invalid(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::{FORCE, count, flag, none, parameters};

    #[test]
    fn only_the_known_flag_is_taken() {
        assert!(flag(FORCE, Some("force=true")).unwrap());
        assert!(!flag(FORCE, Some("&force=false")).unwrap() && !flag(FORCE, None).unwrap());
        for (query, named) in
            [("force", "\"\""), ("force=1", "\"1\""), ("cascade=true", "known is force")]
        {
            let detail = flag(FORCE, Some(query)).unwrap_err().detail;
            assert!(detail.contains(named), "{query}: {detail}");
        }
    }

    #[test]
    fn each_parameter_is_known_and_given_once() {
        let read = |query| parameters(["limit", "after"], Some(query));
        assert_eq!(read("after=b&limit=1").unwrap(), [Some("1"), Some("b")]);
        assert!(none(Some("&")).is_ok());
        let detail = |query| read(query).unwrap_err().detail;
        assert_eq!(detail("a=1"), "unknown parameter \"a\"; known are limit, after");
        assert_eq!(detail("limit=1&limit=2"), "limit is given twice: \"1\" and \"2\"");
        let detail = none(Some("a")).unwrap_err().detail;
        assert_eq!(detail, "unknown parameter \"a\"; this call has none");
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
