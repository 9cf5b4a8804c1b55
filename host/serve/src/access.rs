//! The caller of a request: a tenant or the operator.
//!
//! Invariant: a client without a key of a tenant cannot find out whether the tenant exists: not by
//! an answer, a header or a response time. A tenant whose document has `cors` gives this up: the
//! headers for web pages, which `http::cors` adds, tell that it exists.

use std::sync::Arc;
use std::time::SystemTime;

use gristmill_core::{ByteBudget, ClientError, ErrorCode, KeyHash, KeyHashes, Name};
use gristmill_snapshot::{Access, Operator, Snapshot, Tenant, is_no_key, same_key};
use gristmill_transport::credentials::{self, KeyHasher};

/// An API key as it came with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The hashes of the key.
    pub hashes: KeyHashes,
    /// Whether the key is a bearer token. Other credentials never match a key, but they must not
    /// count as missing either: a call without a key acts as the open tenant.
    pub is_bearer: bool,
}

/// The rules for calls that do not name a tenant.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The tenant used for calls without an API key.
    pub open_tenant: Option<Name>,
    /// The hash of the admin token that the server was started with.
    pub admin_token: KeyHash,
    /// Makes the hashes of keys.
    pub hasher: KeyHasher,
}

/// A tenant and its name.
#[derive(Clone, Copy)]
pub struct NamedTenant<'a> {
    /// The tenant's name.
    pub name: &'a Name,
    /// The tenant.
    pub tenant: &'a Arc<Tenant>,
}

/// The caller of a request.
#[derive(Clone, Copy)]
pub enum Caller<'a> {
    /// A tenant.
    Tenant(NamedTenant<'a>),
    /// The holder of an admin token with the role `admin`: sees, loads and unloads every model, but
    /// runs none. The token, if it is not the one that the server was started with.
    Operator(Option<&'a Operator>),
}

/// A [`Caller`] that does not borrow from the snapshot in which it was found.
#[derive(Clone)]
pub enum OwnedCaller {
    /// A tenant.
    Tenant {
        /// The tenant's name.
        name: Name,
        /// The tenant.
        tenant: Arc<Tenant>,
    },
    /// The holder of an admin token.
    Operator(Option<Operator>),
}

/// The reason why a caller is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no key.
    #[error("an API key is needed: Authorization: Bearer <key>")]
    KeyNeeded,
    /// There is no key of the tenant that the call names.
    #[error("an API key of tenant {0:?} is needed: Authorization: Bearer <key>")]
    KeyOfTenantNeeded(String),
    /// No tenant has this key.
    #[error("the API key opens no tenant")]
    UnknownKey,
    /// The call names a tenant that does not exist.
    #[error("no tenant {0:?}")]
    NoTenant(String),
    /// The operator asked for a model to be run.
    #[error("the admin token runs no models: use a tenant's API key")]
    OperatorRunsNothing,
    /// A tenant asked for a model to be loaded or unloaded.
    #[error("only the admin token loads and unloads models")]
    OperatorOnly,
}

impl ClientError for AccessError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::KeyNeeded | Self::KeyOfTenantNeeded(_) => ErrorCode::Unauthenticated,
            Self::UnknownKey | Self::OperatorRunsNothing | Self::OperatorOnly => {
                ErrorCode::Forbidden
            }
            Self::NoTenant(_) => ErrorCode::TenantNotFound,
        }
    }
}

/// The tenant of this name, if it is open or this key is one of its keys.
///
/// # Errors
/// [`AccessError::KeyOfTenantNeeded`]. It has the same text, after the same time, whether the
/// tenant exists or not.
pub fn admitted<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    key: Option<Key>,
) -> Result<NamedTenant<'a>, AccessError> {
    let found = named(snapshot, name);
    let access = found.map(|found| &found.tenant.access);
    let opens = match (access, key) {
        (Some(Access::Open), _) => true,
        (_, None) => false,
        (Some(access), Some(key)) => access.admits(&key.hashes),
        (None, Some(key)) => is_no_key(&key.hashes),
    };
    found.filter(|_| opens).ok_or_else(|| AccessError::KeyOfTenantNeeded(name.into()))
}

fn named<'a>(snapshot: &'a Snapshot, name: &str) -> Option<NamedTenant<'a>> {
    let (name, tenant) = snapshot.tenants.get_key_value(name)?;
    Some(NamedTenant { name, tenant })
}

impl Gate {
    /// Find the caller with this key. If the path names a `tenant`, the key must be one of its
    /// keys, or the tenant must be open.
    ///
    /// # Errors
    /// The key is missing, or it is not a key of the tenant or of any tenant.
    pub fn caller<'a>(
        &self,
        snapshot: &'a Snapshot,
        key: Option<Key>,
        tenant: Option<&str>,
    ) -> Result<Caller<'a>, AccessError> {
        if let Some(operator) = key.and_then(|key| self.operator(snapshot, &key)) {
            return Ok(operator);
        }
        if let Some(named) = tenant {
            return Ok(Caller::Tenant(admitted(snapshot, named, key)?));
        }
        let name = match (key, &self.open_tenant) {
            (Some(key), _) => snapshot.tenant_of(&key.hashes).ok_or(match key.is_bearer {
                true => AccessError::UnknownKey,
                false => AccessError::KeyNeeded,
            })?,
            (None, Some(open)) => open,
            (None, None) => return Err(AccessError::KeyNeeded),
        };
        let found = named(snapshot, name.as_str());
        Ok(Caller::Tenant(found.ok_or_else(|| AccessError::NoTenant(name.to_string()))?))
    }

    /// The key that came as a bearer token, for calls of this snapshot. The plain hash is made only
    /// if one of the snapshot's keys, or the admin token, is kept as such.
    pub fn key(&self, snapshot: &Snapshot, token: &str) -> Key {
        let is_plain_kept = snapshot.has_plain_keys || self.admin_token.hash_key().is_none();
        let plain = is_plain_kept.then(|| credentials::plain_hash(token));
        let hashes = KeyHashes { keyed: self.hasher.hash(token), plain };
        Key { hashes, is_bearer: !token.is_empty() }
    }

    fn operator<'a>(&self, snapshot: &'a Snapshot, key: &Key) -> Option<Caller<'a>> {
        if same_key(&self.admin_token, &key.hashes) {
            return Some(Caller::Operator(None));
        }
        let operator = snapshot.operator_of(&key.hashes)?;
        let is_valid = operator.ends.is_none_or(|ends| SystemTime::now() < ends);
        is_valid.then_some(Caller::Operator(Some(operator)))
    }
}

impl<'a> Caller<'a> {
    /// The tenant. Only tenants run models.
    ///
    /// # Errors
    /// The caller is the operator.
    pub fn tenant(self) -> Result<NamedTenant<'a>, AccessError> {
        match self {
            Self::Tenant(tenant) => Ok(tenant),
            Self::Operator(_) => Err(AccessError::OperatorRunsNothing),
        }
    }

    /// Check that the caller may load and unload models. Returns the caller's token, if
    /// it is not the one that the server was started with.
    ///
    /// # Errors
    /// The caller is a tenant.
    pub fn operates(self) -> Result<Option<&'a Operator>, AccessError> {
        match self {
            Self::Operator(token) => Ok(token),
            Self::Tenant(_) => Err(AccessError::OperatorOnly),
        }
    }

    /// The tenant's name, if the caller is a tenant.
    pub fn name(self) -> Option<&'a Name> {
        self.tenant().ok().map(|own_tenant| own_tenant.name)
    }

    /// The budget for the bytes of its requests, if the caller is a tenant.
    pub fn budget(self) -> Option<&'a Arc<ByteBudget>> {
        self.tenant().ok().map(|own_tenant| &own_tenant.tenant.quota.bytes)
    }

    /// The same caller, without a borrow of the snapshot.
    pub fn owned(self) -> OwnedCaller {
        match self {
            Self::Tenant(NamedTenant { name, tenant }) => {
                OwnedCaller::Tenant { name: name.clone(), tenant: tenant.clone() }
            }
            Self::Operator(token) => OwnedCaller::Operator(token.cloned()),
        }
    }
}

impl OwnedCaller {
    /// The caller.
    pub fn get(&self) -> Caller<'_> {
        match self {
            Self::Tenant { name, tenant } => Caller::Tenant(NamedTenant { name, tenant }),
            Self::Operator(token) => Caller::Operator(token.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests;
