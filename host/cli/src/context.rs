//! `gristmill context`: the servers that the command line knows by name.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgMatches, Command};
use gristmill_client::Address;
use gristmill_core::Name;
use serde_json::{Value, json};

use crate::args::{group, option, switch, text};
use crate::contexts::{Contexts, KnownServer, TokenPlace};
use crate::output::{self, Column, Output, Table};
use crate::{admin, names};

const COLUMNS: [Column; 5] = [
    ("CURRENT", "mark"),
    ("NAME", "name"),
    ("ADMIN", "admin_url"),
    ("DATA", "url"),
    ("TOKEN", "token"),
];

pub(crate) fn command() -> Command {
    let name = || names::argument("The context's name");
    let add = Command::new("add")
        .about("Add a server, or change it; the first one becomes the current one")
        .args([
            name(),
            option("admin-url", "URL")
                .required(true)
                .help("The admin plane; http:// may be left out"),
            option("url", "URL").help("The data plane"),
            option("token-file", "FILE")
                .conflicts_with("token-env")
                .help("The file with the admin token; it is read by each command"),
            option("token-env", "VARIABLE").help("The variable with the admin token"),
            option("ca-file", "FILE")
                .help("Certificates of the authorities that are trusted for it, if it has https"),
            switch("confirm")
                .help("Commands ask before they change it, as a server in production needs"),
        ]);
    let list = Command::new("list").about("List the servers").arg(output::argument());
    let show = Command::new("show")
        .about("Show one server [default: the current one]; no token is shown")
        .args([name().required(false), output::argument()]);
    group("context")
        .about("The servers that commands know by name")
        .after_help(
            "Examples:\n  \
             gristmill context add staging --admin-url 10.0.0.5:8081 --token-file ~/.staging-token\n  \
             gristmill context add production --admin-url https://gristmill.example:8081 --confirm\n  \
             gristmill context use staging\n  \
             gristmill status --context production\n\n\
             A command takes the address from the first of these that has one:\n  \
             1. the flag --admin\n  \
             2. the context that --context names\n  \
             3. the variable GRISTMILL_ADMIN_URL\n  \
             4. the context that GRISTMILL_CONTEXT names, otherwise the current one\n  \
             5. the default address, 127.0.0.1:8081\n\n\
             A token goes only to the address that it came with: the token of a context to the \
             address of that context, and the one in GRISTMILL_ADMIN_TOKEN to the address in \
             GRISTMILL_ADMIN_URL. If that is not set, it goes to the address of --admin, to a \
             context without a token that --context or GRISTMILL_CONTEXT names, or to the default \
             address. --token is for the server of its command. --ca-file and GRISTMILL_CA_FILE \
             stand in for that of the context in the same order.\n\n\
             A command that would change a server of a context with --confirm asks first. Without a \
             terminal it needs --yes. It does not ask if another address or the variables lead it \
             there.\n\n\
             Contexts are kept in the file that GRISTMILL_CONTEXTS names, otherwise in \
             gristmill/config.toml in $XDG_CONFIG_HOME or ~/.config. It has no token, only the \
             places of tokens.",
        )
        .subcommand(add)
        .subcommand(
            Command::new("use").about("Make a server the current one").arg(name()),
        )
        .subcommand(list)
        .subcommand(show)
        .subcommand(Command::new("delete").about("Forget a server").arg(name()))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("add", matches)) => add(matches),
        Some(("use", matches)) => make_current(&names::given(matches)?),
        Some(("list", matches)) => list(Output::of(matches)),
        Some(("show", matches)) => show(matches),
        Some(("delete", matches)) => delete(&names::given(matches)?),
        _ => bail!("no such command; see gristmill context --help"),
    }
}

fn add(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let url = |flag: &str| -> Result<Option<String>> {
        let Some(url) = text(matches, flag) else { return Ok(None) };
        let address: Address =
            url.parse().map_err(|error| anyhow!("--{flag} is {url:?}: {error}"))?;
        Ok(Some(address.to_string()))
    };
    // Commands are run in any folder.
    let path = |flag: &str| -> Result<Option<PathBuf>> {
        let absolute = text(matches, flag).map(std::path::absolute).transpose();
        absolute.with_context(|| format!("--{flag} is {:?}", text(matches, flag)))
    };
    let admin_url = url("admin-url")?.context("--admin-url is missing")?;
    let token = match (text(matches, "token-file"), text(matches, "token-env")) {
        (Some(_), _) => path("token-file")?.map(TokenPlace::File),
        (None, variable) => variable.map(|name| TokenPlace::Variable(name.to_owned())),
    };
    let context = KnownServer {
        admin_url,
        url: url("url")?,
        token,
        ca_file: path("ca-file")?,
        confirm: matches.get_flag("confirm"),
    };
    let asks = context.confirm;
    let mut contexts = Contexts::read()?;
    let before = contexts.all.insert(name.clone(), context);
    let is_current = *contexts.current.get_or_insert_with(|| name.clone()) == name;
    let path = contexts.write()?;
    let done = if before.is_some() { "changed" } else { "added" };
    let current = if is_current { ", which is the current one" } else { "" };
    let asks = match (asks, before.is_some_and(|before| before.confirm)) {
        (true, _) => "; commands ask before they change it",
        (false, true) => "; commands do not ask any more (without --confirm)",
        (false, false) => "",
    };
    println!("{done} context {name}{current}, in {}{asks}", path.display());
    Ok(())
}

fn make_current(name: &Name) -> Result<()> {
    let mut contexts = Contexts::read()?;
    contexts.get(name)?;
    contexts.current = Some(name.clone());
    contexts.write()?;
    println!("{name} is the current context");
    Ok(())
}

fn delete(name: &Name) -> Result<()> {
    let mut contexts = Contexts::read()?;
    contexts.get(name)?;
    contexts.all.remove(name);
    contexts.current.take_if(|current| current == name);
    contexts.write()?;
    println!("deleted context {name}");
    Ok(())
}

fn list(output: Output) -> Result<()> {
    let contexts = Contexts::read()?;
    let items: Vec<_> = contexts
        .all
        .iter()
        .map(|(name, context)| document(name, context, contexts.current.as_ref()))
        .collect();
    let table = Table { columns: &COLUMNS, none: "there are no contexts" };
    table.print(&items, output, row);
    Ok(())
}

fn show(matches: &ArgMatches) -> Result<()> {
    let contexts = Contexts::read()?;
    let name = match text(matches, "name") {
        Some(name) => admin::name("NAME", name)?,
        None => contexts
            .current
            .clone()
            .context("no context is the current one: name one, or `gristmill context use NAME`")?,
    };
    let document = document(&name, contexts.get(&name)?, contexts.current.as_ref());
    output::print_document(&document, Output::of(matches));
    Ok(())
}

/// A context as JSON. It has the place of the token, and not the token.
fn document(name: &Name, context: &KnownServer, current: Option<&Name>) -> Value {
    let mut document = json!({
        "name": name.as_str(),
        "current": current == Some(name),
        "admin_url": context.admin_url,
    });
    if let Some(url) = &context.url {
        document["url"] = url.as_str().into();
    }
    match &context.token {
        Some(TokenPlace::File(path)) => {
            document["token_file"] = path.to_string_lossy().into_owned().into();
        }
        Some(TokenPlace::Variable(name)) => document["token_env"] = name.as_str().into(),
        None => {}
    }
    if let Some(path) = &context.ca_file {
        document["ca_file"] = path.to_string_lossy().into_owned().into();
    }
    if context.confirm {
        document["confirm"] = true.into();
    }
    document
}

fn row(document: &Value) -> Value {
    let mut row = document.clone();
    row["mark"] = if document["current"] == true { "*" } else { "" }.into();
    let file = document["token_file"].as_str().map(|path| format!("file {path}"));
    let token = file.or_else(|| document["token_env"].as_str().map(|name| format!("${name}")));
    row["token"] = token.into();
    row
}
