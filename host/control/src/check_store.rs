//! Checking a store without changing it: the work of `gristmill fsck`.
//!
//! It reads the log as the server does at its start. Behind a damaged release, where the server
//! would stop, it reads on, so that one run finds everything that is wrong. It never writes.

use std::collections::BTreeMap;

use gristmill_core::{Digest, HashKeyId, Name};
use gristmill_state::{Change, Desired, Head, LogError, NamedVersion};
use gristmill_store::{Store, StoreError};

use crate::checkpoint::Checkpoint;
use crate::error::ControlError;
use crate::hash_key;
use crate::release_log::end;
use crate::release_log::gaps::gap_in;
use crate::release_log::read_checkpoint;

/// What a check of a store found.
#[derive(Debug, Default)]
pub struct StoreCheck {
    /// The releases of the log that were read.
    pub releases: u64,
    /// The uploaded files that were looked at.
    pub files: u64,
    /// The bytes of the files that are whole.
    pub file_bytes: u64,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
}

/// Something that is wrong with a store.
#[derive(Debug)]
pub struct Finding {
    /// Whether the server does not start with it.
    pub stops_start: bool,
    /// What is wrong, and what can be done.
    pub text: String,
}

impl StoreCheck {
    fn add(&mut self, stops_start: bool, text: impl ToString) {
        self.findings.push(Finding { stops_start, text: text.to_string() });
    }
}

/// Check the log and every uploaded file that a release names. `reads` is called before each file
/// is read, with the number of files that were read and of those to be read. `hash_key` is the
/// secret with which the server hashes keys and tokens, if it has one.
///
/// # Errors
/// The log's folder cannot be listed. A file that cannot be read is a finding.
pub async fn check_store(
    store: &Store,
    hash_key: Option<HashKeyId>,
    mut reads: impl FnMut(u64, usize),
) -> Result<StoreCheck, StoreError> {
    let mut check = StoreCheck::default();
    let named = check_log(store, hash_key, &mut check).await?;
    for (digest, users) in &named {
        reads(check.files, named.len());
        match store.check_blob(*digest).await {
            Ok(bytes) => check.file_bytes += bytes,
            Err(error) => check.add(false, of_file(users, &error)),
        }
        check.files += 1;
    }
    Ok(check)
}

/// Read the log to its end. Returns the files that its releases name, with their users.
async fn check_log(
    store: &Store,
    hash_key: Option<HashKeyId>,
    check: &mut StoreCheck,
) -> Result<BTreeMap<Digest, String>, StoreError> {
    let listing = store.log().await?;
    for file in &listing.foreign {
        check.add(false, format!("{file} is not a release: the server ignores it; move it away"));
    }
    let base = read_checkpoint(store).await;
    let is_base_whole = base.is_ok();
    let Checkpoint { mut head, mut desired } = base.unwrap_or_else(|error| {
        check.add(true, error);
        Checkpoint::default()
    });
    let gap = gap_in(&listing, head.number).filter(|_| is_base_whole);
    if let Some(gap) = &gap {
        check.add(true, gap);
    }
    let mut named: BTreeMap<_, _> = users(&desired).collect();
    // Whether `desired` is the state that a server would have.
    let mut is_whole = is_base_whole && gap.is_none();
    // A server removes those for which the checkpoint stands.
    let base = head.number;
    for &number in listing.numbers.iter().filter(|number| **number > base) {
        check.releases += 1;
        let document = match store.document(number).await {
            Ok(document) => document.unwrap_or_default(),
            Err(error) => {
                check.add(true, format_args!("release {number} in the log: {error}"));
                is_whole = false;
                continue;
            }
        };
        if head.number + 1 != number {
            head = Head::claimed_by(number, &document);
        }
        let damaged = |source| ControlError::Log { number, source };
        match head.read(&document) {
            Ok((release, next)) => {
                head = next;
                let files = release.changes.iter().filter_map(Change::blob);
                files.for_each(|file| drop(named.insert(file, format!("release {number}"))));
                if is_whole && let Err(error) = desired.apply(number, &release.changes) {
                    check.add(true, damaged(LogError::Unfit(error.into())));
                    is_whole = false;
                }
            }
            Err(source) => {
                check.add(true, damaged(source));
                is_whole = false;
            }
        }
    }
    if is_whole {
        match end::check(store, &head, base).await {
            Ok(()) => {}
            Err(error) => check.add(true, error),
        }
        if let Err(error) = hash_key::check(desired.hash_keys(), hash_key) {
            check.add(true, error);
        }
        named.extend(users(&desired));
    }
    Ok(named)
}

/// The files that serve, each with the names of one user. If a file has several, the newest version
/// comes last.
fn users(desired: &Desired) -> impl Iterator<Item = (Digest, String)> {
    let models = desired.models.iter().flat_map(|(name, model)| {
        model.versions().map(move |(version, digest)| {
            let named = named(name, version, model.version);
            (digest, format!("model {named:?}"))
        })
    });
    let plugins = desired.tenants.iter().flat_map(|(tenant, owned)| {
        let plugins = owned.plugins.iter();
        plugins.flat_map(move |(name, plugin)| {
            plugin.versions().map(move |(version, digest)| {
                let named = named(name, version, plugin.version);
                (digest, format!("plugin {named:?} of tenant {:?}", tenant.as_str()))
            })
        })
    });
    let assets = desired.tenants.iter().flat_map(|(tenant, owned)| {
        owned.assets.iter().flat_map(move |(name, asset)| {
            asset.versions().map(move |(version, digest)| {
                let named = named(name, version, asset.version);
                (digest, format!("asset {named:?} of tenant {:?}", tenant.as_str()))
            })
        })
    });
    models.chain(plugins).chain(assets)
}

/// The name as a pipeline has it: without a version if it is the newest one.
fn named(name: &Name, version: u64, newest: u64) -> String {
    let version = Some(version).filter(|version| *version != newest);
    NamedVersion { name: name.clone(), version }.to_string()
}

fn of_file(user: &str, error: &StoreError) -> String {
    let cure = match error {
        StoreError::Missing(digest) | StoreError::Damaged(digest) => {
            let name = digest.hex();
            format!("put it back as blobs/{name} in the store, or upload it again")
        }
        _ => "check the disk and the permissions of the store".into(),
    };
    format!("{user}: {error}; {cure}")
}
