//! `gristmill samples capture` and `list`: the samples of a pipeline, and requests to make some of.

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::args::{group, option};
use crate::names;
use crate::output::{Column, Output, Table, cut};

const COLUMNS: [Column; 3] = [("NAME", "name"), ("REQUEST", "request"), ("EXPECTED", "expect")];

/// The characters of a request or an expectation in a list.
const SHOWN: usize = 60;

pub(crate) fn command() -> Command {
    let capture = Command::new("capture")
        .about("Print real requests that the server has kept, as samples")
        .after_help(
            "Examples:\n  \
             gristmill samples capture digits --tenant acme\n  \
             gristmill samples capture digits --tenant acme --last 1 --output json\n\n\
             A pipeline keeps requests only if its document says so: capture = { percent = 10, \
             redact_headers = [\"x-user\"] }. Each sample expects what its client got. Text output \
             is for a manifest of `gristmill deploy`: give each sample a name, and remove what need \
             not stay as it is. The requests are those of the server that answers.",
        )
        .arg(
            option("last", "N")
                .value_parser(value_parser!(u32).range(1..))
                .help("Print only the last N requests"),
        );
    let list = Command::new("list")
        .about("List the samples of a pipeline")
        .after_help("Example:\n  gristmill samples list digits --tenant acme");
    group("samples")
        .about("List the golden samples of a pipeline, and print real requests to make some of")
        .subcommands([capture, list].map(|command| command.args(names::pipeline_arguments())))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("capture", matches)) => capture(matches),
        Some(("list", matches)) => list(matches),
        _ => bail!("no such command; see gristmill samples --help"),
    }
}

fn capture(matches: &ArgMatches) -> Result<()> {
    let [tenant, pipeline] = names::given_pipeline(matches)?;
    let path = format!("tenants/{tenant}/pipelines/{pipeline}/captured");
    let captured = Admin::of(matches)?.get(&path).context("cannot show the requests")?;
    let items = captured["items"].as_array().map_or(&[][..], Vec::as_slice);
    let last = matches.get_one::<u32>("last").map_or(items.len(), |last| *last as usize);
    let samples: Vec<_> =
        items[items.len().saturating_sub(last)..].iter().map(|item| &item["sample"]).collect();
    match Output::of(matches) {
        Output::Json => println!("{}", json!(samples)),
        Output::Text => {
            if samples.is_empty() {
                eprintln!(
                    "{tenant}/{pipeline} has kept no requests: its document needs `capture`, and \
                     requests must have come since"
                );
            }
            for sample in samples {
                print!("{}", manifest_part(tenant.as_str(), pipeline.as_str(), sample)?);
            }
        }
    }
    Ok(())
}

/// A sample as it stands in a manifest. JSON's null is not in TOML, so a document with one stands
/// there as its text.
fn manifest_part(tenant: &str, pipeline: &str, sample: &Value) -> Result<String> {
    let mut sample = sample.clone();
    if has_null(&sample["request"]["json"]) {
        let text = sample["request"]["json"].take().to_string();
        sample["request"]["body"] = text.into();
        sample["request"]["content_type"] = "application/json".into();
    }
    if has_null(&sample["expect"]["json"]) {
        sample["expect"]["text"] = sample["expect"]["json"].take().to_string().into();
    }
    for part in ["request", "expect"] {
        if let Some(keys) = sample[part].as_object_mut() {
            keys.retain(|_, value| !value.is_null());
        }
    }
    let whole =
        json!({ "tenants": { tenant: { "pipelines": { pipeline: { "samples": [sample] } } } } });
    let text = toml::to_string(&whole).context("a sample cannot be written as TOML")?;
    Ok(format!("{text}\n"))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_null() || has_null(item)),
        Value::Object(keys) => keys.values().any(|value| value.is_null() || has_null(value)),
        _ => false,
    }
}

fn list(matches: &ArgMatches) -> Result<()> {
    let [tenant, pipeline] = names::given_pipeline(matches)?;
    let document = Admin::of(matches)?.get(&format!("tenants/{tenant}/pipelines/{pipeline}"));
    let document = document.context("cannot list the samples")?;
    let samples = document["samples"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |sample: &Value| {
        let part = |key: &str| cut(&sample[key].to_string(), SHOWN);
        json!({ "name": sample["name"], "request": part("request"), "expect": part("expect") })
    };
    Table { columns: &COLUMNS, none: "there are no samples" }.print(
        samples,
        Output::of(matches),
        row,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_written_for_a_manifest() {
        let sample = json!({
            "name": "captured-1",
            "request": { "json": { "a": [1, null] } },
            "expect": { "status": 200, "json": { "b": 2.5 } },
        });
        let text = manifest_part("acme", "main", &sample).unwrap();
        let read: Value = toml::from_str(&text).unwrap();
        let expected = json!([{
            "name": "captured-1",
            "request": { "body": "{\"a\":[1,null]}", "content_type": "application/json" },
            "expect": { "status": 200, "json": { "b": 2.5 } },
        }]);
        assert_eq!(read["tenants"]["acme"]["pipelines"]["main"]["samples"], expected, "{text}");
        assert!(text.starts_with("[[tenants.acme.pipelines.main.samples]]"), "{text}");
    }
}
