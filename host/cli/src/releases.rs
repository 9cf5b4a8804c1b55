//! `gristmill releases`: the releases of a server, the last ones first, or one of them.

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::Value;

use crate::admin::{self, Admin};
use crate::args::option;
use crate::output::{self, Column, Output, Table, cut};

const COLUMNS: [Column; 5] = [
    ("RELEASE", "number"),
    ("PUBLISHED", "published_at"),
    ("BY", "by"),
    ("CHANGES", "changes"),
    ("MESSAGE", "message"),
];

/// Maximum characters of a cell.
const CELL_CHARS_MAX: usize = 60;

pub(crate) fn command() -> Command {
    Command::new("releases")
        .about("List the releases of a server, the last ones first, or show one of them")
        .after_help(
            "Examples:\n  \
             gristmill releases --limit 5\n  \
             gristmill releases 12\n\n\
             A release shows who made it, when, why, each change, and under `power` what may do more \
             or less since. No key is shown. `gristmill \
             rollback` goes back to one. Give the token in GRISTMILL_ADMIN_TOKEN rather than with \
             --token.",
        )
        .args([
            Arg::new("number")
                .value_name("RELEASE")
                .value_parser(value_parser!(u64).range(1..))
                .help("Show this one with its changes"),
            option("limit", "COUNT")
                .value_parser(value_parser!(u64).range(1..=100))
                .default_value("20")
                .help("The most releases that are listed; 1 to 100"),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let output = Output::of(matches);
    if let Some(number) = matches.get_one::<u64>("number") {
        // An older server does not know `power`. No server can tell it if the log is damaged before
        // the release.
        let release = admin
            .get(&format!("releases/{number}?power=true"))
            .or_else(|_| admin.get(&format!("releases/{number}")));
        let release = release.with_context(|| format!("cannot show release {number}"))?;
        output::print_document(&release, output);
        return Ok(());
    }
    let limit = matches.get_one::<u64>("limit").context("--limit is missing")?;
    let mut page = admin.get(&format!("releases?limit={limit}")).context("cannot list releases")?;
    let items = page["items"].take();
    let items = items.as_array().map_or(&[][..], Vec::as_slice);
    let table = Table { columns: &COLUMNS, none: "there are no releases" };
    table.print(items, output, row);
    Ok(())
}

/// A release with its changes and its message on one line.
fn row(release: &Value) -> Value {
    let mut row = release.clone();
    let changes = release["changes"].as_array().map_or(&[][..], Vec::as_slice);
    let first = changes.first().and_then(Value::as_str).unwrap_or_default();
    let others = release["changes_total"].as_u64().unwrap_or_default().saturating_sub(1);
    row["changes"] = match others {
        0 => cut(first, CELL_CHARS_MAX).into(),
        others => format!("{} and {others} more", cut(first, CELL_CHARS_MAX)).into(),
    };
    if let Some(fault) = release["fault"].as_str() {
        row["changes"] = cut(&format!("cannot be read: {fault}"), CELL_CHARS_MAX).into();
    }
    if let Some(message) = release["message"].as_str() {
        row["message"] = cut(message.lines().next().unwrap_or_default(), CELL_CHARS_MAX).into();
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_is_one_line() {
        let releases = [
            json!({ "number": 12, "published_at": "2026-01-02T03:04:05.678Z", "by": "admin",
                "message": "first line\nsecond", "changes": ["put tenant acme", "put model m"],
                "changes_total": 12 }),
            json!({ "number": 1, "published_at": "2026-01-02T03:04:05.678Z",
                "changes": ["x".repeat(70)], "changes_total": 1 }),
            json!({ "number": 3, "changes": [], "changes_total": 0, "fault": "it was changed" }),
        ];
        let rows: Vec<_> = releases.iter().map(row).collect();
        let long = format!("{}...", "x".repeat(57));
        let gap = " ".repeat(long.len() - "put tenant acme and 11 more".len());
        let head = " ".repeat(long.len() - "CHANGES".len());
        let expected = format!(
            "RELEASE  PUBLISHED                 BY     CHANGES{head}  MESSAGE\n\
             12       2026-01-02T03:04:05.678Z  admin  put tenant acme and 11 more{gap}  first line\n\
             1        2026-01-02T03:04:05.678Z         {long}\n\
             3                                         cannot be read: it was changed\n"
        );
        assert_eq!(output::table(&COLUMNS, &rows), expected);
    }
}
