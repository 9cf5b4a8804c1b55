//! `gristmill plugin list`: a tenant's plugins, as the server has them.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::names;
use crate::output::{Column, Output, Table, state_and_reason};

const COLUMNS: [Column; 4] =
    [("NAME", "name"), ("DIGEST", "digest"), ("ROLES", "roles"), ("STATE", "state")];

pub(crate) fn command() -> Command {
    Command::new("list")
        .about("List a tenant's plugins: name, digest, roles and state")
        .after_help(
            "Example:\n  \
             gristmill plugin list --tenant acme\n\n\
             A plugin with the role `pre` can preprocess, one with `post` can postprocess, and one \
             with `handler` runs models itself. Give the token in GRISTMILL_ADMIN_TOKEN rather than \
             with --token.",
        )
        .arg(
            names::tenant_flag("The tenant whose plugins are listed"),
        )
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let tenant = names::given_tenant(matches)?;
    let status = admin.get("status").context("cannot list plugins")?;
    let tenant_status = status["tenants"].get(tenant.as_str());
    let tenant_status =
        tenant_status.with_context(|| format!("there is no tenant \"{tenant}\""))?;
    let plugins: Vec<Value> = tenant_status["plugins"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, plugin)| {
            json!({
                "name": name,
                "digest": plugin["digest"],
                "roles": roles(plugin["world"].as_str()),
                "state": plugin["state"],
                "reason": plugin["reason"],
            })
        })
        .collect();
    let none = format!("{tenant} has no plugins");
    Table { columns: &COLUMNS, none: &none }.print(&plugins, Output::of(matches), row);
    Ok(())
}

/// The roles of a plugin of this world. A plugin that could not be loaded has no world.
fn roles(world: Option<&str>) -> &'static [&'static str] {
    match world {
        Some("processor") => &["pre", "post"],
        Some("preprocessor") => &["pre"],
        Some("postprocessor") => &["post"],
        Some("handler") => &["handler"],
        _ => &[],
    }
}

/// A plugin with its roles and its state on one line.
fn row(plugin: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let roles = plugin["roles"].as_array().into_iter().flatten();
    let roles = roles.map(text).collect::<Vec<_>>().join(", ");
    let (name, digest) = (&plugin["name"], &plugin["digest"]);
    json!({ "name": name, "digest": digest, "roles": roles, "state": state_and_reason(plugin) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_plugin() {
        let digest = format!("sha256:{}", "0123456789".repeat(6));
        let plugins = [
            json!({ "name": "a", "digest": digest, "roles": ["pre"], "state": "ready" }),
            json!({ "name": "long-name", "digest": digest, "roles": [], "state": "failed",
                    "reason": "too large" }),
        ];
        let expected = "\
NAME       DIGEST               ROLES  STATE
a          sha256:012345678901  pre    ready
long-name  sha256:012345678901         failed: too large
";
        let rows: Vec<_> = plugins.iter().map(row).collect();
        assert_eq!(crate::output::table(&COLUMNS, &rows), expected);
    }
}
