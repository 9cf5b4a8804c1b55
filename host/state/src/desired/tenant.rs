//! A tenant of the desired state. Pure data.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use gristmill_core::{Digest, KeyHash, Name};
use serde::{Deserialize, Serialize};

use crate::desired::versions;
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;
use crate::release::version_policy::VersionPolicy;

/// A tenant with all it owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Who may call it, and what it may use.
    pub spec: TenantSpec,
    /// The release that made it; 0 if a checkpoint of format 1 does not say it.
    #[serde(default)]
    pub since: u64,
    /// The releases that brought its keys, by the keys' names.
    pub key_versions: BTreeMap<Name, u64>,
    /// Its plugins by name.
    pub plugins: BTreeMap<Name, TenantFile>,
    /// Its assets by name. There are none up to format 6 of the checkpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assets: BTreeMap<Name, TenantFile>,
    /// Its pipelines by name.
    pub pipelines: BTreeMap<Name, Box<PipelineSpec>>,
}

/// A plugin or an asset: a file with its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    /// The digest of the newest version's file.
    pub digest: Digest,
    /// The newest version: the release that brought this content.
    pub version: u64,
    /// The files of the earlier versions that stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<u64, Digest>,
}

impl TenantFile {
    /// A file that release `version` brings.
    pub fn new(digest: Digest, version: u64) -> Self {
        Self { digest, version, kept: BTreeMap::new() }
    }

    /// The versions that stay and their files, the newest last.
    pub fn versions(&self) -> impl Iterator<Item = (u64, Digest)> {
        versions::all(&self.kept, (self.version, self.digest))
    }

    /// The file of a version, or of the newest one. None if the version does not stay.
    pub fn file(&self, version: Option<u64>) -> Option<Digest> {
        match version {
            None => Some(self.digest),
            Some(asked) => {
                self.versions().find(|(number, _)| *number == asked).map(|(_, file)| file)
            }
        }
    }

    /// Take new content of one of the `files`, which release `number` brings.
    pub(super) fn put_among(
        files: &mut BTreeMap<Name, Self>,
        name: &Name,
        number: u64,
        digest: Digest,
    ) {
        match files.get_mut(name) {
            Some(file) => file.put(number, digest),
            None => {
                files.insert(name.clone(), Self::new(digest, number));
            }
        }
    }

    fn put(&mut self, number: u64, digest: Digest) {
        if self.digest == digest {
            return;
        }
        if self.version != number {
            self.kept.insert(self.version, self.digest);
        }
        (self.digest, self.version) = (digest, number);
    }

    /// Take an earlier version back.
    pub(super) fn put_version(&mut self, version: u64, digest: Digest) {
        if version < self.version {
            self.kept.insert(version, digest);
        }
    }
}

/// Whether both states have the same tenant, or both have none. States share most tenants, and a
/// comparison takes time for each byte of a tenant.
pub fn is_same(one: Option<&Arc<Tenant>>, other: Option<&Arc<Tenant>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (one, other) => one.is_none() && other.is_none(),
    }
}

impl Tenant {
    /// Take the spec of release `number`. Keys that stay keep their versions.
    pub(super) fn put(&mut self, number: u64, spec: TenantSpec) {
        let version = |(name, hash): (&Name, &KeyHash)| {
            let stays = self.spec.keys.get(name) == Some(hash);
            let version = self.key_versions.get(name).copied().filter(|_| stays);
            (name.clone(), version.unwrap_or(number))
        };
        self.key_versions = spec.keys.iter().map(version).collect();
        self.spec = spec;
    }

    /// Its plugins and its assets.
    pub fn files(&self) -> impl Iterator<Item = &TenantFile> {
        self.plugins.values().chain(self.assets.values())
    }

    /// The tenant without the versions of its files that nothing keeps. None if all are kept.
    pub(super) fn pruned(&self) -> Option<Self> {
        if self.files().all(|file| file.kept.is_empty()) {
            return None;
        }
        let pipelines = || self.pipelines.values();
        let plugins = pipelines().flat_map(|pipeline| pipeline.plugins());
        let assets = pipelines().flat_map(|pipeline| pipeline.assets());
        let policy = &self.spec.plugin_version_policy;
        let plugins = pruned(&self.plugins, policy, plugins);
        let assets = pruned(&self.assets, policy, assets);
        let is_same = plugins == self.plugins && assets == self.assets;
        (!is_same).then(|| Self { plugins, assets, ..self.clone() })
    }
}

/// The files without the versions that the policy does not keep and that are not among the `named`.
fn pruned<'a>(
    files: &BTreeMap<Name, TenantFile>,
    policy: &VersionPolicy,
    named: impl Iterator<Item = &'a NamedVersion>,
) -> BTreeMap<Name, TenantFile> {
    let pins: HashSet<_> = named.filter_map(|named| Some((&named.name, named.version?))).collect();
    let mut files = files.clone();
    for (name, file) in &mut files {
        versions::prune(&mut file.kept, policy, |version| pins.contains(&(name, version)));
    }
    files
}
