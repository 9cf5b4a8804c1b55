//! `gristmill reference`: the tables of settings, limits and error codes, in Markdown, from the
//! lists that the server works with. `cargo xtask docs` writes them into the README.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command};
use gristmill_core::PipelineLimits;

use crate::config::SETTINGS;

pub(crate) fn command() -> Command {
    Command::new("reference")
        .about("Print a table of all settings, limits or error codes, in Markdown")
        .arg(
            Arg::new("table")
                .value_name("TABLE")
                .required(true)
                .value_parser(["settings", "limits"])
                .help("Which one"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let name = matches.get_one::<String>("table").context("TABLE is missing")?;
    let table = match name.as_str() {
        "settings" => settings(),
        "limits" => limits(),
        other => bail!("TABLE is {other:?}: there is no such table"),
    };
    print!("{table}");
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

/// What a request and its plugin calls may use. A pipeline sets those with a key under `limits`. A
/// test holds the column `at most` against what the server refuses.
fn limits() -> String {
    let PipelineLimits { timeout, body_bytes, plugin } = PipelineLimits::default();
    let mut table = Table::new(["limit", "default", "at most", "what it bounds; beyond it"]);
    let mut row = |limit: &str, default: String, most: &str, meaning: &str| {
        table.row([limit.to_owned(), default, most.to_owned(), meaning.to_owned()]);
    };
    let ms = |time: std::time::Duration| time.as_millis().to_string();
    let set = "`plugin_memory_bytes`";
    row(
        "`timeout_ms`",
        ms(timeout),
        "600000",
        "from the request's arrival to its answer; 504 `deadline_exceeded`",
    );
    row("`body_bytes`", bytes(body_bytes), "1 GiB", "the request's body; 413 `body_too_large`");
    row(
        "`cpu_ms`",
        ms(plugin.cpu),
        "60000",
        "CPU time of each plugin call, work of the host for it included; 504 `plugin_timeout`",
    );
    row(
        "`memory_bytes`",
        bytes(plugin.memory_bytes),
        set,
        "linear memory of each plugin call; 500 `plugin_out_of_memory`",
    );
    row(
        "`response_bytes`",
        bytes(plugin.response_bytes),
        &bytes(plugin.hostcall_bytes),
        "a response, and the state between the two calls; 500 `plugin_invalid_output`",
    );
    row(
        "`log_bytes`",
        bytes(plugin.log_bytes),
        "16 MiB",
        "what each plugin call logs; further lines are dropped, one line says so",
    );
    let fixed = "fixed";
    row(
        "tensor",
        bytes(plugin.tensor_bytes),
        fixed,
        "one tensor that a plugin makes; an error that the plugin sees",
    );
    row(
        "tensors and pictures",
        bytes(plugin.host_memory_bytes),
        fixed,
        "all that a call makes on the host, taken together; 500 `plugin_out_of_memory`",
    );
    row(
        "pixels",
        plugin.pixels.to_string(),
        fixed,
        "of a picture that is decoded or made; an error that the plugin sees, 422 with the SDK",
    );
    row(
        "handles",
        plugin.handles.to_string(),
        fixed,
        "tensors, pictures and blobs held at the same time; 500 `plugin_out_of_memory`",
    );
    row(
        "border",
        bytes(plugin.hostcall_bytes),
        fixed,
        "lists and strings that cross in one call; the call fails",
    );
    row(
        "table elements",
        plugin.table_elements.to_string(),
        fixed,
        "of all tables of a call; 500 `plugin_out_of_memory`",
    );
    row(
        "core instances",
        plugin.instances.to_string(),
        fixed,
        "of a component; the upload is refused",
    );
    table.0
}

/// Bytes in the largest unit that they are a whole number of.
fn bytes(bytes: usize) -> String {
    const UNITS: [(usize, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit =
        UNITS.iter().find(|(shift, _)| bytes >> shift << shift == bytes && bytes >> shift > 0);
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{} {unit}", bytes >> shift))
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
