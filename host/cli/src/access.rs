//! The address and the token of the server that a command talks to: from flags, variables and
//! contexts.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use gristmill_client::Address;
use gristmill_core::Name;

use crate::args::option;
use crate::contexts::{Contexts, KnownServer};
use crate::trust::CA_FILE;

const DEFAULT_ADMIN: &str = "http://127.0.0.1:8081";
const ADMIN_VARIABLE: &str = "GRISTMILL_ADMIN_URL";
pub(crate) const TOKEN_VARIABLE: &str = "GRISTMILL_ADMIN_TOKEN";

/// The flags `--admin`, `--token` and `--context`.
pub(crate) fn arguments() -> [Arg; 3] {
    let admin = option("admin", "URL").env(ADMIN_VARIABLE).help(
        "The admin plane: https:// or http://, which may be left out [default: that of the \
         context, or 127.0.0.1:8081]",
    );
    let token = option("token", "TOKEN")
        .env(TOKEN_VARIABLE)
        .hide_env_values(true)
        .help("The admin token [default: that of the context]");
    let context = option("context", "NAME")
        .env("GRISTMILL_CONTEXT")
        .help("The server, by its name; see gristmill context --help [default: the current one]");
    [admin, token, context]
}

/// A server, and the token for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) address: Address,
    /// Where the address is from, for errors.
    pub(crate) source: String,
    pub(crate) token: String,
    pub(crate) token_source: String,
    /// The certificates of the authorities that are trusted for it, if not those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// The context that says that commands ask before they change this server.
    pub(crate) confirm: Option<Name>,
}

/// A value on the command line, or of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    text: String,
    is_flag: bool,
}

/// What was given.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    admin: Option<Given>,
    /// The variable for the address, with which the variable's token came.
    admin_variable: Option<String>,
    token: Option<Given>,
    context: Option<Given>,
    ca_file: Option<Given>,
}

impl Choice {
    /// From the flags of [`arguments`].
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let argument = |name: &str| {
            let is_flag = matches.value_source(name) == Some(ValueSource::CommandLine);
            let text = matches.get_one::<String>(name).cloned();
            text.map(|text| Given { text, is_flag })
        };
        let (admin, token, context) = (argument("admin"), argument("token"), argument("context"));
        let admin_variable = std::env::var(ADMIN_VARIABLE).ok();
        Self { admin, admin_variable, token, context, ca_file: argument(CA_FILE) }
    }

    /// The server that was chosen. `contexts` reads the user's file, if it is needed.
    ///
    /// # Errors
    /// The context does not exist, no token belongs to the address, or the address is not valid.
    pub(crate) fn resolve(self, contexts: impl FnOnce() -> Result<Contexts>) -> Result<Access> {
        let is_named = self.context.as_ref().is_some_and(|context| context.is_flag);
        // A context on the command line goes before the variables.
        let admin = self.admin.as_ref().filter(|admin| admin.is_flag || !is_named);
        let admin = match admin {
            Some(Given { text, is_flag }) => {
                let source = if *is_flag { "--admin" } else { ADMIN_VARIABLE };
                Some((parsed(source, text)?, source.to_owned()))
            }
            None => None,
        };
        let token = admin.as_ref().and_then(|(address, _)| self.token_beside(address, true));
        let context = match token {
            Some(_) if !is_named => None,
            _ => Chosen::of(contexts()?, self.context.as_ref())?,
        };
        // Another server has other authorities.
        let ca_of_context = context.as_ref().filter(|_| admin.is_none());
        let ca_of_context = ca_of_context.and_then(|context| context.server.ca_file.clone());
        let (address, source) = match (admin, &context) {
            (Some(admin), _) => admin,
            (None, Some(context)) => (context.address()?, format!("context {}", context.name)),
            (None, None) => (parsed("--admin", DEFAULT_ADMIN)?, "the default".to_owned()),
        };
        let (token, token_source) = match token {
            Some(token) => token,
            None => self.token_for(&address, context.as_ref())?,
        };
        let goes_first = |file: &Given| file.is_flag || !is_named || ca_of_context.is_none();
        let ca_file = self.ca_file.as_ref().filter(|file| goes_first(file));
        let ca_file = ca_file.map(|file| PathBuf::from(&file.text)).or(ca_of_context);
        let confirm = context.filter(|context| {
            context.server.confirm && context.address().is_ok_and(|other| other == address)
        });
        let confirm = confirm.map(|context| context.name);
        Ok(Access { address, source, token, token_source, ca_file, confirm })
    }

    /// The token of the command or of the variable, and its source, if it came with this address.
    /// A variable's token came with the address in the other variable. Without one it came with an
    /// address that `is_chosen`.
    fn token_beside(&self, address: &Address, is_chosen: bool) -> Option<(String, String)> {
        let token = self.token.as_ref()?;
        let source = if token.is_flag { "--token" } else { TOKEN_VARIABLE };
        let is_beside = match &self.admin_variable {
            _ if token.is_flag => true,
            Some(url) => url.parse().is_ok_and(|other: Address| other == *address),
            None => is_chosen,
        };
        is_beside.then(|| (token.text.clone(), source.to_owned()))
    }

    /// The token for the address, and its source.
    fn token_for(&self, address: &Address, context: Option<&Chosen>) -> Result<(String, String)> {
        let mut others = Vec::new();
        let flag = self.token.as_ref().filter(|token| token.is_flag);
        if let (None, Some(context)) = (flag, context)
            && let Some(place) = &context.server.token
        {
            let source = format!("the token of context {}", context.name);
            if context.address().is_ok_and(|context_address| context_address == *address) {
                let token = place.read().with_context(|| format!("cannot read {source}"))?;
                return Ok((token, source));
            }
            others.push(format!("{source} is sent only to {}", context.server.admin_url));
        }
        // Who set only the variable did not choose the current context.
        let is_chosen = context.is_none_or(|context| context.is_named);
        if let Some(token) = self.token_beside(address, is_chosen) {
            return Ok(token);
        }
        if self.token.is_some() {
            others.push(match &self.admin_variable {
                Some(url) => format!("that in {TOKEN_VARIABLE} is sent only to {url}"),
                None => format!("that in {TOKEN_VARIABLE} did not come with this address"),
            });
        }
        if others.is_empty() {
            bail!("no token: give {TOKEN_VARIABLE}, a context with the place of one, or --token");
        }
        bail!(
            "no token for {address}: {}; give --token, {TOKEN_VARIABLE} together with \
             {ADMIN_VARIABLE}, or the place of the token to `gristmill context add`",
            others.join(", and ")
        )
    }
}

/// The context that was chosen, or else the current one.
struct Chosen {
    name: Name,
    server: KnownServer,
    /// Whether the command or its variable names it, so that a token beside it is for it.
    is_named: bool,
}

impl Chosen {
    fn of(mut contexts: Contexts, chosen: Option<&Given>) -> Result<Option<Self>> {
        let is_named = chosen.is_some();
        let name = match chosen {
            Some(chosen) => {
                Some(chosen.text.parse().map_err(|error| anyhow!("--context: {error}"))?)
            }
            None => contexts.current.take(),
        };
        let Some(name) = name else { return Ok(None) };
        let server = contexts.get(&name)?.clone();
        Ok(Some(Self { name, server, is_named }))
    }

    fn address(&self) -> Result<Address> {
        parsed(&format!("the admin_url of context {}", self.name), &self.server.admin_url)
    }
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
