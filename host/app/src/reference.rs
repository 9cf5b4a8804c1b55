//! `gristmill reference`: the tables of settings, limits, error codes and metrics, in Markdown, and
//! the description of the admin API, in JSON. They come from the same lists and types that the
//! server uses. `cargo xtask docs` writes them into the repository.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command};
use gristmill_core::PipelineLimits;
use gristmill_state::{LimitRange, limit_ranges};
use gristmill_transport::{ErrorCodeRow, error_codes};

use crate::config::settings;

pub(crate) fn command() -> Command {
    Command::new("reference")
        .about(
            "Print a table of all settings, limits, error codes or metrics, in Markdown, or the OpenAPI \
             document of the admin API",
        )
        .arg(
            Arg::new("table")
                .value_name("TABLE")
                .required(true)
                .value_parser(["settings", "limits", "errors", "metrics", "openapi"])
                .help("The table to print, or the document"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let name = matches.get_one::<String>("table").context("TABLE is missing")?;
    let table = match name.as_str() {
        "settings" => settings_table(),
        "limits" => limits(),
        "errors" => errors(),
        "metrics" => metrics(),
        "openapi" => gristmill_admin::openapi_document()?,
        other => bail!("TABLE is {other:?}: there is no such table"),
    };
    print!("{table}");
    Ok(())
}

/// The settings of `serve`.
fn settings_table() -> String {
    let mut table = Table::new(["key", "default", "meaning"]);
    for setting in settings() {
        let default = setting.default.map_or_else(|| "none".to_owned(), code);
        table.row([code(setting.key), default, setting.help.to_owned()]);
    }
    table.0
}

/// The limits of a request and of its plugin calls.
fn limits() -> String {
    let host = PipelineLimits::default();
    let mut table =
        Table::new(["limit", "default", "range", "what it limits; the error beyond it"]);
    for LimitRange { key, min, max, default } in limit_ranges(&host) {
        let text = |value: u64| match value {
            value if key.ends_with("_bytes") => bytes(value),
            value => value.to_string(),
        };
        let max = match key {
            "memory_bytes" => code("plugin_memory_bytes"),
            "passed_bytes" => code("plugin_held_bytes"),
            "response_bytes" => code("passed_bytes"),
            _ => text(max),
        };
        let range = format!("{} to {max}", text(min));
        table.row([code(key), text(default), range, meaning_of(key).to_owned()]);
    }
    let plugin = &host.plugin;
    let all = bytes(plugin.host_memory_bytes as u64);
    let meaning = "all tensors, pictures and blobs of a call; 500 `plugin_out_of_memory`, or an error that \
                   the plugin gets if one picture may take more";
    let held = code("plugin_held_bytes");
    table.row(["tensors and pictures".to_owned(), all, held, meaning.to_owned()]);
    let mut fixed = |what: &str, limit: String, meaning: &str| {
        table.row([what.to_owned(), limit, "fixed".to_owned(), meaning.to_owned()]);
    };
    let meaning =
        "a picture that is decoded or made; the plugin gets an error, which is 422 with the SDK";
    fixed("pixels", plugin.pixels.to_string(), meaning);
    let meaning = "tensors, pictures and bodies held at the same time; 500 `plugin_out_of_memory`";
    fixed("handles", plugin.handles.to_string(), meaning);
    let elements = plugin.table_elements.to_string();
    fixed("table elements", elements, "all tables of a call; 500 `plugin_out_of_memory`");
    table.0
}

/// The error codes.
fn errors() -> String {
    let mut table = Table::new(["status", "code", "meaning"]);
    for ErrorCodeRow { status, code: text, meaning } in error_codes() {
        table.row([status.to_string(), code(text), meaning.to_owned()]);
    }
    table.0
}

/// The metrics.
fn metrics() -> String {
    let mut table = Table::new(["metric", "kind", "unit", "labels", "meaning"]);
    for family in gristmill_metrics::family::ALL {
        let labels = family.attributes.iter().map(|name| code(name)).collect::<Vec<_>>();
        table.row([
            code(&family.prometheus_name()),
            family.kind.as_str().to_owned(),
            code(family.unit),
            labels.join(", "),
            family.help.to_owned(),
        ]);
    }
    table.0
}

/// The meaning of a pipeline's limit, and the error of a request that exceeds it.
fn meaning_of(key: &str) -> &'static str {
    match key {
        "timeout_ms" => "from the request's arrival to its answer; 504 `deadline_exceeded`",
        "body_bytes" => "the request's body; 413 `body_too_large`",
        "cpu_ms" => {
            "CPU time of each plugin call, the host's work for it included; by default 3000 for a call \
             that decodes a picture; 504 `plugin_timeout`"
        }
        "memory_bytes" => "linear memory of each plugin call; 500 `plugin_out_of_memory`",
        "response_bytes" => {
            "a response, and the state between the two calls; 500 `plugin_invalid_output`"
        }
        "log_bytes" => {
            "log lines of each plugin call; further lines are dropped, and one line says so. If the \
             call fails, its last warning or error is logged all the same"
        }
        "passed_bytes" => {
            "lists and strings that one call between plugin and host passes; the plugin call fails. A \
             tensor that is not made of a picture has at most 1 MiB less; the plugin gets an error"
        }
        _ => "",
    }
}

/// The text of a number of bytes, in the largest unit of which it is a whole number.
fn bytes(bytes: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
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

#[cfg(test)]
mod tests {
    use gristmill_core::PipelineLimits;
    use gristmill_state::limit_ranges;

    use super::{Table, bytes, limits, meaning_of};

    #[test]
    fn every_limit_has_a_meaning_and_a_row() {
        let table = limits();
        for range in limit_ranges(&PipelineLimits::default()) {
            assert_ne!(meaning_of(range.key), "", "{}", range.key);
            assert!(table.contains(&format!("| `{}` | ", range.key)), "{table}");
        }
    }

    #[test]
    fn bytes_are_whole_units() {
        let texts = [0, 1, 1000, 65_536, 33 << 20, 1 << 30].map(bytes);
        assert_eq!(texts, ["0", "1", "1000", "64 KiB", "33 MiB", "1 GiB"]);
    }

    #[test]
    fn cells_keep_their_columns() {
        let mut table = Table::new(["a", "b"]);
        table.row(["x|y".to_owned(), "z".to_owned()]);
        assert_eq!(table.0, "| a | b |\n| --- | --- |\n| x\\|y | z |\n");
    }
}
