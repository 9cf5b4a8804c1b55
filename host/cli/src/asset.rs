//! `gristmill asset`: files of a tenant, which its plugins open.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};

use crate::admin::{self, Admin};
use crate::args::{group, option, required, word};
use crate::progress::{Progress, bytes_text};
use crate::{names, release_flags};

pub(crate) fn command() -> Command {
    group("asset")
        .about("Push and delete assets: files of a tenant, such as a price list, which its plugins open")
        .subcommand(
            Command::new("push")
                .about(
                    "Upload a file, which is live in every pipeline that names it when the command \
                     returns",
                )
                .after_help(
                    "Examples:\n  \
                     gristmill asset push prices.json --tenant acme --name prices\n  \
                     gristmill pipeline set main --tenant acme 'assets={\"prices.json\": \"prices\"}'\n  \
                     gristmill get assets --tenant acme\n\n\
                     A pipeline names assets, as the second command does, and its plugins open them by \
                     the names on the left. A version with which a pipeline would not answer its \
                     samples as expected is refused.",
                )
                .args([
                    word("file", "FILE").help("The file"),
                    names::tenant_flag("The asset's tenant"),
                    option("name", "NAME").help("The asset's name [default: the name of the file]"),
                    release_flags::skip_samples(),
                    release_flags::wait_all(),
                ])
                .args(admin::change_arguments()),
        )
        .subcommand(
            Command::new("delete")
                .about("Delete an asset that no pipeline names")
                .args([
                    names::argument("The asset's name"),
                    names::tenant_flag("The asset's tenant"),
                    release_flags::wait_all(),
                ])
                .args(admin::change_arguments()),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("push", matches)) => push(matches),
        Some(("delete", matches)) => delete(matches),
        _ => bail!("no such command; see gristmill asset --help"),
    }
}

fn push(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::to_change(matches)?;
    let tenant = names::given_tenant(matches)?;
    let file = Path::new(required(matches, "file")?);
    let name = match names::optional(matches, "name")? {
        Some(name) => name,
        None => {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            admin::name("the name of the file (--name gives another)", &name)?
        }
    };
    let body = std::fs::read(file).with_context(|| file.display().to_string())?;
    let waiting = Progress::wait(&format!("uploading {}", bytes_text(body.len() as u64)));
    let query = release_flags::query(matches);
    let answer = admin
        .put(&format!("tenants/{tenant}/assets/{name}?{query}"), body)
        .with_context(|| format!("cannot push {} as {tenant}/{name}", file.display()))?;
    drop(waiting);
    println!("{tenant}/{name} is live in release {}", answer["release"]);
    Ok(())
}

fn delete(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::to_change(matches)?;
    let (tenant, name) = (names::given_tenant(matches)?, names::given(matches)?);
    let query = release_flags::query(matches);
    let answer = admin
        .delete(&format!("tenants/{tenant}/assets/{name}?{query}"))
        .with_context(|| format!("cannot delete {tenant}/{name}"))?;
    println!("{tenant}/{name} is gone in release {}", answer["release"]);
    Ok(())
}
