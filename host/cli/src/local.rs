//! The context `local`: the server that this user started on this machine with `gristmill up`.

use std::path::PathBuf;

use anyhow::Result;
use gristmill_core::Name;

use crate::access::TOKEN_VARIABLE;
use crate::contexts::{Contexts, KnownServer, TokenPlace};
use crate::output::quoted;

/// The context's name.
pub const LOCAL: &str = "local";

/// The addresses of a server, and the place of its token.
#[derive(Debug)]
pub struct LocalServer {
    /// The admin plane's URL.
    pub admin_url: String,
    /// The data plane's URL.
    pub url: String,
    /// The file with the admin token. If it is not given, it is in `GRISTMILL_ADMIN_TOKEN`.
    pub token_file: Option<PathBuf>,
}

/// What a new context takes the place of.
#[derive(Debug)]
pub struct Replaced {
    /// The context that was the current one before, if that was another.
    pub current: Option<Name>,
    /// The arguments of `gristmill context add` for the server that was [`LOCAL`] before, if that
    /// was one of other data.
    pub server: Option<String>,
}

impl LocalServer {
    /// Keep it as the context [`LOCAL`], which becomes the current one.
    ///
    /// # Errors
    /// The user's file of contexts cannot be read or written.
    pub fn keep(self) -> Result<Replaced> {
        let Self { admin_url, url, token_file } = self;
        let name: Name = LOCAL.parse()?;
        let mut contexts = Contexts::read()?;
        let token = match token_file {
            Some(file) => TokenPlace::File(file),
            None => TokenPlace::Variable(TOKEN_VARIABLE.to_owned()),
        };
        let (url, token) = (Some(url), Some(token));
        // Addresses and token may be others than at the last start. The rest is the user's.
        let known_context = contexts.all.remove(&name);
        let context = known_context.as_ref();
        let ca_file = context.and_then(|context| context.ca_file.clone());
        let confirm = context.is_some_and(|context| context.confirm);
        let server = known_context
            .filter(|context| context.token != token)
            .as_ref()
            .map(KnownServer::arguments);
        let context = KnownServer { admin_url, url, token, ca_file, confirm };
        contexts.all.insert(name.clone(), context);
        let current = contexts.current.replace(name.clone()).filter(|before| *before != name);
        contexts.write()?;
        Ok(Replaced { current, server })
    }
}

impl KnownServer {
    /// The arguments of `gristmill context add`.
    fn arguments(&self) -> String {
        let Self { admin_url, url, token, ca_file, confirm } = self;
        let mut arguments = format!("--admin-url {admin_url}");
        match token {
            Some(TokenPlace::File(file)) => {
                arguments += &format!(" --token-file {}", quoted(file));
            }
            Some(TokenPlace::Variable(variable)) => {
                arguments += &format!(" --token-env {variable}");
            }
            None => {}
        }
        if let Some(url) = url {
            arguments += &format!(" --url {url}");
        }
        if let Some(file) = ca_file {
            arguments += &format!(" --ca-file {}", quoted(file));
        }
        if *confirm {
            arguments += " --confirm";
        }
        arguments
    }
}
