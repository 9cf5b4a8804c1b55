//! `gristmill put`: change some keys of a tenant's or a pipeline's document, or put an API key. All
//! else stays as it is.

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use gristmill_core::Name;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::args::{option, required, text, word};
use crate::edit::{self, Edit};
use crate::output::Output;
use crate::{change, names, release_flags};

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
        .args([
            word("kind", "KIND").value_parser(["tenant", "pipeline", "key"]).help("What to put"),
            names::argument("Its name"),
            edit::argument(),
            option("tenant", "NAME").help("The pipeline's or the key's tenant"),
            option("key-env", "VARIABLE").help("The variable with the API key"),
            release_flags::skip_samples(),
        ])
        .args(change::arguments())
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
        let kind = required(matches, "kind")?.to_owned();
        let name = names::given(matches)?;
        let tenant = names::optional(matches, "tenant")?;
        let edits = edit::edits(matches)?;
        let variable = text(matches, "key-env");
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
