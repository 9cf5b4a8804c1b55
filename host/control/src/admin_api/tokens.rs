//! Admin tokens: the hash of a secret comes with the change, the secret itself stays with the
//! caller.

use gristmill_core::{KeyHash, Name};
use gristmill_state::{AskedChange, ChangeOptions, TokenDocument};

use crate::admin_api::Control;
use crate::error::ControlError;
use crate::releases::step::Published;

impl Control {
    /// Put an admin token. `hash` is that of the secret that a new token gets. Also returns whether
    /// the token has this secret: one that was there before keeps its own.
    ///
    /// # Errors
    /// As for [`Self::change`].
    pub async fn put_token(
        &self,
        token: &Name,
        document: TokenDocument,
        hash: KeyHash,
        options: ChangeOptions,
    ) -> Result<(Published, bool), ControlError> {
        let put = AskedChange::PutToken { token: token.clone(), document, hash };
        let published = self.change(put, options).await?;
        let is_new = self.desired().tokens.get(token).is_some_and(|token| token.spec.hash == hash);
        Ok((published, is_new))
    }
}
