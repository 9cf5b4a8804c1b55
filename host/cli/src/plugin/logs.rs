//! `gristmill plugin logs`: the last lines of a plugin, as the server has kept them.

use std::fmt::Write;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, value_parser};

use crate::admin::{self, Admin};
use crate::args::{option, word};
use crate::output::Output;
use crate::{logs, names};

pub(crate) fn command() -> Command {
    Command::new("logs")
        .about("Show a plugin's last lines: what it logged and printed, and how its calls failed")
        .after_help(
            "Examples:\n  \
             gristmill plugin logs digits --tenant acme\n  \
             gristmill plugin logs digits --tenant acme --limit 20 --output json\n\n\
             The server keeps 256 lines and 64 KiB of a plugin, of the 16 plugins of a tenant that \
             logged last, until it ends. Give the token in GRISTMILL_ADMIN_TOKEN rather than with \
             --token.",
        )
        .args([
            word("plugin", "PLUGIN").help("The plugin's name"),
            names::tenant_flag("The plugin's tenant"),
            option("limit", "N")
                .value_parser(value_parser!(u32))
                .help("Show at most the last N lines"),
        ])
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let tenant = names::given_tenant(matches)?;
    let plugin = names::required(matches, "plugin", "PLUGIN")?;
    let mut path = format!("tenants/{tenant}/plugins/{plugin}/logs");
    if let Some(limit) = matches.get_one::<u32>("limit") {
        let _ = write!(path, "?limit={limit}");
    }
    let mut answer =
        admin.get(&path).with_context(|| format!("cannot show the lines of {tenant}/{plugin}"))?;
    let lines = answer["lines"].take();
    logs::print(&lines, Output::of(matches));
    Ok(())
}
