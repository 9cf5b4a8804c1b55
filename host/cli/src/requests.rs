//! `gristmill requests`: the requests that are under way on a server.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use serde_json::Value;

use crate::admin::{self, Admin};
use crate::output::{Column, Output, Table};

const COLUMNS: [Column; 6] = [
    ("REQUEST", "id"),
    ("TENANT", "tenant"),
    ("PIPELINE", "pipeline"),
    ("MODEL", "model"),
    ("STAGE", "stage"),
    ("AGE", "age"),
];

pub(crate) fn command() -> Command {
    Command::new("requests")
        .about("Show the requests that are under way on a server, the oldest first")
        .after_help(
            "Examples:\n  \
             gristmill requests\n  \
             gristmill requests --output json | jq '.[] | select(.age_ms > 1000)'\n\n\
             A request has no tenant until its caller was admitted and its body read. Its stage is \
             auth, read, pre (the plugin's preprocess), handle, queue (of the model), infer or post. At \
             most 1000 are shown.",
        )
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let page = admin.get("requests").context("cannot show the requests")?;
    let rows = page["items"].as_array().cloned().unwrap_or_default();
    let table = Table { columns: &COLUMNS, none: "no request is under way" };
    table.print(&rows, Output::of(matches), row);
    Ok(())
}

fn row(request: &Value) -> Value {
    let mut row = request.clone();
    row["age"] = format!("{:.1} ms", request["age_ms"].as_f64().unwrap_or_default()).into();
    row
}
