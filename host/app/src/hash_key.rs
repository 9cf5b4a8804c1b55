//! The secret with which API keys and admin tokens are hashed, in the data directory. It is made at
//! the first start. Without it the hashes in the release log tell nothing, so a copy of the log
//! alone does not help to guess a key.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use gristmill_core::Digest;
use gristmill_transport::credentials::{HASH_KEY_BYTES, KeyHasher};

use crate::data_dir;

/// The file with the secret: 64 hexadecimal digits.
const FILE: &str = "hash-key";

/// The hasher with the secret of this directory, if it has one.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub(crate) fn read(data_dir: &Path) -> Result<Option<KeyHasher>> {
    let path = data_dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let secret: Option<Digest> = format!("sha256:{}", text.trim()).parse().ok();
    let secret = secret.with_context(|| {
        let path = path.display();
        format!(
            "{path} is damaged, so no API key and no admin token can be checked: put it back from a \
             copy of the data directory"
        )
    })?;
    Ok(Some(KeyHasher::new(secret.as_bytes())))
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
