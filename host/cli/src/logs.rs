//! `gristmill logs`: the last lines of all plugins of a tenant, and those that come.

use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, value_parser};
use serde_json::Value;

use crate::admin::{self, Admin};
use crate::args::{option, switch, word};
use crate::names;
use crate::output::{self, Output};

/// The time between two looks for further lines.
const INTERVAL: Duration = Duration::from_millis(500);

pub(crate) fn command() -> Command {
    Command::new("logs")
        .about("Show what the plugins of a tenant log, and how their calls fail")
        .after_help(
            "Examples:\n  \
             gristmill logs acme\n  \
             gristmill logs acme --follow\n  \
             gristmill logs acme --plugin digits --limit 20 --output json\n\n\
             The server keeps 256 lines and 64 KiB of a plugin, of the 16 plugins of a tenant that \
             logged last, until it ends. Lines that come faster than --follow looks for them (twice \
             a second) can be missed. With --follow, JSON is one object a line. Give the token in \
             GRISTMILL_ADMIN_TOKEN rather than with --token.",
        )
        .args([
            word("tenant", "TENANT").help("The tenant's name"),
            option("plugin", "NAME").help("Only of this plugin"),
            option("limit", "N")
                .value_parser(value_parser!(u32))
                .help("Begin with at most the last N lines"),
            switch("follow").short('f').help("Go on with the lines that come, until Ctrl-C"),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let output = Output::of(matches);
    let tenant = names::required(matches, "tenant", "TENANT")?;
    let mut path = format!("tenants/{tenant}/logs?");
    if let Some(plugin) = names::optional(matches, "plugin")? {
        let _ = write!(path, "plugin={plugin}&");
    }
    let read = |query: &str| {
        let answer = admin.get(&format!("{path}{query}"));
        answer.with_context(|| format!("cannot show the lines of {tenant}"))
    };
    let limit = matches.get_one::<u32>("limit").map(|limit| format!("limit={limit}"));
    let mut page = read(limit.as_deref().unwrap_or("limit=1024"))?;
    if !matches.get_flag("follow") {
        print(&page["lines"], output);
        return Ok(());
    }
    loop {
        for line in page["lines"].as_array().into_iter().flatten() {
            let text = match output {
                Output::Json => format!("{line}\n"),
                Output::Text => text(line),
            };
            stdout().write_all(text.as_bytes())?;
        }
        stdout().flush()?;
        sleep(INTERVAL);
        page = read(&format!("after={}", page["next"]))?;
    }
}

/// Print lines: as one document, or for people.
pub(crate) fn print(lines: &Value, output: Output) {
    output.print(lines, || lines.as_array().into_iter().flatten().map(text).collect());
}

/// A line, and its fields below it. What a terminal would act upon is escaped.
fn text(line: &Value) -> String {
    let part = |name: &str| line[name].as_str().unwrap_or_default();
    let mut text = format!(
        "{} {:>5} {}/{} {} {}\n",
        part("time"),
        part("level"),
        part("pipeline"),
        part("call"),
        part("request_id"),
        shown(part("message")),
    );
    for (name, value) in line["fields"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), shown);
        let _ = writeln!(text, "    {}: {value}", shown(name));
    }
    text
}

/// The text without what a terminal would act upon. Its further lines are indented.
fn shown(text: &str) -> String {
    output::escaped(text).replace('\n', "\n      ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::text;

    #[test]
    fn a_line_shows_all_its_parts_and_changes_no_terminal() {
        let line = json!({
            "time": "2026-11-01T10:00:00.000000Z", "level": "warn", "request_id": "order-66",
            "pipeline": "digits", "plugin": "reader", "call": "preprocess",
            "message": "red \u{1b}[31m", "fields": { "stack": "a\nb" },
        });
        let expected = "\
2026-11-01T10:00:00.000000Z  warn digits/preprocess order-66 red \\u{1b}[31m
    stack: a
      b
";
        assert_eq!(text(&line), expected);
    }
}
