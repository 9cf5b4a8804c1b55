//! `gristmill plugin logs`: the last lines of a plugin, as the server has kept them.

use std::fmt::Write;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::Value;

use super::admin::{self, Admin};
use super::output::{self, Output};

pub(crate) fn command() -> Command {
    Command::new("logs")
        .about("Show a plugin's last lines: what it logged and printed, and how its calls failed")
        .after_help(
            "Examples:\n  \
             gristmill plugin logs digits --tenant acme\n  \
             gristmill plugin logs digits --tenant acme --limit 20 --output json\n\n\
             The server keeps 256 lines and 64 KiB of a plugin, of the 16 plugins of a tenant that \
             logged last, until it ends. Give the token in GRISTMILL_ADMIN_TOKEN rather than with \
             --token.",
        )
        .arg(Arg::new("plugin").value_name("PLUGIN").required(true).help("The plugin's name"))
        .arg(
            Arg::new("tenant")
                .long("tenant")
                .value_name("NAME")
                .required(true)
                .help("The plugin's tenant"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u32))
                .help("Show at most the last N lines"),
        )
        .args(admin::arguments())
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let given = |name: &str| matches.get_one::<String>(name);
    let tenant = admin::name("--tenant", given("tenant").context("--tenant is missing")?)?;
    let plugin = admin::name("PLUGIN", given("plugin").context("PLUGIN is missing")?)?;
    let mut path = format!("tenants/{tenant}/plugins/{plugin}/logs");
    if let Some(limit) = matches.get_one::<u32>("limit") {
        let _ = write!(path, "?limit={limit}");
    }
    let mut found =
        admin.get(&path).with_context(|| format!("cannot show the lines of {tenant}/{plugin}"))?;
    let lines = found["lines"].take();
    match Output::of(matches) {
        Output::Json => println!("{lines}"),
        Output::Text => {
            let lines = lines.as_array().into_iter().flatten();
            lines.for_each(|line| print!("{}", text(line)));
        }
    }
    Ok(())
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
