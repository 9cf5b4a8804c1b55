//! The checkpoint: the state after the releases that were removed from the log.
//!
//! The file is `{"format": 7, "digest": ..., "checkpoint": {...}}`. The digest is the SHA-256 of
//! the format's number and of the checkpoint's bytes. The checkpoint has the digest of the last
//! document that it stands for, which the first document of the log names, too. Format 6 lacks what
//! format 10 of the log lacks, format 5 what its format 9 lacks, and format 4 what its format 8
//! lacks. In format 3, moreover, configurations of models have no `allowed_batch_sizes`. In format
//! 2, moreover, only the newest version of a plugin or a model stays, pipelines have neither
//! `candidate` nor `capture`, and the digest covers only the checkpoint's bytes. In format 1,
//! moreover, there are no admin tokens, no tenant says since when it is there or has a quota,
//! pipelines have no `samples`, and configurations of models no `warm_up`.
//!
//! Invariant: a checkpoint is read once before it is written, as a release is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Digest, Name};
use gristmill_state::{Desired, Head, LogError, Model, Tenant, Token};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The format that is written. Those before it are read, too.
const FORMAT: u32 = 7;

/// The first format whose number the digest covers.
const COVERED_FORMAT: u32 = 3;

/// The state after a release, where the log begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) head: Head,
    pub(crate) desired: Desired,
}

#[derive(Deserialize)]
struct Probe {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    format: u32,
    digest: Digest,
    #[serde(borrow)]
    checkpoint: &'a RawValue,
}

#[derive(Serialize)]
struct Written<'a> {
    number: u64,
    document: Digest,
    chained: bool,
    tenants: BTreeMap<&'a Name, &'a Tenant>,
    models: &'a BTreeMap<Name, Model>,
    tokens: &'a BTreeMap<Name, Token>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    number: u64,
    document: Digest,
    chained: bool,
    tenants: BTreeMap<Name, Tenant>,
    models: BTreeMap<Name, Model>,
    #[serde(default)]
    tokens: BTreeMap<Name, Token>,
}

impl Checkpoint {
    /// The file.
    ///
    /// # Errors
    /// The file could not be read.
    pub(crate) fn write(&self) -> serde_json::Result<Bytes> {
        let Self { head, desired } = self;
        let written = Written {
            number: head.number,
            document: head.digest(),
            chained: head.is_chained(),
            tenants: desired.tenants.iter().map(|(name, tenant)| (name, &**tenant)).collect(),
            models: &desired.models,
            tokens: &desired.tokens,
        };
        let checkpoint = serde_json::value::to_raw_value(&written)?;
        // It takes the place of releases: it must be readable before they are removed.
        let _: Read = serde_json::from_str(checkpoint.get())?;
        let digest = digest_in(FORMAT, checkpoint.get());
        let envelope = Envelope { format: FORMAT, digest, checkpoint: &checkpoint };
        serde_json::to_vec(&envelope).map(Bytes::from)
    }

    /// Read the file.
    ///
    /// # Errors
    /// It is of a later version, or was changed.
    pub(crate) fn read(file: &[u8]) -> Result<Self, LogError> {
        let Probe { format } = serde_json::from_slice(file)?;
        if !(1..=FORMAT).contains(&format) {
            return Err(LogError::Newer { format, newest: FORMAT });
        }
        let Envelope { digest, checkpoint, .. } = serde_json::from_slice(file)?;
        if digest_in(format, checkpoint.get()) != digest {
            return Err(LogError::Changed);
        }
        let read: Read = serde_json::from_str(checkpoint.get())?;
        let Read { number, document, chained, tenants, models, tokens } = read;
        let tenants = tenants.into_iter().map(|(name, tenant)| (name, Arc::new(tenant))).collect();
        let head = Head::at(number, document, chained);
        Ok(Self { head, desired: Desired::of(tenants, models, tokens) })
    }
}

/// The digest of a checkpoint in a file of this format.
fn digest_in(format: u32, checkpoint: &str) -> Digest {
    if format < COVERED_FORMAT {
        return Digest::of(checkpoint.as_bytes());
    }
    Digest::of(format!("{format}\n{checkpoint}").as_bytes())
}

#[cfg(test)]
mod tests {

    use gristmill_state::{Change, ReleaseNote};

    use super::*;
    use crate::testing::{digest, name};

    fn checkpoint() -> Checkpoint {
        let tenant = || name("acme");
        let spec = serde_json::json!({ "keys": { "ci": digest(1) }, "weight": 3 });
        let config = serde_json::json!({ "instances": 2, "priority_levels": 2,
            "priority_queue_policies": { "2": {} },
            "version_policy": { "latest": { "num_versions": 2 } } });
        let pipeline = serde_json::json!({ "pre": "p", "model": "m", "post": "p",
            "settings": { "b": 1.5, "a": null }, "limits": { "timeout_ms": 7 } });
        let token = serde_json::json!({ "role": "deploy", "tenants": ["acme"],
            "expires_at_ms": 7, "hash": format!("hmac-sha256:00112233:{}", digest(5).hex()) });
        let changes = [
            Change::PutTenant { tenant: tenant(), spec: serde_json::from_value(spec).unwrap() },
            Change::PutPlugin { tenant: tenant(), plugin: name("p"), digest: digest(2) },
            Change::PutModel { model: name("m"), digest: digest(3), version: None },
            Change::PutModel { model: name("m"), digest: digest(4), version: None },
            Change::PutModelConfig {
                model: name("m"),
                config: serde_json::from_value(config).unwrap(),
            },
            Change::UnloadModel { model: name("m") },
            Change::PutPipeline {
                tenant: tenant(),
                pipeline: name("main"),
                spec: serde_json::from_value(pipeline).unwrap(),
            },
            Change::PutToken { token: name("ci"), spec: serde_json::from_value(token).unwrap() },
        ];
        let mut desired = Desired::default();
        desired.apply(1, &changes).unwrap();
        desired
            .apply(2, &[Change::PutModel { model: name("m"), digest: digest(6), version: None }])
            .unwrap();
        assert_eq!(desired.models["m"].kept, [(1, digest(4))].into());
        let written = Head::default().write(5, ReleaseNote::default(), changes.to_vec());
        Checkpoint { head: written.unwrap().1, desired }
    }

    #[test]
    fn what_was_written_is_read() {
        let checkpoint = checkpoint();
        assert_eq!(Checkpoint::read(&checkpoint.write().unwrap()).unwrap(), checkpoint);
        let written = checkpoint.write().unwrap();
        let Envelope { checkpoint: state, .. } = serde_json::from_slice(&written).unwrap();
        for format in [1, 2] {
            let digest = Digest::of(state.get().as_bytes());
            let earlier = Envelope { format, digest, checkpoint: state };
            let earlier = serde_json::to_vec(&earlier).unwrap();
            assert_eq!(Checkpoint::read(&earlier).unwrap(), checkpoint);
        }
        let none = Checkpoint::default();
        assert_eq!(Checkpoint::read(&none.write().unwrap()).unwrap(), none);
    }

    #[test]
    fn format_1_is_read() {
        let state = r#"{"number":7,"document":"sha256:0707070707070707070707070707070707070707070707070707070707070707","chained":true,"tenants":{"acme":{"spec":{"open":true},"key_versions":{},"plugins":{},"pipelines":{}}},"models":{}}"#;
        let digest = Digest::of(state.as_bytes());
        let file = format!(r#"{{"format":1,"digest":"{digest}","checkpoint":{state}}}"#);
        let Checkpoint { head, desired } = Checkpoint::read(file.as_bytes()).unwrap();
        assert_eq!((head.number, desired.tenants["acme"].since), (7, 0));
        assert!(desired.tokens.is_empty());
    }

    #[test]
    fn every_changed_byte_is_found() {
        let whole = checkpoint().write().unwrap();
        for at in 0..whole.len() {
            let mut spoilt = whole.to_vec();
            spoilt[at] ^= 1;
            assert!(Checkpoint::read(&spoilt).is_err(), "byte {at}");
        }
        let newer = br#"{"format": 8, "state": {}}"#;
        let error = Checkpoint::read(newer).unwrap_err().to_string();
        assert!(error.contains("its format is 8") && error.contains("up to 7"), "{error}");
    }
}
