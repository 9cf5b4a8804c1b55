//! Putting plugins: the signature of each is looked at, and the plugin is loaded once, before its
//! release is made.

use futures_util::FutureExt;
use gristmill_core::{Digest, Name};
use gristmill_state::{AskedChange, ChangeOptions, PluginSignature, check_signer};
use gristmill_store::Received;

use crate::admin_api::Control;
use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::load::assets::Payer;
use crate::releases::step::Published;
use crate::signatures::{FileBytes, find_signers};
use crate::uploads::Upload;

impl Control {
    /// Load a plugin's file, and keep it.
    ///
    /// # Errors
    /// There is no such tenant, or it demands another signature; the plugin cannot be loaded; or as
    /// for [`Self::change`].
    pub async fn put_plugin(
        &self,
        tenant: &Name,
        plugin: &Name,
        (file, signature): (Received, Option<PluginSignature>),
        options: ChangeOptions,
    ) -> Result<(Digest, Published), ControlError> {
        let payer = self.payer(tenant)?;
        let upload = self.uploads.begin(file.digest()).boxed().await;
        let digest = upload.digest();
        let change = AskedChange::PutPlugin {
            tenant: tenant.clone(),
            plugin: plugin.clone(),
            digest,
            signature: signature.map(Box::new),
        };
        let outcome = self.keep_plugin((&payer, plugin), file, &upload, (change, options));
        let outcome = outcome.boxed().await;
        self.uploads.end(upload).boxed().await;
        if outcome.is_err() {
            // The code of a plugin that was compiled and then refused.
            self.releases.forget_unnamed().boxed().await;
        }
        Ok((digest, outcome.map_err(ControlError::logged)?))
    }

    async fn keep_plugin(
        &self,
        (payer, plugin): (&Payer, &Name),
        file: Received,
        upload: &Upload,
        (mut change, options): (AskedChange, ChangeOptions),
    ) -> Result<Published, ControlError> {
        // A file that is not a plugin is not even stored. A plugin is compiled before the lock is
        // taken, so that other changes need not wait, and is held until a release names it.
        let turn = self.releases.turns.turn(&options.token_scope).await;
        let desired = self.desired();
        let changes = std::slice::from_mut(&mut change);
        find_signers(&desired, changes, FileBytes::Upload(&file)).await.map_err(|(_, why)| why)?;
        check_signer(&desired, &change)?;
        let loaded = self.loader.new_plugin(payer, &file).await;
        drop(turn);
        let _held = loaded.map_err(|error| ControlError::plugin(plugin, error))?;
        upload.keep(file).await?;
        let _uploads = vec![upload.clone()];
        let request = ChangeRequest { _uploads, ..ChangeRequest::one(change, options) };
        self.releases.run(request).await
    }
}
