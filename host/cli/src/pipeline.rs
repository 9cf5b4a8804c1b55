//! `gristmill pipeline`: make, change, list, show and delete a tenant's pipelines.

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use serde_json::json;

use crate::admin::{self, Admin};
use crate::args::group;
use crate::output::{self, Output};
use crate::{change, edit, get, names, release_flags};

pub(crate) fn command() -> Command {
    let set = Command::new("set")
        .about("Make a pipeline, or change some keys of one")
        .after_help(format!(
            "Examples:\n  \
             gristmill pipeline set main --tenant acme pre=reader model=digits post=reader\n  \
             gristmill pipeline set ocr --tenant acme handler=ocr models.detect=det models.read=rec\n  \
             gristmill pipeline set main --tenant acme limits.cpu_ms=2000 debug=true\n\n\
             {} It is one release.",
            edit::MEANING
        ))
        .args([
            names::argument("The pipeline's name"),
            edit::argument().required(true),
            names::tenant_flag("The pipeline's tenant"),
            release_flags::skip_samples(),
        ])
        .args(change::arguments());
    let list = Command::new("list")
        .about("List a tenant's pipelines")
        .arg(names::tenant_flag("The tenant"))
        .args(admin::asking());
    let show = Command::new("show")
        .about("Show the document of a pipeline")
        .args([names::argument("The pipeline's name"), names::tenant_flag("The pipeline's tenant")])
        .args(admin::asking());
    let delete = Command::new("delete")
        .about("Delete a pipeline; its plugins stay")
        .args([
            names::argument("The pipeline's name"),
            names::tenant_flag("The pipeline's tenant"),
            release_flags::cascade(),
        ])
        .args(change::arguments());
    group("pipeline")
        .about("Make, change, list, show and delete a tenant's pipelines")
        .subcommands([set, list, show, delete])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("set", matches)) => set(matches),
        Some(("list", matches)) => {
            let (admin, tenant) = (Admin::of(matches)?, names::given_tenant(matches)?);
            names::tenant(&admin, &tenant)?;
            get::print_list(&admin, "pipelines", Some(&tenant), Output::of(matches))
        }
        Some(("show", matches)) => {
            let (admin, name) = (Admin::of(matches)?, names::given(matches)?);
            let document = names::pipeline(&admin, &names::given_tenant(matches)?, &name)?;
            output::print_document(&document, Output::of(matches));
            Ok(())
        }
        Some(("delete", matches)) => delete(matches),
        _ => bail!("no such command; see gristmill pipeline --help"),
    }
}

fn set(matches: &ArgMatches) -> Result<()> {
    let (name, tenant) = (names::given(matches)?, names::given_tenant(matches)?);
    let edits = edit::edits(matches)?;
    ensure!(!edits.is_empty(), "KEY=VALUE is missing: nothing would change");
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        names::tenant(&admin, &tenant)?;
        let document = admin.find(&format!("tenants/{tenant}/pipelines/{name}"))?;
        let document = edit::applied(&edits, document)?;
        Ok(vec![json!({
            "kind": "put_pipeline", "tenant": tenant, "pipeline": name, "document": document,
        })])
    });
    let made = made.with_context(|| format!("cannot set pipeline {tenant}/{name}"))?;
    change::print(&made, Output::of(matches));
    Ok(())
}

fn delete(matches: &ArgMatches) -> Result<()> {
    let (name, tenant) = (names::given(matches)?, names::given_tenant(matches)?);
    let admin = Admin::to_change(matches)?;
    let made = change::make(&admin, matches, || {
        names::pipeline(&admin, &tenant, &name)?;
        Ok(vec![json!({ "kind": "delete_pipeline", "tenant": tenant, "pipeline": name })])
    });
    let made = made.with_context(|| format!("cannot delete pipeline {tenant}/{name}"))?;
    change::print(&made, Output::of(matches));
    Ok(())
}
