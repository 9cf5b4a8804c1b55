//! A change that a request asks for.

use gristmill_core::{Digest, KeyHash, Name};

use crate::fault::Subject;
use crate::plugin_signature::PluginSignature;
use crate::release::candidate::CandidateSpec;
use crate::release::change::Change;
use crate::release::tenant::{SentKey, TenantDocument};
use crate::release::token::TokenDocument;

/// A change that a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedChange {
    /// A change that is known in full.
    Known(Change),
    /// Put a tenant. The keys that it keeps are those at the time of the release.
    PutTenant {
        /// The tenant.
        tenant: Name,
        /// What it shall be.
        document: TenantDocument,
    },
    /// Put a key of a tenant. If the tenant has this key under this name, nothing changes.
    PutKey {
        /// The tenant.
        tenant: Name,
        /// The key's name.
        key: Name,
        /// The key itself.
        sent: SentKey,
    },
    /// Put an admin token. If there is one of this name, it keeps its secret.
    PutToken {
        /// The token's name.
        token: Name,
        /// Its rights.
        document: TokenDocument,
        /// The hash of the secret of a new token.
        hash: KeyHash,
    },
    /// Put a plugin, maybe with its signature.
    PutPlugin {
        /// The tenant.
        tenant: Name,
        /// The plugin.
        plugin: Name,
        /// The digest of its file.
        digest: Digest,
        /// Its signature.
        signature: Option<Box<PluginSignature>>,
    },
    /// Put a pipeline's candidate in its place.
    Promote {
        /// The tenant.
        tenant: Name,
        /// The pipeline.
        pipeline: Name,
    },
    /// Take a pipeline's candidate away.
    Abort {
        /// The tenant.
        tenant: Name,
        /// The pipeline.
        pipeline: Name,
        /// If this is given, only a candidate that is equal; if there is none, nothing changes.
        only: Option<Box<CandidateSpec>>,
    },
    /// Give an admin token another secret.
    RotateToken {
        /// The token's name.
        token: Name,
        /// The hash of the new secret.
        hash: KeyHash,
    },
}

impl From<Change> for AskedChange {
    fn from(change: Change) -> Self {
        Self::Known(change)
    }
}

impl AskedChange {
    /// The uploaded file that it names.
    pub fn blob(&self) -> Option<Digest> {
        match self {
            Self::Known(change) => change.blob(),
            Self::PutPlugin { digest, .. } => Some(*digest),
            _ => None,
        }
    }

    /// The thing that it makes, changes or deletes.
    pub fn target(&self) -> Subject {
        match self {
            Self::Known(change) => change.target(),
            Self::PutPlugin { tenant, plugin, .. } => {
                Subject::Plugin { tenant: tenant.clone(), plugin: plugin.clone() }
            }
            Self::PutTenant { tenant, .. } => Subject::Tenant(tenant.clone()),
            Self::PutKey { tenant, key, .. } => {
                Subject::Key { tenant: tenant.clone(), key: key.clone() }
            }
            Self::Promote { tenant, pipeline } | Self::Abort { tenant, pipeline, .. } => {
                Subject::Pipeline { tenant: tenant.clone(), pipeline: pipeline.clone() }
            }
            Self::PutToken { token, .. } | Self::RotateToken { token, .. } => {
                Subject::Token(token.clone())
            }
        }
    }
}
