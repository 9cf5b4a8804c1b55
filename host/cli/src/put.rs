//! `gristmill put`: change some keys of a tenant's or a pipeline's document, or put an API key. All
//! else stays as it is.

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_core::Name;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::edit::{self, Edit};
use crate::output::{self, Output};
use crate::{change, release_flags};

pub(crate) fn command() -> Command {
    Command::new("put")
        .about("Make a tenant or a pipeline, change some of its keys, or put an API key")
        .after_help(format!(
            "Examples:\n  \
             gristmill put tenant acme open=true\n  \
             gristmill put tenant acme models+=digits weight=3       grant a model, and weigh\n  \
             gristmill put pipeline main --tenant acme pre=reader model=digits post=reader\n  \
             gristmill put pipeline main --tenant acme limits.cpu_ms=2000\n  \
             gristmill put key web --tenant acme --key-env ACME_WEB_KEY\n\n\
             {} `gristmill get tenants acme` shows all. It is one release.",
            edit::MEANING
        ))
        .arg(
            Arg::new("kind")
                .value_name("KIND")
                .required(true)
                .value_parser(["tenant", "pipeline", "key"])
                .help("What to put"),
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("Its name"))
        .arg(edit::argument())
        .arg(
            Arg::new("tenant")
                .long("tenant")
                .value_name("NAME")
                .help("The pipeline's or the key's tenant"),
        )
        .arg(
            Arg::new("key-env")
                .long("key-env")
                .value_name("VARIABLE")
                .help("The variable with the API key"),
        )
        .arg(change::message())
        .args([release_flags::skip_samples(), release_flags::wait_all()])
        .args(admin::change_arguments())
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let put = Put::of(matches)?;
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || Ok(vec![put.change(&admin)?]));
    let made = made.with_context(|| format!("cannot put {} {}", put.kind, put.name))?;
    change::print(&made, Output::of(matches));
    Ok(())
}

/// What is put.
struct Put {
    kind: String,
    name: Name,
    tenant: Option<Name>,
    edits: Vec<Edit>,
    /// The API key.
    secret: Option<String>,
}

impl Put {
    fn of(matches: &ArgMatches) -> Result<Self> {
        let argument = |name: &str| matches.get_one::<String>(name);
        let kind = argument("kind").context("KIND is missing")?.clone();
        let name = admin::name("NAME", argument("name").context("NAME is missing")?)?;
        let tenant =
            argument("tenant").map(|tenant| admin::name("--tenant", tenant)).transpose()?;
        let edits = edit::edits(matches)?;
        let variable = argument("key-env");
        match kind.as_str() {
            "tenant" => ensure!(tenant.is_none(), "--tenant is given, but a tenant has none"),
            _ => ensure!(tenant.is_some(), "--tenant is missing: a {kind} belongs to a tenant"),
        }
        let secret = match (kind.as_str(), variable) {
            ("key", Some(variable)) => {
                ensure!(edits.is_empty(), "a key has no document: give --key-env alone");
                let secret = std::env::var(variable).ok().filter(|secret| !secret.is_empty());
                Some(secret.with_context(|| format!("--key-env: {variable} is not set"))?)
            }
            ("key", None) => bail!("--key-env is missing: it names the variable with the key"),
            (_, Some(_)) => bail!("--key-env is for keys only"),
            (_, None) => {
                ensure!(!edits.is_empty(), "KEY=VALUE is missing: nothing would change");
                None
            }
        };
        Ok(Self { kind, name, tenant, edits, secret })
    }

    /// The change of the release, with the document as it is now and the keys that change.
    fn change(&self, admin: &Admin) -> Result<Value> {
        let Self { kind, name, tenant, edits, secret } = self;
        let mut put = json!({ "kind": format!("put_{kind}"), kind.as_str(): name });
        let path = match tenant {
            Some(tenant) => {
                put["tenant"] = tenant.as_str().into();
                format!("tenants/{tenant}/pipelines/{name}")
            }
            None => format!("tenants/{name}"),
        };
        put["document"] = match secret {
            Some(secret) => json!({ "key": secret }),
            None => edit::applied(edits, admin.find(&path)?)?,
        };
        Ok(put)
    }
}
