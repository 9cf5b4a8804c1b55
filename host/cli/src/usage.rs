//! `gristmill usage`: what each tenant used of a server.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use form_urlencoded::Serializer;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::{option, switch};
use crate::output::{Column, Output, Table};

const COLUMNS: [Column; 11] = [
    ("HOUR", "hour"),
    ("TENANT", "tenant"),
    ("PIPELINE", "pipeline"),
    ("MODEL", "model"),
    ("REQUESTS", "requests"),
    ("FAILED", "failed"),
    ("ROWS", "rows"),
    ("PLUGIN CPU", "plugin_cpu"),
    ("MODEL TIME", "model_time"),
    ("HOST CPU", "host_cpu"),
    ("BYTES", "bytes"),
];

pub(crate) fn command() -> Command {
    Command::new("usage")
        .about("Show what each tenant used of a server")
        .after_help(
            "Examples:\n  \
             gristmill usage\n  \
             gristmill usage --from 2026-11-01T00 --to 2026-11-30T23 --output json\n  \
             gristmill usage --tenant acme --hours\n\n\
             The sums are those of the receipts of requests (header Gristmill-Receipt), by tenant, \
             pipeline and model; a request to a model itself has no pipeline. PLUGIN CPU is the \
             CPU time of plugin calls, MODEL TIME the share of the time of batches, by rows, \
             HOST CPU the server's own CPU time for requests; all in seconds. BYTES are those of requests and answers. Each server of a store \
             counts its own requests.",
        )
        .args([
            option("from", "HOUR")
                .help("The first hour in UTC, such as 2026-11-25T14; a day ago by default"),
            option("to", "HOUR").help("The last hour; the current one by default"),
            option("tenant", "TENANT").help("Only of this tenant"),
            switch("hours").help("Show each hour by itself"),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let mut query = Serializer::new(String::new());
    for name in ["from", "to", "tenant"] {
        if let Some(value) = matches.get_one::<String>(name) {
            query.append_pair(name, value);
        }
    }
    if matches.get_flag("hours") {
        query.append_pair("by", "hour");
    }
    let query = query.finish();
    let mut rows = Vec::new();
    let mut after = String::new();
    loop {
        let page = admin.get(&format!("usage?{query}{after}")).context("cannot show the usage")?;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        rows.extend(items);
        let Some(next) = page["next"].as_str() else { break };
        let next = Serializer::new(String::new()).append_pair("after", next).finish();
        after = format!("&{next}");
    }
    let table = Table { columns: &COLUMNS, none: "nothing was used" };
    table.print(&rows, Output::of(matches), row);
    Ok(())
}

/// A row for people.
fn row(used: &Value) -> Value {
    let number = |name: &str| used[name].as_u64().unwrap_or_default();
    let seconds = |name: &str| format!("{:.3} s", number(name) as f64 / 1e6);
    let mut row = used.clone();
    row["plugin_cpu"] = seconds("plugin_cpu_us").into();
    row["model_time"] = seconds("model_us").into();
    row["host_cpu"] = seconds("host_cpu_us").into();
    row["bytes"] = json!(number("received_bytes") + number("sent_bytes"));
    row
}
