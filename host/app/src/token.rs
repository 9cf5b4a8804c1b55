//! The root token, with which a server is started, and the commands for tokens. The root token is
//! given, or it is made once; then only its digest is kept, and the token itself only by `gristmill
//! up`, for the other commands of the same user. The commands for tokens of a server that runs are
//! those of `gristmill_cli`.
//!
//! Invariant: a root token is made only when the addresses are bound and the directory is locked,
//! and it is shown, or kept in a file, before anything else can fail. Its hash is kept whole or not
//! at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};
use gristmill_core::{Digest, KeyHash};
use gristmill_transport::credentials::{KeyHasher, new_key};
use serde_json::json;

use crate::{config, data_dir};

/// The file with the token's digest, in the data directory.
const FILE: &str = "admin-token.sha256";

/// The file with the token itself, which only its owner may read, if `gristmill up` made it.
const PLAIN_FILE: &str = "admin-token";

/// The beginning of a root token that the server makes.
const PREFIX: &str = "gma_";

pub(crate) fn command() -> Command {
    let reset = Command::new("reset")
        .about("Make a new admin token and print it once; the old one becomes invalid")
        .args(config::data_dir_args())
        .after_help(
            "It is the token that the server is started with, which always does everything. Tokens with \
             names stay as they are: `gristmill token rotate` gives one of them another secret.\n\n\
             A running server keeps the old token until it is started again. A server with a token \
             in its configuration (--admin-token, GRISTMILL_ADMIN_TOKEN or admin_token in the file) \
             uses that one instead.",
        );
    Command::new("token")
        .about("Make, list, rotate and delete admin tokens, or make a new root token")
        .after_help(
            "Tokens have names, roles and ends, so that each person and each program has its own: \
             a tenant's own people deploy with one, and reach nothing but their tenant. The token \
             that a server prints at its first start is the root token: it does everything, and is \
             kept apart from the others. `gristmill token reset` makes a new one in the data \
             directory; the other commands call a server that runs.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(gristmill_cli::token::commands())
        .subcommand(reset)
}

/// `gristmill token`.
pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("reset", matches)) => reset(matches),
        _ => gristmill_cli::token::run(matches),
    }
}

/// `gristmill token reset`.
fn reset(matches: &ArgMatches) -> Result<()> {
    let data_dir = config::data(matches)?.data_dir;
    if !data_dir.is_dir() {
        bail!("there is no data directory {}: name it with --data-dir", data_dir.display());
    }
    let token = make(&data_dir)?;
    print(&token, &data_dir, false)?;
    // It has a token that is not valid any more.
    let _ = fs::remove_file(plain_file(&data_dir));
    if let Some(process) = data_dir::held_by(&data_dir) {
        eprintln!("a server is running ({process}): it uses this token when it is started again");
    }
    Ok(())
}

/// The root token, as the server knows it.
pub(crate) enum RootToken {
    /// From the configuration.
    Given(String),
    /// The digest in the data directory.
    Kept(Digest),
}

impl RootToken {
    /// The hash that tokens of calls are compared with.
    pub(crate) fn hash(&self, hasher: &KeyHasher) -> KeyHash {
        match self {
            Self::Given(token) => hasher.hash(token),
            Self::Kept(digest) => KeyHash::Plain(*digest),
        }
    }
}

/// What is done with a root token that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewToken {
    /// It is printed once.
    Shown,
    /// It is kept in [`plain_file`].
    InFile,
}

/// The file in a data directory with the root token that `gristmill up` made.
pub(crate) fn plain_file(data_dir: &Path) -> PathBuf {
    data_dir.join(PLAIN_FILE)
}

/// The root token. If there is none yet, one is made.
pub(crate) fn root_token(
    configured: Option<&str>,
    data_dir: &Path,
    new: NewToken,
    as_json: bool,
) -> Result<RootToken> {
    if let Some(token) = configured {
        return Ok(RootToken::Given(token.into()));
    }
    let path = data_dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = make(data_dir)?;
            match new {
                NewToken::Shown => print(&token, data_dir, as_json)?,
                NewToken::InFile => keep_plain(&token, data_dir)?,
            }
            return Ok(RootToken::Kept(Digest::of(token.as_bytes())));
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let digest: Option<Digest> = text.trim().parse().ok();
    let digest = digest.with_context(|| {
        let state = if text.trim().is_empty() { "empty" } else { "damaged" };
        let (path, data_dir) = (path.display(), data_dir.display());
        format!(
            "{path} is {state}, so no admin token is known: make a new one with `gristmill token \
             reset --data-dir {data_dir}`"
        )
    })?;
    if new == NewToken::InFile && !is_in_file(digest, data_dir) {
        let data_dir = data_dir.display();
        bail!(
            "the root token of {data_dir} is kept only as a hash: give it in GRISTMILL_ADMIN_TOKEN; \
             `gristmill token reset --data-dir {data_dir}` prints a new one"
        );
    }
    Ok(RootToken::Kept(digest))
}

/// Whether the token of this digest is in [`plain_file`].
fn is_in_file(digest: Digest, data_dir: &Path) -> bool {
    let token = fs::read_to_string(plain_file(data_dir)).unwrap_or_default();
    Digest::of(token.trim_end().as_bytes()) == digest
}

/// Keep the token. If that fails, the digest is removed, as in [`print`].
fn keep_plain(token: &str, data_dir: &Path) -> Result<()> {
    let kept = data_dir::keep_secret(data_dir, PLAIN_FILE, token);
    let kept = kept.inspect_err(|_| drop(fs::remove_file(data_dir.join(FILE))));
    kept.with_context(|| format!("cannot keep the admin token in {}", data_dir.display()))
}

/// Make a token, and replace the stored digest by its digest in one step.
fn make(data_dir: &Path) -> Result<String> {
    let token = new_key(PREFIX).context("cannot read randomness for the admin token")?;
    data_dir::keep_secret(data_dir, FILE, &Digest::of(token.as_bytes()).to_string())
        .with_context(|| format!("cannot keep the admin token in {}", data_dir.display()))?;
    Ok(token)
}

/// Show the token. If that fails, the digest is removed: a token that was not shown is useless.
fn print(token: &str, data_dir: &Path, as_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let line = match as_json {
        true => format!("{}\n", json!({ "message": "admin token", "admin_token": token })),
        false => format!("admin token {token} (shown only this once)\n"),
    };
    let shown = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    shown.inspect_err(|_| drop(fs::remove_file(data_dir.join(FILE)))).context("standard output")
}
