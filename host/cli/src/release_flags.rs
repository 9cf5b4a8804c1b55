//! Flags of commands that make releases, and what they are in a query of the admin API.

use clap::{Arg, ArgMatches};

use crate::args::switch;

const CASCADE: &str = "cascade";
const FORCE: &str = "force";
const SKIP_SAMPLES: &str = "skip-samples";
const WAIT_ALL: &str = "wait-all";

/// `--cascade`.
pub(crate) fn cascade() -> Arg {
    switch(CASCADE).help("Delete what belongs to it or uses it, too")
}

/// `--force`.
pub(crate) fn force() -> Arg {
    switch(FORCE).help("Put models although they do not fit the pipelines that use them")
}

/// `--skip-samples`.
pub(crate) fn skip_samples() -> Arg {
    switch(SKIP_SAMPLES)
        .help("Make the release although pipelines may not answer their samples as expected then")
}

/// `--wait-all`.
pub(crate) fn wait_all() -> Arg {
    switch(WAIT_ALL).help("Wait until all replicas serve the release, up to replica_wait_s")
}

/// The flags, and what each is in a query.
const PARAMETERS: [(&str, &str); 4] = [
    (CASCADE, "cascade=true"),
    (FORCE, "force=true"),
    (SKIP_SAMPLES, "skip_samples=true"),
    (WAIT_ALL, "wait=all"),
];

/// The parameters for the flags that are given, each with `&` behind it.
pub(crate) fn query(matches: &ArgMatches) -> String {
    let is_given = |flag| matches!(matches.try_get_one(flag), Ok(Some(true)));
    let given_flags = PARAMETERS.iter().filter(|(flag, _)| is_given(flag));
    given_flags.map(|(_, parameter)| format!("{parameter}&")).collect()
}

/// A text of the admin API for who types commands: with flags in place of parameters.
pub(crate) fn in_flags(text: &str) -> String {
    PARAMETERS.iter().fold(text.to_owned(), |text, (flag, parameter)| {
        text.replace(&format!("?{parameter}"), &format!("--{flag}"))
    })
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn flags_are_parameters_if_they_are_given() {
        let of = |flags: &[&str]| {
            let command =
                Command::new("c").no_binary_name(true).args([force(), skip_samples(), wait_all()]);
            query(&command.try_get_matches_from(flags).unwrap())
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["--skip-samples", "--force"]), "force=true&skip_samples=true&");
        assert_eq!(of(&["--wait-all", "--force"]), "force=true&wait=all&");
        let none = Command::new("c").no_binary_name(true).arg(skip_samples());
        assert_eq!(query(&none.try_get_matches_from([""; 0]).unwrap()), "");
    }
}
