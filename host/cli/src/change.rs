//! A release that a command makes of what it read before. If another release is made meanwhile, the
//! command reads again, so it takes back nothing of somebody else's.

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches};
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::option;
use crate::differences;
use crate::output::Output;
use crate::release_flags;

/// Maximum times that the changes are found anew because another release was made meanwhile.
const ROUNDS_MAX: usize = 5;

/// `--message`.
pub(crate) fn message() -> Arg {
    option("message", "TEXT").help("Why; the new release keeps it")
}

/// The flags of a command that makes a release of changes that it found.
pub(crate) fn arguments() -> impl Iterator<Item = Arg> {
    [message(), release_flags::wait_all()].into_iter().chain(admin::changing())
}

/// Make a release of the changes that `find` finds on the server. The release flags and
/// [`message`] of the command count. Returns the server's answer.
///
/// # Errors
/// Those of `find`, or the server refuses the release.
pub(crate) fn make(
    admin: &Admin,
    matches: &ArgMatches,
    find: impl Fn() -> Result<Vec<Value>>,
) -> Result<Value> {
    let path = format!("releases?{}dry_run=false", release_flags::query(matches));
    for _ in 0..ROUNDS_MAX {
        let release = admin.release()?;
        let mut document = json!({ "changes": find()?, "expected_release": release });
        if let Ok(Some(message)) = matches.try_get_one::<String>("message") {
            document["message"] = message.as_str().into();
        }
        if let Some(made) = admin.post_unless_overtaken(&path, &document)? {
            return Ok(made);
        }
    }
    bail!("other releases are made all the time: nothing was changed; try again later")
}

/// Print what a release changed.
pub(crate) fn print(made: &Value, output: Output) {
    output.print(made, || differences::of_answer(made) + &serves(made));
}

/// The line for a release that was made.
pub(crate) fn serves(made: &Value) -> String {
    format!("release {} serves\n", made["release"])
}
