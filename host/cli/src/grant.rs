//! `gristmill grant` and `gristmill revoke`: the models and the stores that a tenant may use.

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_core::Name;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::{group, texts};
use crate::output::{Output, escaped};
use crate::{change, names};

/// What a tenant may do in a store.
const RIGHTS: [&str; 2] = ["read", "write"];

pub(crate) fn command() -> Command {
    group("grant")
        .about("Let a tenant use models or stores")
        .after_help(
            "Examples:\n  \
             gristmill grant model digits ranker --tenant acme\n  \
             gristmill grant store features:read sessions:write --tenant acme\n\n\
             All else of the tenant stays as it is. A model that is granted can be called over the \
             Open Inference Protocol, and by pipelines that are put with a deploy token. A store \
             must be bound in the configuration of the server. It is one release.",
        )
        .subcommand(of_things("model", "MODEL", "The models").about("Grant models"))
        .subcommand(
            of_things("store", "STORE:RIGHT", "The stores, each with `read` or `write`")
                .about("Grant stores to the tenant's plugins; `write` includes `read`"),
        )
}

pub(crate) fn revoke_command() -> Command {
    group("revoke")
        .about("Take models or stores from a tenant")
        .after_help(
            "Examples:\n  \
             gristmill revoke model digits --tenant acme\n  \
             gristmill revoke store features --tenant acme\n\n\
             Pipelines that name a model go on using it. It is one release. API keys are revoked with \
             `gristmill key revoke`.",
        )
        .subcommand(of_things("model", "MODEL", "The models").about("Take models"))
        .subcommand(of_things("store", "STORE", "The stores").about("Take stores"))
}

fn of_things(kind: &'static str, value: &'static str, help: &'static str) -> Command {
    Command::new(kind)
        .args([
            Arg::new("things")
                .value_name(value)
                .required(true)
                .action(ArgAction::Append)
                .num_args(1..)
                .help(help),
            names::tenant_flag("The tenant"),
        ])
        .args(change::arguments())
}

/// `gristmill grant`.
pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("model", matches)) => {
            let models = models(matches)?;
            edit_tenant(matches, |admin, document| grant_models(admin, document, &models)).map(drop)
        }
        Some(("store", matches)) => {
            let stores =
                things(matches).map(|text| store_and_right(text)).collect::<Result<Vec<_>>>()?;
            let admin = edit_tenant(matches, |_, document| {
                let mut granted = document["stores"].as_object().cloned().unwrap_or_default();
                for (store, right) in &stores {
                    granted.insert(store.to_string(), (*right).into());
                }
                document["stores"] = granted.into();
                Ok(())
            })?;
            warn_if_unbound(&admin, &names::given_tenant(matches)?, &stores);
            Ok(())
        }
        _ => bail!("no such command; see gristmill grant --help"),
    }
}

/// `gristmill revoke`.
pub(crate) fn revoke(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("model", matches)) => {
            let models = models(matches)?;
            edit_tenant(matches, |_, document| {
                let granted = document["models"].as_array().cloned().unwrap_or_default();
                for model in &models {
                    let is_granted = granted.iter().any(|other| *other == model.as_str());
                    ensure!(is_granted, "it is not granted model {model}");
                }
                let stays = |other: &&Value| models.iter().all(|model| **other != model.as_str());
                document["models"] = granted.iter().filter(stays).cloned().collect();
                Ok(())
            })
            .map(drop)
        }
        Some(("store", matches)) => {
            let stores: Result<Vec<_>> =
                things(matches).map(|store| admin::name("STORE", store)).collect();
            let stores = stores?;
            edit_tenant(matches, |_, document| {
                let mut granted = document["stores"].as_object().cloned().unwrap_or_default();
                for store in &stores {
                    let was = granted.remove(store.as_str());
                    ensure!(was.is_some(), "it is not granted store {store}");
                }
                document["stores"] = granted.into();
                Ok(())
            })
            .map(drop)
        }
        _ => bail!("no such command; see gristmill revoke --help"),
    }
}

/// Make a release with the document of the tenant as `edit` leaves it. Returns the server.
fn edit_tenant(
    matches: &ArgMatches,
    edit: impl Fn(&Admin, &mut Value) -> Result<()>,
) -> Result<Admin> {
    let tenant = names::given_tenant(matches)?;
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        let mut document = names::tenant(&admin, &tenant)?;
        edit(&admin, &mut document)?;
        Ok(vec![json!({ "kind": "put_tenant", "tenant": tenant, "document": document })])
    });
    let made = made.with_context(|| format!("cannot change tenant {tenant}"))?;
    change::print(&made, Output::of(matches));
    Ok(admin)
}

fn things(matches: &ArgMatches) -> impl Iterator<Item = &String> {
    texts(matches, "things")
}

fn models(matches: &ArgMatches) -> Result<Vec<Name>> {
    things(matches).map(|model| admin::model_name("MODEL", model)).collect()
}

fn grant_models(admin: &Admin, document: &mut Value, models: &[Name]) -> Result<()> {
    let mut granted = document["models"].as_array().cloned().unwrap_or_default();
    for model in models {
        names::model(admin, model)?;
        if !granted.iter().any(|other| *other == model.as_str()) {
            granted.push(model.as_str().into());
        }
    }
    document["models"] = granted.into();
    Ok(())
}

/// A store and what may be done in it, as in `features:read`.
fn store_and_right(text: &str) -> Result<(Name, &'static str)> {
    let split = text.split_once(':').and_then(|(store, right)| {
        Some((store, *RIGHTS.iter().find(|known_right| **known_right == right)?))
    });
    let (store, right) = split.with_context(|| {
        format!("{text:?} must be STORE:read or STORE:write: a store and a right")
    })?;
    Ok((admin::name("STORE", store)?, right))
}

/// Say which stores the server has not bound. That is no fault: another server of the same releases
/// may have them, and this one may get them later.
fn warn_if_unbound(admin: &Admin, tenant: &Name, stores: &[(Name, &str)]) {
    for (store, _) in stores {
        // Sets nothing: it only finds out whether the store is there.
        let found = admin
            .post_if_there(&format!("tenants/{tenant}/stores/{store}"), &json!({ "values": [] }));
        if let Ok(None) = found {
            let text = format!(
                "{} has no store {store}: plugins get `unavailable` until its configuration binds \
                 one with [stores.{store}]",
                admin.address()
            );
            eprintln!("warning: {}", escaped(&text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::store_and_right;

    #[test]
    fn a_store_has_its_right_behind_it() {
        let read = store_and_right;
        let (store, right) = read("features:write").unwrap();
        assert_eq!((store.as_str(), right), ("features", "write"));
        for wrong in ["features", "features:own", "features:", ":read"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
