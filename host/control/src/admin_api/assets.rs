//! Putting assets: each is loaded before its release is made.

use futures_util::FutureExt;
use gristmill_core::{Digest, Name};
use gristmill_state::{Change, ChangeOptions};
use gristmill_store::Received;

use crate::admin_api::Control;
use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::load::assets::Payer;
use crate::releases::step::Published;
use crate::uploads::Upload;

impl Control {
    /// Load a file, and keep it as an asset.
    ///
    /// # Errors
    /// There is no such tenant; the file is too large; or as for [`Self::change`].
    pub async fn put_asset(
        &self,
        tenant: &Name,
        asset: &Name,
        file: Received,
        options: ChangeOptions,
    ) -> Result<(Digest, Published), ControlError> {
        let payer = self.payer(tenant)?;
        self.releases.asset_limits.check(asset, file.bytes())?;
        let upload = self.uploads.begin(file.digest()).boxed().await;
        let digest = upload.digest();
        let change = Change::PutAsset { tenant: tenant.clone(), asset: asset.clone(), digest };
        let _uploads = vec![upload.clone()];
        let request = ChangeRequest { _uploads, ..ChangeRequest::one(change, options) };
        let outcome = self.keep_asset((&payer, asset), file, &upload, request).boxed().await;
        self.uploads.end(upload).boxed().await;
        Ok((digest, outcome.map_err(ControlError::logged)?))
    }

    async fn keep_asset(
        &self,
        (payer, asset): (&Payer, &Name),
        file: Received,
        upload: &Upload,
        request: ChangeRequest,
    ) -> Result<Published, ControlError> {
        // Read before the lock is taken, and held until a release names it.
        let turn = self.releases.turns.turn(&request.options.token_scope).await;
        let loaded = self.loader.assets.new_file(payer, &file).await;
        drop(turn);
        let _held = loaded.map_err(|error| ControlError::asset(asset, error))?;
        upload.keep(file).await?;
        self.releases.run(request).await
    }
}
