//! `gristmill candidate show`, `promote` and `abort`: the candidate of a pipeline.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::group;
use crate::output::{Output, escaped};
use crate::{change, names, release_flags};

pub(crate) fn command() -> Command {
    let show = Command::new("show").about("Show how the candidate of a pipeline fares").after_help(
        "The figures are those of the server that answers, since the release that brought the \
         candidate, or since its start.",
    );
    let promote = Command::new("promote")
        .about("Put the candidate in its pipeline's place, as a new release")
        .args([release_flags::skip_samples(), release_flags::wait_all(), admin::yes()]);
    let abort = Command::new("abort")
        .about("Take the candidate away, as a new release")
        .args([release_flags::wait_all(), admin::yes()]);
    group("candidate")
        .about("Show, promote or abort the candidate of a pipeline")
        .after_help(
            "Examples:\n  \
             gristmill candidate show digits --tenant acme\n  \
             gristmill candidate promote digits --tenant acme\n  \
             gristmill candidate abort digits --tenant acme\n\n\
             A pipeline gets a candidate by the member `candidate` of its document: other plugins, \
             another model or other settings, which answer a share of the requests or run as a \
             shadow. `gristmill deploy` puts it.",
        )
        .subcommands(
            [show, promote, abort].map(|command| command.args(names::pipeline_arguments())),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("show", matches)) => show(matches),
        Some((end @ ("promote" | "abort"), matches)) => finish(end, matches),
        _ => bail!("no such command; see gristmill candidate --help"),
    }
}

/// The path of the pipeline's candidate.
fn path(matches: &ArgMatches) -> Result<String> {
    let [tenant, pipeline] = names::given_pipeline(matches)?;
    Ok(format!("tenants/{tenant}/pipelines/{pipeline}/candidate"))
}

fn show(matches: &ArgMatches) -> Result<()> {
    let document = Admin::of(matches)?.get(&path(matches)?).context("cannot show the candidate")?;
    Output::of(matches).print(&document, || text(&document));
    Ok(())
}

fn finish(end: &str, matches: &ArgMatches) -> Result<()> {
    let mut path = format!("{}/{end}", path(matches)?);
    let query = release_flags::query(matches);
    if !query.is_empty() {
        let _ = write!(path, "?{}", query.trim_end_matches('&'));
    }
    let made = Admin::to_change(matches)?.post(&path, &json!({}));
    let made = made.with_context(|| format!("cannot {end} the candidate"))?;
    Output::of(matches).print(&made, || change::serves(&made));
    Ok(())
}

/// The figures, for a person.
fn text(document: &Value) -> String {
    let shown = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let mut text = format!("state      {}\n", shown(&document["state"]));
    if document["reason"].is_string() {
        let _ = writeln!(text, "reason     {}", shown(&document["reason"]));
    }
    if !document["document"].is_null() {
        let _ = writeln!(text, "document   {}", escaped(&document["document"].to_string()));
    }
    if document["since_release"].is_null() {
        return text;
    }
    let _ = writeln!(text, "since      release {}", document["since_release"]);
    for variant in ["stable", "candidate"] {
        let figures = &document[variant];
        let _ = writeln!(
            text,
            "{variant:<10} {} requests, {} failures, mean {} ms, longest {} ms",
            figures["requests"], figures["failures"], figures["mean_ms"], figures["max_ms"]
        );
    }
    let shadow = &document["shadow"];
    let is_shadow = ["compared", "skipped"].iter().any(|key| shadow[*key] != 0);
    if is_shadow {
        let _ = writeln!(
            text,
            "shadow     {} compared, {} differ, {} skipped",
            shadow["compared"], shadow["different"], shadow["skipped"]
        );
    }
    // Requests that differ in the same way are shown once.
    let mut groups: Vec<(&Value, Vec<&Value>)> = Vec::new();
    for difference in document["differences"].as_array().into_iter().flatten() {
        let (values, request) = (&difference["values"], &difference["request_id"]);
        match groups.iter_mut().find(|(group, _)| *group == values) {
            Some((_, requests)) => requests.push(request),
            None => groups.push((values, vec![request])),
        }
    }
    for (values, requests) in groups {
        let others = match requests.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let _ = writeln!(text, "request {}{others}", shown(requests[0]));
        for value in values.as_array().into_iter().flatten() {
            let (path, stable) = (shown(&value["path"]), shown(&value["stable"]));
            let candidate = shown(&value["candidate"]);
            let _ = writeln!(text, "    {path}: {stable}, candidate {candidate}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_shown_and_what_a_terminal_acts_upon_is_escaped() {
        let counters = json!({ "requests": 7, "failures": 1, "mean_ms": 1.5, "max_ms": 9.25 });
        let same = json!([{ "path": "$.a", "stable": "1", "candidate": "2" }]);
        let document = json!({
            "state": "aborted", "reason": "too \u{1b}[2J many", "since_release": 3,
            "stable": counters, "candidate": counters,
            "shadow": { "compared": 5, "different": 2, "skipped": 1 },
            "differences": [
                { "request_id": "r1", "values": same },
                { "request_id": "r2", "values": [] },
                { "request_id": "r3", "values": same },
            ],
        });
        let text = text(&document);
        assert!(!text.contains('\u{1b}'), "{text}");
        for line in [
            "state      aborted",
            "since      release 3",
            "candidate  7 requests, 1 failures, mean 1.5 ms, longest 9.25 ms",
            "shadow     5 compared, 2 differ, 1 skipped",
            "request r1 and 1 more",
            "    $.a: 1, candidate 2",
            "request r2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert_eq!(super::text(&json!({ "state": "none" })), "state      none\n");
    }
}
