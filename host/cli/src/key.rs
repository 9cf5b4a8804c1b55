//! `gristmill key`: a tenant's API keys. A new key is random, and printed once.

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use gristmill_core::Name;
use gristmill_transport::credentials::new_key;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::{group, switch};
use crate::output::Output;
use crate::{change, get, names};

/// The beginning of a key that the command line makes.
pub(crate) const PREFIX: &str = "gmk_";

pub(crate) fn command() -> Command {
    let create = Command::new("create")
        .about("Make an API key of a tenant, and print it once")
        .after_help(
            "Examples:\n  \
             gristmill key create web --tenant acme\n  \
             gristmill key create web-2 --tenant acme && gristmill key revoke web --tenant acme\n  \
             gristmill key create web --tenant acme --close          acme is open until now\n\n\
             The server keeps a hash of it. A key that you have already is put with `gristmill put \
             key NAME --tenant TENANT --key-env VARIABLE`.",
        )
        .args([
            names::argument("The key's name"),
            names::tenant_flag("The key's tenant"),
            switch("close")
                .help("Close an open tenant: from now on it serves only those with a key"),
        ])
        .args(change::arguments());
    let list = Command::new("list")
        .about("List a tenant's keys by their names; no key is shown")
        .arg(names::tenant_flag("The tenant"))
        .args(admin::asking());
    let revoke = Command::new("revoke")
        .about("Delete an API key of a tenant: it opens nothing from now on")
        .args([names::argument("The key's name"), names::tenant_flag("The key's tenant")])
        .args(change::arguments());
    group("key")
        .about("Make, list and revoke the API keys of a tenant")
        .subcommands([create, list, revoke])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("create", matches)) => create(matches),
        Some(("list", matches)) => {
            let (admin, tenant) = (Admin::of(matches)?, names::given_tenant(matches)?);
            names::tenant(&admin, &tenant)?;
            get::print_list(&admin, "keys", Some(&tenant), Output::of(matches))
        }
        Some(("revoke", matches)) => revoke(matches),
        _ => bail!("no such command; see gristmill key --help"),
    }
}

fn create(matches: &ArgMatches) -> Result<()> {
    let (key, tenant) = (names::given(matches)?, names::given_tenant(matches)?);
    let admin = Admin::to_change(matches)?;
    let secret = new_key(PREFIX).context("cannot read randomness for the key")?;
    let made = change::make(&admin, matches, || {
        let mut document = names::tenant(&admin, &tenant)?;
        if document["open"] == true {
            ensure!(
                matches.get_flag("close"),
                "tenant {tenant} is open to everyone, so it has no keys: with --close, this key is \
                 its first, and it serves nobody without a key"
            );
            document["open"] = false.into();
            document["api_keys"] = json!([{ "name": key, "key": secret }]);
            let put = json!({ "kind": "put_tenant", "tenant": tenant, "document": document });
            return Ok(vec![put]);
        }
        ensure!(
            admin.find(&format!("tenants/{tenant}/keys/{key}"))?.is_none(),
            "it is there already: take another name, and revoke the old key when nobody uses it"
        );
        let document = json!({ "key": secret });
        Ok(vec![json!({ "kind": "put_key", "tenant": tenant, "key": key, "document": document })])
    });
    let made = made.with_context(|| format!("cannot make key {key}"))?;
    show_once(&tenant, &key, &secret, &made, Output::of(matches));
    Ok(())
}

fn revoke(matches: &ArgMatches) -> Result<()> {
    let (key, tenant) = (names::given(matches)?, names::given_tenant(matches)?);
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        names::key(&admin, &tenant, &key)?;
        Ok(vec![json!({ "kind": "delete_key", "tenant": tenant, "key": key })])
    });
    let made = made.with_context(|| format!("cannot revoke key {key}"))?;
    change::print(&made, Output::of(matches));
    Ok(())
}

/// Print a new key, which nobody can read again.
pub(crate) fn show_once(tenant: &Name, key: &Name, secret: &str, made: &Value, output: Output) {
    let release = &made["release"];
    let shown = json!({ "tenant": tenant, "name": key, "key": secret, "release": release });
    output.print(shown, || format!("key {key} {secret} (shown only this once)\n"));
}
