//! `gristmill rollback`: back to the state after an earlier release, as a new release.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, value_parser};
use serde_json::json;

use crate::admin::{self, Admin};
use crate::args::{option, switch};
use crate::ask::ask;
use crate::output::Output;
use crate::release_flags;
use crate::{change, differences};

pub(crate) fn command() -> Command {
    Command::new("rollback")
        .about("Bring back the state after an earlier release, as a new release")
        .after_help(
            "Examples:\n  \
             gristmill rollback --to 12 --dry-run\n  \
             gristmill rollback --to 12 --tenant acme --message \"the new plugin is wrong\"\n  \
             gristmill rollback --to 12 --model digits --yes\n\n\
             What would change is shown, and asked about. Without a terminal, give --yes. API keys \
             stay as they are: a key that was deleted or replaced does not come back. Give the \
             token in GRISTMILL_ADMIN_TOKEN rather than with --token.",
        )
        .args([
            option("to", "RELEASE")
                .required(true)
                .value_parser(value_parser!(u64).range(1..))
                .help("The release; `gristmill releases` lists them"),
            option("tenant", "NAME")
                .conflicts_with("model")
                .help("Bring back only this tenant with its plugins and pipelines"),
            option("model", "NAME").help("Bring back only this model"),
            change::message(),
            release_flags::force(),
            release_flags::skip_samples(),
            release_flags::wait_all(),
            switch("dry-run").help("Only show what would change"),
            admin::yes(),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let output = Output::of(matches);
    let to = matches.get_one::<u64>("to").context("--to is missing")?;
    let mut document = json!({ "to": to });
    for key in ["tenant", "model", "message"] {
        if let Some(text) = matches.get_one::<String>(key) {
            document[key] = text.as_str().into();
        }
    }
    let query = release_flags::query(matches);
    let failed = || format!("cannot go back to release {to}");
    let planned = admin.post(&format!("rollback?{query}dry_run=true"), &document);
    let planned = planned.with_context(failed)?;
    let differences = planned["differences"].as_array().map_or(&[][..], Vec::as_slice);
    if matches.get_flag("dry-run") || differences.is_empty() {
        output.print(&planned, || differences::of_answer(&planned));
        return Ok(());
    }
    admin.announce();
    if !matches.get_flag("yes") {
        eprint!("{}", differences::of_answer(&planned));
        ask(&format!("Go back to release {to}?"))?;
    }
    // Only what was shown is done.
    if let Some(release) = planned["release"].as_u64() {
        document["expected_release"] = release.saturating_sub(1).into();
    }
    let made = admin.post(&format!("rollback?{query}dry_run=false"), &document);
    let made = made.with_context(failed)?;
    output.print(&made, || change::serves(&made));
    Ok(())
}
