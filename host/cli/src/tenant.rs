//! `gristmill tenant`: make, list, show and delete tenants. `gristmill put tenant` changes one.

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use gristmill_transport::credentials::new_key;
use serde_json::json;

use crate::admin::{self, Admin};
use crate::args::{group, option, switch};
use crate::key::{PREFIX, show_once};
use crate::output::{self, Output};
use crate::{change, edit, get, names, release_flags};

/// The name of a new tenant's first key.
const FIRST_KEY: &str = "main";

pub(crate) fn command() -> Command {
    let create = Command::new("create")
        .about("Make a tenant, with a first API key that is printed once, or open to everyone")
        .after_help(format!(
            "Examples:\n  \
             gristmill tenant create acme\n  \
             gristmill tenant create demo --open\n  \
             gristmill tenant create acme --key web weight=3 'models=[\"digits\"]'\n\n\
             {} `gristmill put tenant` changes a tenant later, `gristmill grant` gives it models \
             and stores, and `gristmill key` has its other keys.",
            edit::MEANING
        ))
        .args([
            names::argument("The tenant's name"),
            edit::argument(),
            switch("open").help("Anyone may call its pipelines without a key"),
            option("key", "NAME")
                .conflicts_with("open")
                .default_value(FIRST_KEY)
                .help("The name of its first API key"),
        ])
        .args(change::arguments());
    let list = Command::new("list").about("List the tenants").args(admin::asking());
    let show = Command::new("show")
        .about("Show the document of a tenant")
        .arg(names::argument("The tenant's name"))
        .args(admin::asking());
    let delete = Command::new("delete")
        .about("Delete a tenant; one that has plugins, assets or pipelines only with --cascade")
        .args([names::argument("The tenant's name"), release_flags::cascade()])
        .args(change::arguments());
    group("tenant")
        .about("Make, list, show and delete tenants")
        .subcommands([create, list, show, delete])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("create", matches)) => create(matches),
        Some(("list", matches)) => {
            get::print_list(&Admin::of(matches)?, "tenants", None, Output::of(matches))
        }
        Some(("show", matches)) => {
            let (admin, name) = (Admin::of(matches)?, names::given(matches)?);
            output::print_document(&names::tenant(&admin, &name)?, Output::of(matches));
            Ok(())
        }
        Some(("delete", matches)) => delete(matches),
        _ => bail!("no such command; see gristmill tenant --help"),
    }
}

fn create(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let mut document = edit::applied(&edit::edits(matches)?, None)?;
    ensure!(document["api_keys"].is_null(), "api_keys is given: --key NAME makes the first key");
    let key = if matches.get_flag("open") || document["open"] == true {
        document["open"] = true.into();
        None
    } else {
        let key = names::required(matches, "key", "--key")?;
        let secret = new_key(PREFIX).context("cannot read randomness for the key")?;
        document["api_keys"] = json!([{ "name": key, "key": secret }]);
        Some((key, secret))
    };
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        ensure!(
            admin.find(&format!("tenants/{name}"))?.is_none(),
            "it is there already: `gristmill put tenant {name} KEY=VALUE` changes it"
        );
        Ok(vec![json!({ "kind": "put_tenant", "tenant": name, "document": document })])
    });
    let made = made.with_context(|| format!("cannot make tenant {name}"))?;
    match (key, Output::of(matches)) {
        (Some((key, secret)), Output::Json) => show_once(&name, &key, &secret, &made, Output::Json),
        (Some((key, secret)), Output::Text) => {
            change::print(&made, Output::Text);
            show_once(&name, &key, &secret, &made, Output::Text);
        }
        (None, output) => change::print(&made, output),
    }
    Ok(())
}

fn delete(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        names::tenant(&admin, &name)?;
        Ok(vec![json!({ "kind": "delete_tenant", "tenant": name })])
    });
    let made = made.with_context(|| format!("cannot delete tenant {name}"))?;
    change::print(&made, Output::of(matches));
    Ok(())
}
