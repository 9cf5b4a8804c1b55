//! `gristmill model list`: the models of a server, and what runs them.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use super::push::signature;
use crate::admin::{self, Admin};
use crate::output::{Column, Output, Table, state_and_reason};

const COLUMNS: [Column; 6] = [
    ("NAME", "name"),
    ("DIGEST", "digest"),
    ("VERSION", "version"),
    ("PROVIDER", "provider"),
    ("STATE", "state"),
    ("INPUTS -> OUTPUTS", "signature"),
];

pub(crate) fn command() -> Command {
    Command::new("list")
        .about("List the models: name, digest, version, provider, state, inputs and outputs")
        .after_help(
            "Example:\n  \
             gristmill model list --output json\n\n\
             A version is the release that brought the file. The provider is what runs the model: \
             cuda, cpu or tract.",
        )
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let status = admin.get("status").context("cannot list models")?;
    let models = status["models"].as_object().into_iter().flatten();
    let models: Vec<_> = models.map(|(name, model)| item(name, model)).collect();
    let table = Table { columns: &COLUMNS, none: "there are no models" };
    table.print(&models, Output::of(matches), row);
    Ok(())
}

fn item(name: &str, model: &Value) -> Value {
    let mut item = json!({ "name": name });
    for key in ["digest", "version", "provider", "warnings", "state", "reason", "inputs", "outputs"]
    {
        item[key] = model[key].clone();
    }
    item
}

fn row(item: &Value) -> Value {
    let mut row = item.clone();
    row["state"] = state_and_reason(item).into();
    row["signature"] = signature(item).into();
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_a_line_with_the_reason_for_which_it_does_not_serve() {
        let digest = format!("sha256:{}", "0123456789".repeat(6));
        let models = [
            item(
                "cnn",
                &json!({ "digest": digest, "version": 3, "provider": "cpu",
                "state": "ready", "statistics": {},
                "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 4] }],
                "outputs": [{ "name": "y", "datatype": "INT64", "shape": [-1] }] }),
            ),
            item(
                "bad",
                &json!({ "digest": digest, "version": 12, "state": "failed",
                "reason": "no room" }),
            ),
        ];
        let expected = "\
NAME  DIGEST               VERSION  PROVIDER  STATE            INPUTS -> OUTPUTS
cnn   sha256:012345678901  3        cpu       ready            x FP32 [-1,4] -> y INT64 [-1]
bad   sha256:012345678901  12                 failed: no room
";
        let rows: Vec<_> = models.iter().map(row).collect();
        assert_eq!(crate::output::table(&COLUMNS, &rows), expected);
    }
}
