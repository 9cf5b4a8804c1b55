//! The options of the benchmarks, from the command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The options of `cargo xtask bench`.
#[derive(Default)]
pub(super) struct Options {
    /// Whether everything is built first: not with `--no-build` or `--binaries`.
    pub(super) build: bool,
    /// The folder whose binaries are measured in place of release binaries.
    pub(super) binaries: Option<PathBuf>,
    /// Cases of `neighbour`, `control` or `compare`, or their beginnings, or peers of `peers`. All
    /// if none is given.
    pub(super) only: Vec<String>,
    /// The first of the servers that `compare` compares, or an earlier one, for `pace`.
    pub(super) before: Option<PathBuf>,
    /// The second one.
    pub(super) after: Option<PathBuf>,
    /// A file of what the program `gpu` printed on another machine. It is recorded, nothing is
    /// measured.
    pub(super) lines: Option<PathBuf>,
    /// Names of benchmarks.
    pub(super) names: Vec<String>,
}

impl Options {
    /// # Errors
    /// A flag is unknown or has no value. Names are not checked.
    pub(super) fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { build: true, ..Self::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match *arg {
                "--no-build" => options.build = false,
                "--binaries" => {
                    options.binaries = Some(value()?.into());
                    options.build = false;
                }
                "--only" => options.only.push((*value()?).to_owned()),
                "--before" => options.before = Some(value()?.into()),
                "--after" => options.after = Some(value()?.into()),
                "--lines" => {
                    options.lines = Some(value()?.into());
                    options.build = false;
                }
                flag if flag.starts_with("--") => bail!(
                    "unknown flag {flag:?}: there are --no-build, --binaries, --only, --before, \
                     --after and --lines"
                ),
                name => options.names.push(name.to_owned()),
            }
        }
        if options.lines.is_some() && options.names != ["gpu"] {
            bail!("--lines is an option of bench gpu alone");
        }
        Ok(options)
    }

    /// Whether the benchmark `name` is given.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn given_binaries_are_not_built() {
        let builds = |args: &[&str]| Options::parse(args).unwrap().build;
        assert!(builds(&["neighbour"]));
        assert!(!builds(&["--no-build"]) && !builds(&["neighbour", "--binaries", "target/guided"]));
    }
}
