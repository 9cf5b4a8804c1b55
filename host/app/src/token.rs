//! The admin token: given, or made once and kept hashed.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use gristmill_core::Digest;
use gristmill_store::digest_of;

/// The digest of the admin token, and the token itself where it was made just now.
pub(crate) fn admin_token(
    given: Option<&str>,
    data_dir: &Path,
) -> Result<(Digest, Option<String>)> {
    if let Some(token) = given {
        return Ok((digest_of(token.as_bytes()), None));
    }
    let path = data_dir.join("admin-token.sha256");
    match fs::read_to_string(&path) {
        Ok(text) => {
            let digest = text.trim().parse().with_context(|| path.display().to_string())?;
            Ok((digest, None))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = random_token().context("cannot read randomness for the admin token")?;
            let digest = digest_of(token.as_bytes());
            fs::write(&path, format!("{digest}\n")).with_context(|| path.display().to_string())?;
            Ok((digest, Some(token)))
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn random_token() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("gma_{}", Digest::from_bytes(bytes).hex()))
}
