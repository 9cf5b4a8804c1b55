//! Checks of a planned release against what is loaded. All are quick: they are made under the lock.
//!
//! Invariant: the compiled plugins of a tenant take at most `tenant_compiled_bytes_max` of the
//! disk, and the files that they open at most `tenant_asset_bytes_max` of the memory. A release
//! that lets them grow beyond it is refused.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::Name;
use gristmill_snapshot::{PaddingProof, Snapshot};
use gristmill_state::{Change, Desired, Model, Plan, Serving, check_users};

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::load::at_hand::AtHand;
use crate::load::error::LoadError;
use crate::releases::Releases;

impl Releases {
    /// Refuse models that do not fit their users any more.
    pub(super) fn check_fit(
        serving: &Serving,
        plan: &Plan,
        at_hand: &AtHand,
    ) -> Result<(), ControlError> {
        let put = plan.changes.iter().filter_map(|change| match change {
            Change::PutModel { model, .. } => Some(model),
            _ => None,
        });
        for name in put {
            let new = plan.desired.models.get(name);
            let new = new.map(|model| at_hand.model(name, model, model.digest));
            if let Some(Ok(new)) = new {
                check_users(&serving.snapshot, name, &new, [&serving.desired, &plan.desired])?;
            }
        }
        Ok(())
    }

    /// Refuse what a configuration says of padding, if the release brings it and it is not true of
    /// the model. Once it was accepted, the model is loaded without padding then, so that another
    /// verdict takes no model out of service.
    pub(super) fn check_padding(
        before: &Desired,
        plan: &Plan,
        at_hand: &AtHand,
    ) -> Result<(), ControlError> {
        let put = plan.changes.iter().filter_map(|change| match change {
            Change::PutModel { model, .. }
            | Change::PutModelConfig { model, .. }
            | Change::LoadModel { model } => Some(model),
            _ => None,
        });
        for name in put {
            let Some(new) = plan.desired.models.get(name) else { continue };
            let is_accepted = before.models.get(name).is_some_and(|old| {
                let (a, b) = (&old.config, &new.config);
                !old.unloaded && (old.digest, &a.pad, &a.cut) == (new.digest, &b.pad, &b.cut)
            });
            let Ok(served) = at_hand.model(name, new, new.digest) else { continue };
            let mut proofs = served.padding_proofs.iter();
            if let Some(why) = proofs.find_map(PaddingProof::refutation).filter(|_| !is_accepted) {
                return Err(ControlError::model(name, LoadError::Unproven(why.to_owned())));
            }
        }
        Ok(())
    }

    /// Refuse a plugin if its tenant would have more compiled code on disk, and too much.
    pub(super) async fn check_compiled(
        &self,
        before: &Desired,
        plan: &Plan,
    ) -> Result<(), ControlError> {
        let (plugins, limit) = (&self.loader.plugins, self.compiled_bytes_max);
        // The last plugin of each tenant: they are counted together.
        let mut put = BTreeMap::new();
        for change in &plan.changes {
            if let Change::PutPlugin { tenant, plugin, .. }
            | Change::PutPluginVersion { tenant, plugin, .. } = change
            {
                put.insert(tenant, plugin);
            }
        }
        for (tenant, plugin) in put {
            let cannot = |error: LoadError| ControlError::plugin(plugin, error.into());
            let wanted = plugins.compiled_bytes(&plan.desired, tenant).await.map_err(cannot)?;
            if wanted <= limit {
                continue;
            }
            let has = plugins.compiled_bytes(before, tenant).await.map_err(cannot)?;
            if wanted > has {
                let (tenant, plugin) = (tenant.to_string(), plugin.to_string());
                return Err(ControlError::TooMuchCompiled { tenant, plugin, wanted, limit });
            }
        }
        Ok(())
    }

    /// Refuse files that plugins open, if their tenant would have more of them, and too much.
    pub(super) fn check_assets(
        &self,
        before: &Serving,
        plan: &Plan,
        at_hand: &AtHand,
        after: &Snapshot,
    ) -> Result<(), ControlError> {
        let mut tenants = BTreeSet::new();
        for change in &plan.changes {
            let (Some(tenant), Some(file)) = (change.tenant(), change.blob()) else { continue };
            let Some(owner) = plan.desired.tenants.get(tenant) else { continue };
            let key = ((tenant.clone(), owner.since), file);
            if let Some(source) = at_hand.assets_held(&key) {
                return Err(ControlError::AssetsHeld { tenant: tenant.to_string(), source });
            }
            tenants.insert(tenant);
        }
        for name in tenants {
            let bytes = |snapshot: &Snapshot| {
                snapshot.tenants.get(name).map_or(0, |tenant| tenant.asset_bytes())
            };
            self.asset_limits.check_tenant(name, bytes(&before.snapshot), bytes(after))?;
        }
        Ok(())
    }

    /// The unloaded models whose new files are not proven. A single model was proven when it was
    /// uploaded.
    ///
    /// # Errors
    /// A model is known to fail.
    pub(super) fn unproven_models(
        request: &ChangeRequest,
        plan: &Plan,
        at_hand: &AtHand,
    ) -> Result<Vec<(Name, Model)>, ControlError> {
        let mut unproven = Vec::new();
        for change in plan.changes.iter().filter(|_| request.is_list()) {
            let Change::PutModel { model: name, .. } = change else { continue };
            let Some(model) = plan.desired.models.get(name).filter(|model| model.unloaded) else {
                continue;
            };
            match at_hand.proof(name, model) {
                Some(proof) => proof.map_err(|error| ControlError::model(name, error))?,
                None => unproven.push((name.clone(), model.clone())),
            }
        }
        Ok(unproven)
    }
}
