//! The limits on the files that plugins open. Pure.
//!
//! They lie in memory, so each is bounded, and all of a tenant are: its assets, and the files that
//! its plugins bring.

use gristmill_core::Name;

use crate::error::ControlError;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetLimits {
    /// Of one asset.
    pub bytes_max: u64,
    /// Of one tenant's assets and plugins' files, with all versions that stay.
    pub tenant_bytes_max: u64,
}

impl AssetLimits {
    /// Check the size of one asset.
    ///
    /// # Errors
    /// [`ControlError::AssetTooLarge`]
    pub(crate) fn check(&self, asset: &Name, bytes: u64) -> Result<(), ControlError> {
        let limit = self.bytes_max;
        match bytes > limit {
            true => Err(ControlError::AssetTooLarge { asset: asset.to_string(), bytes, limit }),
            false => Ok(()),
        }
    }

    /// Check what a tenant would have, against what it `has`.
    ///
    /// # Errors
    /// [`ControlError::TooManyAssetBytes`]: it is too much, and more than before.
    pub(crate) fn check_tenant(
        &self,
        tenant: &Name,
        has: u64,
        wanted: u64,
    ) -> Result<(), ControlError> {
        let limit = self.tenant_bytes_max;
        match wanted > limit && wanted > has {
            true => {
                Err(ControlError::TooManyAssetBytes { tenant: tenant.to_string(), wanted, limit })
            }
            false => Ok(()),
        }
    }
}
