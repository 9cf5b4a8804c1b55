//! The flags that say how registries are asked.

use std::sync::OnceLock;

use anyhow::{Result, ensure};
use clap::{Arg, ArgMatches};

use crate::args::{option, switch};

const PLAIN_HTTP: &str = "plain-http";
const TOKEN: &str = "registry-token";

/// How registries are asked.
pub(crate) struct RegistryAccess {
    /// Whether they are asked without TLS.
    pub(super) is_plain: bool,
    token: Option<String>,
    /// The registry that gets the token.
    token_of: OnceLock<String>,
}

/// The flags that say how registries are asked.
pub(crate) fn arguments() -> [Arg; 2] {
    let token = option(TOKEN, "TOKEN")
        .env("GRISTMILL_REGISTRY_TOKEN")
        .hide_env_values(true)
        .help("The token for the registry (oci://) [default: what `docker login` keeps]");
    let plain = switch(PLAIN_HTTP)
        .help("Ask registries without TLS, and without what `docker login` keeps");
    [token, plain]
}

impl RegistryAccess {
    /// As the flags of [`arguments`] say.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let token = matches.get_one::<String>(TOKEN).cloned();
        Self { is_plain: matches.get_flag(PLAIN_HTTP), token, token_of: OnceLock::new() }
    }

    /// The token that was given, for this registry. It goes to no second one: a manifest can name
    /// plugins of others.
    ///
    /// # Errors
    /// Another registry has got it.
    pub(super) fn token(&self, registry: &str) -> Result<Option<&str>> {
        let Some(token) = &self.token else { return Ok(None) };
        let first = self.token_of.get_or_init(|| registry.to_owned());
        ensure!(
            first == registry,
            "--registry-token is for one registry, but {first} and {registry} are asked: leave it \
             out, and log in to both with `docker login`"
        );
        Ok(Some(token))
    }
}
