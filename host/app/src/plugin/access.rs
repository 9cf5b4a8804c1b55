//! The address and the token of the server that a command talks to: from flags, variables and
//! contexts.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use gristmill_client::Address;
use gristmill_core::Name;

use super::trust::CA_FILE;
use crate::contexts::{Contexts, KnownServer, TokenPlace};

const DEFAULT_ADMIN: &str = "http://127.0.0.1:8081";

/// The flags `--admin`, `--token` and `--context`.
pub(crate) fn arguments() -> [Arg; 3] {
    let admin = Arg::new("admin").long("admin").value_name("URL").env("GRISTMILL_ADMIN_URL").help(
        "The admin plane: https:// or http://, which may be left out [default: that of the \
             context, or 127.0.0.1:8081]",
    );
    let token = Arg::new("token")
        .long("token")
        .value_name("TOKEN")
        .env("GRISTMILL_ADMIN_TOKEN")
        .hide_env_values(true)
        .help("The admin token [default: that of the context]");
    let context =
        Arg::new("context").long("context").value_name("NAME").env("GRISTMILL_CONTEXT").help(
            "The server, by its name; see gristmill context --help [default: the current one]",
        );
    [admin, token, context]
}

/// A server, and the token for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) address: Address,
    /// Where the address is from, for errors.
    pub(super) source: String,
    pub(super) token: String,
    pub(super) token_source: String,
    /// The certificates of the authorities that are trusted for it, if not those of the system.
    pub(super) ca_file: Option<PathBuf>,
}

/// A value on the command line, or of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    text: String,
    is_flag: bool,
}

/// What was given.
#[derive(Debug, Default)]
pub(super) struct Choice {
    admin: Option<Given>,
    token: Option<Given>,
    context: Option<Given>,
    ca_file: Option<Given>,
}

impl Choice {
    /// From the flags of [`arguments`].
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let given = |name: &str| {
            let is_flag = matches.value_source(name) == Some(ValueSource::CommandLine);
            let text = matches.get_one::<String>(name).cloned();
            text.map(|text| Given { text, is_flag })
        };
        let (admin, token, context) = (given("admin"), given("token"), given("context"));
        Self { admin, token, context, ca_file: given(CA_FILE) }
    }

    /// The server that was chosen. `contexts` reads the user's file, if it is needed.
    ///
    /// # Errors
    /// There is no such context, no token, or the address is not one.
    pub(super) fn resolve(self, contexts: impl FnOnce() -> Result<Contexts>) -> Result<Access> {
        let Self { mut admin, mut token, context, mut ca_file } = self;
        let is_named = context.as_ref().is_some_and(|context| context.is_flag);
        let known = match (&admin, &token) {
            (Some(_), Some(_)) if !is_named => None,
            _ => chosen(contexts()?, context)?,
        };
        let place = known.as_ref().and_then(|(_, server)| server.token.clone());
        if is_named {
            // What the flag names goes before variables.
            admin = admin.filter(|admin| admin.is_flag);
            token = token.filter(|token| token.is_flag || place.is_none());
            let has_own = known.as_ref().is_some_and(|(_, server)| server.ca_file.is_some());
            ca_file = ca_file.filter(|file| file.is_flag || !has_own);
        }
        // Another server has other authorities.
        let own_file = known.as_ref().filter(|_| admin.is_none());
        let own_file = own_file.and_then(|(_, server)| server.ca_file.clone());
        let ca_file = ca_file.map(|file| file.text.into()).or(own_file);
        let (address, source) = match (admin, &known) {
            (Some(admin), _) => (parsed("--admin", &admin.text)?, "--admin".to_owned()),
            (None, Some((name, server))) => {
                let what = format!("the admin_url of context {name}");
                (parsed(&what, &server.admin_url)?, format!("context {name}"))
            }
            (None, None) => (parsed("--admin", DEFAULT_ADMIN)?, "the default".to_owned()),
        };
        let (token, token_source) = match (token, place, known) {
            (Some(token), ..) => (token.text, "--token".to_owned()),
            (None, Some(place), Some((name, server))) => {
                let token = token_of(&place, (&name, &server), &address)?;
                (token, format!("the token of context {name}"))
            }
            _ => bail!(
                "no token: give GRISTMILL_ADMIN_TOKEN, a context with the place of one, or \
                 --token"
            ),
        };
        Ok(Access { address, source, token, token_source, ca_file })
    }
}

/// The context that was chosen, or else the current one.
fn chosen(mut contexts: Contexts, given: Option<Given>) -> Result<Option<(Name, KnownServer)>> {
    let name = match given {
        Some(given) => Some(given.text.parse().map_err(|error| anyhow!("--context: {error}"))?),
        None => contexts.current.take(),
    };
    let Some(name) = name else { return Ok(None) };
    let server = contexts.get(&name)?.clone();
    Ok(Some((name, server)))
}

/// The token of a context, which no other server gets.
fn token_of(
    place: &TokenPlace,
    (name, server): (&Name, &KnownServer),
    address: &Address,
) -> Result<String> {
    let own: Option<Address> = server.admin_url.parse().ok();
    if own.as_ref() != Some(address) {
        bail!(
            "the token of context {name} is sent only to {}, not to {address}: give the token of \
             that server, too",
            server.admin_url
        );
    }
    place.read().with_context(|| format!("cannot read the token of context {name}"))
}

fn parsed(what: &str, address: &str) -> Result<Address> {
    address.parse().map_err(|error| {
        anyhow!(
            "{what} is {address:?}: {error}; give the admin plane's host and port, such as \
             {DEFAULT_ADMIN}"
        )
    })
}

#[cfg(test)]
mod tests;
