//! `gristmill reference`: the tables of settings, limits and error codes, in Markdown, from the same
//! lists that the server works with. The README's are made by it (`cargo xtask docs`).

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches, Command};

use crate::config::SETTINGS;

pub(crate) fn command() -> Command {
    Command::new("reference")
        .about("Print a table of all settings, limits or error codes, in Markdown")
        .arg(
            Arg::new("table")
                .value_name("TABLE")
                .required(true)
                .value_parser(["settings"])
                .help("Which one"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let name = matches.get_one::<String>("table").context("TABLE is missing")?;
    ensure!(name == "settings", "TABLE is {name:?}: there is no such table");
    print!("{}", settings());
    Ok(())
}

/// What `serve` can be told.
fn settings() -> String {
    let mut table = Table::new(["key", "default", "meaning"]);
    for setting in SETTINGS {
        let default = setting.default.map_or_else(|| "none".to_owned(), code);
        table.row([code(setting.key), default, setting.help.to_owned()]);
    }
    table.0
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A Markdown table.
struct Table(String);

impl Table {
    fn new<const N: usize>(heads: [&str; N]) -> Self {
        let mut table = Self(String::new());
        table.row(heads.map(str::to_owned));
        table.row([const { "---" }; N].map(str::to_owned));
        table
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }
}
