//! The secret with which API keys and admin tokens are hashed, in the data directory or in the file
//! that `hash_key_file` names. That of the data directory is made at the first start; the other one
//! is the same for all servers of a store, so none of them makes it. Without it the hashes in the
//! release log tell nothing, so a copy of the log alone does not help to guess a key.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use gristmill_core::Digest;
use gristmill_transport::credentials::{HASH_KEY_BYTES, KeyHasher};

use crate::config::Data;
use crate::data_dir;

/// The file with the secret: 64 hexadecimal digits.
const FILE: &str = "hash-key";

/// The hasher with the secret, if there is one.
///
/// # Errors
/// The file cannot be read, or is damaged; or `hash_key_file` names none.
pub(crate) fn read(data: &Data) -> Result<Option<KeyHasher>> {
    if let Some(path) = &data.hash_key_file {
        let place = || format!("hash_key_file is {}", path.display());
        let text = fs::read_to_string(path).with_context(|| {
            format!("{}: make one with `openssl rand -hex 32` and give it to all servers", place())
        })?;
        let secret = secret_in(&text);
        let secret =
            secret.with_context(|| format!("{}: it has not 64 hexadecimal digits", place()))?;
        return Ok(Some(KeyHasher::new(secret.as_bytes())));
    }
    let path = data.data_dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let secret = secret_in(&text).with_context(|| {
        let path = path.display();
        format!(
            "{path} is damaged, so no API key and no admin token can be checked: put it back from a \
             copy of the data directory"
        )
    })?;
    Ok(Some(KeyHasher::new(secret.as_bytes())))
}

fn secret_in(text: &str) -> Option<Digest> {
    format!("sha256:{}", text.trim()).parse().ok()
}

/// Make a secret, and keep it.
///
/// # Errors
/// The system has no randomness, or the file cannot be written.
pub(crate) fn make(data_dir: &Path) -> Result<KeyHasher> {
    let mut secret = [0; HASH_KEY_BYTES];
    getrandom::fill(&mut secret).context("cannot read randomness for the hash key")?;
    data_dir::keep_secret(data_dir, FILE, &Digest::from_bytes(secret).hex())
        .with_context(|| format!("cannot keep the hash key in {}", data_dir.display()))?;
    Ok(KeyHasher::new(&secret))
}
