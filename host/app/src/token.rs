//! The admin token, and `gristmill token reset`. The token is given, or it is made once; then only
//! its digest is kept.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};
use gristmill_core::Digest;
use gristmill_store::digest_of;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::{config, data_dir};

/// The file with the token's digest, in the data directory.
const FILE: &str = "admin-token.sha256";

pub(crate) fn command() -> Command {
    let reset = Command::new("reset")
        .about("Make a new admin token and print it once; the old one becomes invalid")
        .args(config::data_dir_args())
        .after_help(
            "A running server keeps the old token until it is started again. A server with a token \
             in its configuration (--admin-token, GRISTMILL_ADMIN_TOKEN or admin_token in the file) \
             uses that one instead.",
        );
    Command::new("token")
        .about("The admin token of a server's data directory")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(reset)
}

/// `gristmill token reset`.
pub(crate) fn reset(matches: &ArgMatches) -> Result<()> {
    let data_dir = config::data_dir(matches)?;
    if !data_dir.is_dir() {
        bail!("there is no data directory {}: name it with --data-dir", data_dir.display());
    }
    let token = make(&data_dir)?;
    print(&token, &data_dir, false)?;
    if let Some(process) = data_dir::held_by(&data_dir) {
        eprintln!("a server is running ({process}): it uses this token when it is started again");
    }
    Ok(())
}

/// The digest of the admin token. If there is none yet, one is made and printed once.
pub(crate) fn admin_token(given: Option<&str>, data_dir: &Path, as_json: bool) -> Result<Digest> {
    if let Some(token) = given {
        return Ok(digest_of(token.as_bytes()));
    }
    let path = data_dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = make(data_dir)?;
            print(&token, data_dir, as_json)?;
            return Ok(digest_of(token.as_bytes()));
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    text.trim().parse().ok().with_context(|| {
        let state = if text.trim().is_empty() { "empty" } else { "damaged" };
        let (path, data_dir) = (path.display(), data_dir.display());
        format!(
            "{path} is {state}, so no admin token is known: make a new one with `gristmill token \
             reset --data-dir {data_dir}`"
        )
    })
}

/// Make a token, and replace the stored digest by its digest in one step.
fn make(data_dir: &Path) -> Result<String> {
    let token = random_token().context("cannot read randomness for the admin token")?;
    let keep = || -> std::io::Result<()> {
        for leftover in fs::read_dir(data_dir)?.flatten().filter(is_leftover) {
            let _ = fs::remove_file(leftover.path());
        }
        // Only the owner may read it.
        let mut file = NamedTempFile::with_prefix_in(FILE, data_dir)?;
        writeln!(file, "{}", digest_of(token.as_bytes()))?;
        file.as_file().sync_all()?;
        file.persist(data_dir.join(FILE))?;
        File::open(data_dir)?.sync_all()
    };
    keep().with_context(|| format!("cannot keep the admin token in {}", data_dir.display()))?;
    Ok(token)
}

/// Whether this file is from a process that was killed while it made a token. Its name is [`FILE`]
/// and six letters and digits.
fn is_leftover(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let suffix = name.to_str().and_then(|name| name.strip_prefix(FILE));
    let is_temporary =
        |suffix: &str| suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    suffix.is_some_and(is_temporary) && entry.file_type().is_ok_and(|kind| kind.is_file())
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

fn random_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("gma_{}", Digest::from_bytes(bytes).hex()))
}
