//! The context `local`: the server that this user started on this machine with `gristmill up`.

use std::path::PathBuf;

use anyhow::Result;
use gristmill_core::Name;

use crate::access::TOKEN_VARIABLE;
use crate::contexts::{Contexts, KnownServer, TokenPlace};

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

impl LocalServer {
    /// Keep it as the context [`LOCAL`], which becomes the current one. Returns the name of the
    /// context that was the current one before, if that was another.
    ///
    /// # Errors
    /// The user's file of contexts cannot be read or written.
    pub fn keep(self) -> Result<Option<Name>> {
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
        let ca_file =
            known_context.as_ref().and_then(|known_context| known_context.ca_file.clone());
        let confirm = known_context.is_some_and(|known_context| known_context.confirm);
        let server = KnownServer { admin_url, url, token, ca_file, confirm };
        contexts.all.insert(name.clone(), server);
        let before = contexts.current.replace(name.clone()).filter(|before| *before != name);
        contexts.write()?;
        Ok(before)
    }
}
