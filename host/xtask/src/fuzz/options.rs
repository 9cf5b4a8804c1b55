//! The options of `cargo xtask fuzz`, from the command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

/// The seconds for which a target runs, unless the command line says otherwise.
const SECONDS: u32 = 60;

/// What to run.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) targets: Vec<String>,
    pub(super) seconds: u32,
    /// One input for one target, in place of a run.
    pub(super) input: Option<PathBuf>,
}

impl Options {
    /// None if help is asked for. Without the name of a target, all of the `known` ones are meant.
    ///
    /// # Errors
    /// A flag or a target is unknown, or a value does not fit.
    pub(super) fn parse(args: &[&str], known: &[&str]) -> Result<Option<Self>> {
        let mut own = Self { targets: Vec::new(), seconds: SECONDS, input: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match *arg {
                "-h" | "--help" => return Ok(None),
                "--seconds" => {
                    let given = value()?;
                    let seconds = given.parse().ok().filter(|seconds| *seconds > 0);
                    own.seconds = seconds.with_context(|| {
                        format!("--seconds is {given:?}: must be a whole number from 1 on")
                    })?;
                }
                "--input" => own.input = Some(value()?.into()),
                flag if flag.starts_with('-') => {
                    bail!("unknown flag {flag:?}: there are --seconds, --input and --help")
                }
                name => {
                    let targets = known.join(", ");
                    ensure!(known.contains(&name), "no target {name:?}: there are {targets}");
                    own.targets.push(name.to_owned());
                }
            }
        }
        if own.input.is_some() {
            let count = own.targets.len();
            ensure!(count == 1, "--input needs one target, and {count} are named");
        }
        if own.targets.is_empty() {
            own.targets.extend(known.iter().map(|name| (*name).to_owned()));
        }
        Ok(Some(own))
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    const KNOWN: [&str; 2] = ["images", "multipart"];

    fn parsed(args: &[&str]) -> Options {
        Options::parse(args, &KNOWN).unwrap().unwrap()
    }

    #[test]
    fn a_minute_of_every_target_is_the_default() {
        let options = parsed(&[]);
        assert_eq!(
            (options.targets.as_slice(), options.seconds),
            (&KNOWN.map(String::from)[..], 60)
        );
        let options = parsed(&["multipart", "--seconds", "3600"]);
        assert_eq!(
            (options.targets.as_slice(), options.seconds),
            (&["multipart".into()][..], 3600)
        );
        let options = parsed(&["--input", "a/crash-1", "images"]);
        assert_eq!(options.input, Some("a/crash-1".into()));
        assert_eq!(Options::parse(&["images", "--help"], &KNOWN).unwrap(), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (args, named) in [
            (&["pictures"][..], "no target \"pictures\": there are images, multipart"),
            (&["--seconds", "0"], "--seconds is \"0\": must be a whole number from 1 on"),
            (&["--seconds"], "--seconds needs a value"),
            (&["--minutes", "1"], "unknown flag \"--minutes\""),
            (&["--input", "a"], "--input needs one target, and 0 are named"),
        ] {
            let error = Options::parse(args, &KNOWN).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
