//! The difference in power of two states: what a thing may do afterwards that it could not before,
//! and what it may no longer do. People who review a release read this first.
//!
//! It follows from documents, and from what plugins import. A plugin that is not loaded, or whose
//! sources share a runtime, may import what is not known here; the list says so.

mod found;
mod kind;

use std::collections::BTreeSet;
use std::fmt::Display;

use gristmill_core::{Destination, Digest, Name, Origins, PipelineLimits};

use crate::desired::Desired;
use crate::fault::Subject;
use crate::power::found::{Found, listed};
pub use crate::power::kind::{Power, PowerKind, Trend};
use crate::release::cors::CorsSpec;
use crate::release::instance_reuse::ReuseMode;
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;
use crate::release::plugin_signers::Signer;
use crate::release::quota::QuotaSpec;
use crate::release::store_grants::StoreGrant;
use crate::release::tenant::{BatchWith, TenantSpec};
use crate::release::token::{Role, TokenSpec};

/// What is known of a plugin that is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedPlugin {
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// Its world.
    pub world: &'static str,
    /// The size of its file.
    pub bytes: u64,
    /// The language of the runtime that its sources share with others. That imports everything.
    pub runtime: Option<&'static str>,
}

/// The two states, and what is known besides them.
pub struct Powers<'a> {
    /// The state before.
    pub before: &'a Desired,
    /// The state afterwards.
    pub after: &'a Desired,
    /// The host's own limits.
    pub limits: &'a PipelineLimits,
    /// Finds a loaded plugin by the digest of its file.
    pub loaded: &'a dyn Fn(Digest) -> Option<LoadedPlugin>,
}

impl Powers<'_> {
    /// The differences of a thing. A thing that goes has none.
    pub fn of(&self, subject: &Subject) -> Vec<Power> {
        let found = match subject {
            Subject::Tenant(tenant) => self.tenant(tenant),
            Subject::Plugin { tenant, plugin } => self.plugin(tenant, plugin),
            Subject::Pipeline { tenant, pipeline } | Subject::Candidate { tenant, pipeline } => {
                self.pipeline(tenant, pipeline)
            }
            Subject::Token(token) => self.token(token),
            Subject::Asset { .. }
            | Subject::Key { .. }
            | Subject::Model(_)
            | Subject::ModelConfig(_) => None,
        };
        found.map(|found| found.of(subject)).unwrap_or_default()
    }

    fn tenant(&self, tenant: &Name) -> Option<Found> {
        let after = &self.after.tenants.get(tenant)?.spec;
        let before = self.before.tenants.get(tenant).map(|tenant| &tenant.spec);
        // So that a new member is compared below, or named here as no power.
        let TenantSpec {
            open: _,
            try_page: _,
            models: _,
            stores: _,
            http: _,
            cors: _,
            redirects: _,
            quota: _,
            weight: _,
            batch_with: _,
            plugin_signers: _,
            // The differences name keys. The others open nothing.
            keys: _,
            default_pipeline: _,
            plugin_version_policy: _,
        } = after;
        let mut found = Found::new(before.is_none());
        let default = TenantSpec::default();
        let both = [before.unwrap_or(&default), after];
        let writes = |spec: &TenantSpec| {
            let grants = spec.stores.iter().filter(|(_, grant)| **grant == StoreGrant::Write);
            texts(grants.map(|(store, _)| store))
        };
        found.flag(PowerKind::Open, "be called without a key", both.map(|spec| spec.open));
        let page = "have a page on which anyone tries its pipelines";
        found.flag(PowerKind::TryPage, page, both.map(|spec| spec.try_page));
        found.sets(PowerKind::Model, "run models", both.map(|spec| texts(&spec.models)));
        found.sets(PowerKind::StoreRead, "read stores", both.map(|spec| texts(spec.stores.keys())));
        found.sets(PowerKind::StoreWrite, "write to stores", both.map(writes));
        found.sets(PowerKind::Http, "call", both.map(|spec| services(&spec.http)));
        let pages = both.map(|spec| pages(spec.cors.as_ref()));
        found.sets(PowerKind::Cors, "be called by pages of", pages);
        let redirects = both.map(|spec| origins(&spec.redirects));
        found.sets(PowerKind::Redirect, "redirect browsers to", redirects);
        let [quota_before, quota_after] = both.map(|spec| quota(&spec.quota));
        for ((key, before), (_, after)) in quota_before.into_iter().zip(quota_after) {
            let bounds = [before, after].map(|bound| bound.map(u64::from));
            found.number(PowerKind::Quota, format!("quota.{key}"), bounds);
        }
        let weights = both.map(|spec| Some(spec.weight.into()));
        found.number(PowerKind::Weight, "weight".into(), weights);
        let unsigned = both.map(|spec| spec.plugin_signers.is_empty());
        found.flag(PowerKind::PluginSigner, "take plugins that nobody has signed", unsigned);
        if unsigned == [false; 2] {
            let signers = both.map(|spec| keys_of(&spec.plugin_signers));
            found.sets(PowerKind::PluginSigner, "take plugins signed with", signers);
        }
        let shares = both.map(|spec| spec.batch_with == BatchWith::Any);
        found.flag(PowerKind::BatchWith, "share batches with other tenants", shares);
        Some(found)
    }

    fn plugin(&self, tenant: &Name, plugin: &Name) -> Option<Found> {
        let file = |state: &Desired| Some(state.tenants.get(tenant)?.plugins.get(plugin)?.digest);
        let (before, after) = (file(self.before), file(self.after)?);
        if before == Some(after) {
            return None;
        }
        let mut found = Found::new(before.is_none());
        let Some(after) = (self.loaded)(after) else {
            let why = "what it imports is unknown: this version is not loaded";
            found.add(PowerKind::Import, Trend::Unknown, Vec::new(), why.into());
            return Some(found);
        };
        let before = match before {
            Some(file) => (self.loaded)(file),
            None => Some(LoadedPlugin::default()),
        };
        let imports = |plugin: &LoadedPlugin| {
            let name = |import: &String| import.split('@').next().unwrap_or_default().to_owned();
            plugin.imports.iter().map(name).collect::<BTreeSet<_>>()
        };
        match (&before, after.runtime) {
            // It could call everything before, too.
            (Some(before), Some(language)) if before.runtime == Some(language) => {}
            (_, Some(language)) => {
                let text = format!(
                    "its sources share the runtime of {language}, which imports everything: what \
                     they use of it is unknown"
                );
                found.add(PowerKind::Runtime, Trend::Unknown, vec![language.to_owned()], text);
            }
            (None, None) => {
                let names: Vec<_> = imports(&after).into_iter().collect();
                let why = "what it imported before is unknown, as that version is not loaded";
                let text = format!("{why}: now {}", listed(&names));
                found.add(PowerKind::Import, Trend::Unknown, names, text);
            }
            (Some(before), None) => found.imports([before, &after].map(imports)),
        }
        let before = before.filter(|_| !found.is_new);
        if let Some(before) = before.as_ref().filter(|before| before.world != after.world) {
            let text = format!("its world is {} (was {})", after.world, before.world);
            found.add(PowerKind::World, Trend::More, vec![after.world.to_owned()], text);
        }
        let size = before.map(|before| before.bytes);
        if size != Some(after.bytes) {
            let was = size.map(|bytes| format!(" (was {bytes})")).unwrap_or_default();
            let trend = match size {
                Some(bytes) if bytes > after.bytes => Trend::Less,
                None if !found.is_new => Trend::Unknown,
                _ => Trend::More,
            };
            let text = format!("its size is {} bytes{was}", after.bytes);
            found.add(PowerKind::Size, trend, Vec::new(), text);
        }
        Some(found)
    }

    fn pipeline(&self, tenant: &Name, pipeline: &Name) -> Option<Found> {
        let after = pipeline_of(self.after, tenant, pipeline)?;
        let before = pipeline_of(self.before, tenant, pipeline);
        // As for tenants.
        let PipelineSpec {
            program: _,
            assets: _,
            candidate: _,
            limits: _,
            priority: _,
            instance_reuse: _,
            debug: _,
            capture: _,
            // They open nothing.
            settings: _,
            oip: _,
            samples: _,
        } = after;
        let mut found = Found::new(before.is_none());
        let both = [before, Some(after)];
        let names = |of: fn(&PipelineSpec) -> BTreeSet<String>| {
            both.map(|spec| spec.map(of).unwrap_or_default())
        };
        let is = |of: fn(&PipelineSpec) -> bool| both.map(|spec| spec.is_some_and(of));
        found.sets(PowerKind::Plugin, "run plugins", names(|spec| named(spec.plugins())));
        found.sets(PowerKind::Model, "run models", names(|spec| named(spec.models())));
        found.sets(PowerKind::Asset, "open assets", names(|spec| named(spec.assets())));
        let limits = |spec: Option<&PipelineSpec>| {
            spec.map(|spec| spec.limits.clone()).unwrap_or_default().values(self.limits)
        };
        let [limits_before, limits_after] = both.map(limits);
        for ((key, before), (_, after)) in limits_before.into_iter().zip(limits_after) {
            let bounds = [Some(before), Some(after)];
            found.number(PowerKind::Limit, format!("limits.{key}"), bounds);
        }
        found.priority(both.map(|spec| spec.and_then(|spec| spec.priority)));
        let stays = is(|spec| spec.instance_reuse.mode == ReuseMode::Tenant);
        found.flag(PowerKind::InstanceReuse, "keep instances between requests", stays);
        let shows = is(|spec| spec.debug);
        found.flag(PowerKind::Debug, "show clients why its plugins fail", shows);
        let keeps = is(|spec| spec.capture.is_some());
        found.flag(PowerKind::Capture, "keep requests for people to read", keeps);
        let captures = both.map(|spec| spec.and_then(|spec| spec.capture.as_ref()));
        if let [Some(before), Some(after)] = captures {
            // What is not redacted any more is kept.
            let kept = [after, before].map(|capture| texts(&capture.redact_headers));
            found.sets(PowerKind::Capture, "keep the values of headers", kept);
        }
        Some(found)
    }

    fn token(&self, token: &Name) -> Option<Found> {
        let after = &self.after.tokens.get(token)?.spec;
        let before = self.before.tokens.get(token).map(|token| &token.spec);
        // As for tenants. With another secret it may do the same.
        let TokenSpec { role: is, tenants: _, expires_at_ms: _, hash: _ } = after;
        let mut found = Found::new(before.is_none());
        let (was, is) = (before.map(|spec| spec.role), *is);
        if was != Some(is) {
            let text = match was {
                Some(was) => format!("its role is {} (was {})", is.as_str(), was.as_str()),
                None => format!("its role is {}", is.as_str()),
            };
            // The role `read` reads more than `deploy`, and `deploy` changes more than `read`.
            let trend = if was == Some(Role::Admin) { Trend::Less } else { Trend::More };
            found.add(PowerKind::Role, trend, vec![is.as_str().to_owned()], text);
        }
        let both = [before, Some(after)];
        // An admin changes all tenants, and its token names none.
        if is != Role::Admin && was != Some(Role::Admin) {
            let tenants =
                both.map(|spec| spec.map(|spec| texts(&spec.tenants)).unwrap_or_default());
            found.sets(PowerKind::Tenant, "change tenants", tenants);
        }
        found.expires(both.map(|spec| spec.and_then(|spec| spec.expires_at_ms)));
        Some(found)
    }
}

fn pipeline_of<'a>(state: &'a Desired, tenant: &Name, pipeline: &Name) -> Option<&'a PipelineSpec> {
    state.tenants.get(tenant)?.pipelines.get(pipeline).map(|spec| &**spec)
}

/// The keys, each in one line.
fn keys_of(signers: &[Signer]) -> BTreeSet<String> {
    let key = |signer: &Signer| {
        let pem = signer.to_string();
        pem.lines().filter(|line| !line.starts_with('-')).collect()
    };
    signers.iter().map(key).collect()
}

fn texts<T: Display>(items: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

fn named<'a>(versions: impl Iterator<Item = &'a NamedVersion>) -> BTreeSet<String> {
    texts(versions.map(|named| &named.name))
}

/// The services, and for each range of addresses that a service may have one name more.
fn services(granted: &[Destination]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for Destination { scheme, host, port, addresses } in granted {
        let service = format!("{}://{host}:{port}", scheme.name());
        names.extend(addresses.iter().map(|range| format!("{service} at {range}")));
        names.insert(service);
    }
    names
}

fn origins(origins: &Origins) -> BTreeSet<String> {
    texts(origins.iter())
}

fn pages(cors: Option<&CorsSpec>) -> BTreeSet<String> {
    match cors {
        Some(cors) => origins(&cors.origins),
        None => ["the server's cors_origins".to_owned()].into(),
    }
}

fn quota(quota: &QuotaSpec) -> [(&'static str, Option<u32>); 4] {
    let QuotaSpec { requests_per_s, burst, rows_in_flight, plugin_cpu_s_per_minute } = *quota;
    [
        ("requests_per_s", requests_per_s),
        ("burst", burst.or(requests_per_s)),
        ("rows_in_flight", rows_in_flight),
        ("plugin_cpu_s_per_minute", plugin_cpu_s_per_minute),
    ]
}

#[cfg(test)]
mod tests;
