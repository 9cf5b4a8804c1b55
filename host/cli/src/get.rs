//! `gristmill get`: read back what is on a server, as the admin API lists and describes it.

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command};
use gristmill_core::Name;
use serde_json::Value;

use crate::admin::{self, Admin};
use crate::args::{option, required, text, word};
use crate::model::signature;
use crate::names;
use crate::output::{self, Column, Output, Table};

/// The kinds of things, each with the columns of its table.
const KINDS: [(&str, &[Column]); 6] = [
    (
        "tenants",
        &[
            ("NAME", "name"),
            ("OPEN", "open"),
            ("WEIGHT", "weight"),
            ("KEYS", "keys"),
            ("PLUGINS", "plugins"),
            ("PIPELINES", "pipelines"),
        ],
    ),
    ("plugins", &[("NAME", "name"), ("DIGEST", "digest"), ("VERSION", "version")]),
    ("assets", &[("NAME", "name"), ("DIGEST", "digest"), ("VERSION", "version")]),
    ("pipelines", &[("NAME", "name"), ("PRE", "pre"), ("MODEL", "model"), ("POST", "post")]),
    (
        "models",
        &[
            ("NAME", "name"),
            ("DIGEST", "digest"),
            ("VERSION", "version"),
            ("UNLOADED", "unloaded"),
            ("INPUTS -> OUTPUTS", "signature"),
        ],
    ),
    ("keys", &[("NAME", "name"), ("VERSION", "version")]),
];

/// The columns of pipelines if some have a handler.
const WITH_HANDLERS: &[Column] = &[
    ("NAME", "name"),
    ("PRE", "pre"),
    ("MODEL", "model"),
    ("POST", "post"),
    ("HANDLER", "handler"),
    ("MODELS", "models"),
];

pub(crate) fn command() -> Command {
    Command::new("get")
        .about("List what is on a server, or show one document of it")
        .after_help(
            "Examples:\n  \
             gristmill get tenants\n  \
             gristmill get pipelines --tenant acme\n  \
             gristmill get pipelines digits --tenant acme > digits.json\n  \
             gristmill get models --output json\n\n\
             The document of a tenant or a pipeline can be put again as it is. A version is the \
             release that brought the file or the key. No key is shown. Give the token in \
             GRISTMILL_ADMIN_TOKEN rather than with --token.",
        )
        .args([
            word("kind", "KIND").value_parser(KINDS.map(|(kind, _)| kind)).help("What to list"),
            Arg::new("name").value_name("NAME").help("Show the document of this one"),
            option("tenant", "NAME")
                .help("The tenant whose plugins, assets, pipelines or keys are meant"),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let kind = required(matches, "kind")?;
    let tenant = names::optional(matches, "tenant")?;
    let output = Output::of(matches);
    let Some(name) = text(matches, "name") else {
        return print_list(&admin, kind, tenant.as_ref(), output);
    };
    let list = path(kind, tenant.as_ref())?;
    let name = match kind {
        "models" => admin::model_name("NAME", name),
        _ => admin::name("NAME", name),
    }?;
    let document = admin.get(&format!("{list}/{name}"));
    let mut document = document.with_context(|| format!("cannot show {name} of the {kind}"))?;
    if kind == "models" {
        let status = admin.get("status").unwrap_or_default();
        add_signatures(std::slice::from_mut(&mut document), &status);
    }
    output::print_document(&document, output);
    Ok(())
}

/// Print the things of a kind.
pub(crate) fn print_list(
    admin: &Admin,
    kind: &str,
    tenant: Option<&Name>,
    output: Output,
) -> Result<()> {
    let list = path(kind, tenant)?;
    let mut items = admin.items(&list).with_context(|| format!("cannot list the {kind}"))?;
    if kind == "models" {
        add_signatures(&mut items, &admin.get("status").unwrap_or_default());
    }
    let none = format!("there are no {kind}");
    Table { columns: columns(kind, &items), none: &none }.print(&items, output, row);
    Ok(())
}

/// Add the inputs and outputs that the status has of models. Without a status there are none.
fn add_signatures(models: &mut [Value], status: &Value) {
    for model in models {
        let loaded = model["name"].as_str().map(|name| &status["models"][name]);
        for key in ["inputs", "outputs"] {
            if let Some(tensors) = loaded.map(|loaded| &loaded[key]).filter(|list| list.is_array())
            {
                model[key] = tensors.clone();
            }
        }
    }
}

fn row(item: &Value) -> Value {
    let mut row = item.clone();
    row["signature"] = signature(item).into();
    if let Some(models) = item["models"].as_object() {
        let model = |(name, model): (&String, &Value)| {
            format!("{name}={}", model.as_str().unwrap_or_default())
        };
        row["models"] = models.iter().map(model).collect::<Vec<_>>().join(", ").into();
    }
    row
}

/// The path of a list.
fn path(kind: &str, tenant: Option<&Name>) -> Result<String> {
    match (kind, tenant) {
        ("tenants" | "models", None) => Ok(kind.to_owned()),
        ("tenants" | "models", Some(_)) => bail!("--tenant is given, but {kind} have no tenant"),
        (_, Some(tenant)) => Ok(format!("tenants/{tenant}/{kind}")),
        (_, None) => bail!("--tenant is missing: {kind} belong to a tenant"),
    }
}

/// The columns of the table of these items.
fn columns(kind: &str, items: &[Value]) -> &'static [Column] {
    if kind == "pipelines" && items.iter().any(|item| item["handler"].is_string()) {
        return WITH_HANDLERS;
    }
    KINDS.iter().find(|(other, _)| *other == kind).map_or(&[], |(_, columns)| columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{add_signatures, columns, path, row};
    use crate::output::table;

    #[test]
    fn a_table_has_a_line_for_each_item() {
        let digest = format!("sha256:{}", "0123456789".repeat(6));
        let mut models = [
            json!({ "name": "cnn", "digest": digest, "version": 3, "unloaded": false }),
            json!({ "name": "long-name", "digest": digest, "version": 12, "unloaded": true }),
        ];
        let status = json!({ "models": { "cnn": {
            "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 4] }],
            "outputs": [{ "name": "y", "datatype": "INT64", "shape": [-1] }] } } });
        add_signatures(&mut models, &status);
        let expected = "\
NAME       DIGEST               VERSION  UNLOADED  INPUTS -> OUTPUTS
cnn        sha256:012345678901  3        false     x FP32 [-1,4] -> y INT64 [-1]
long-name  sha256:012345678901  12       true
";
        assert_eq!(table(columns("models", &models), &models.each_ref().map(row)), expected);
    }

    #[test]
    fn a_handler_is_listed_with_its_models() {
        let pair = json!({ "name": "a", "pre": "p", "model": "m", "post": "q" });
        assert_eq!(columns("pipelines", std::slice::from_ref(&pair)).len(), 4);
        let models = json!({ "detect": "ocr-det", "read": "ocr-rec@2" });
        let pipelines = [pair, json!({ "name": "b", "handler": "ocr@3", "models": models })];
        let expected = "\
NAME  PRE  MODEL  POST  HANDLER  MODELS
a     p    m      q
b                       ocr@3    detect=ocr-det, read=ocr-rec@2
";
        let rows = pipelines.each_ref().map(row);
        assert_eq!(table(columns("pipelines", &pipelines), &rows), expected);
    }

    #[test]
    fn a_list_is_that_of_a_tenant_or_of_the_server() {
        let acme = "acme".parse().unwrap();
        assert_eq!(path("models", None).unwrap(), "models");
        assert_eq!(path("keys", Some(&acme)).unwrap(), "tenants/acme/keys");
        let error = |kind, tenant| path(kind, tenant).unwrap_err().to_string();
        assert_eq!(error("keys", None), "--tenant is missing: keys belong to a tenant");
        let refused = "--tenant is given, but tenants have no tenant";
        assert_eq!(error("tenants", Some(&acme)), refused);
    }
}
