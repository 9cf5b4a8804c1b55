//! What makes the changes of models that operators ask for over the protocol.

use async_trait::async_trait;
use gristmill_core::Name;
use gristmill_snapshot::Operator;
use gristmill_state::ModelConfig;
use gristmill_transport::Problem;

use super::brought::ModelFile;

/// Makes the changes of models that operators ask for over the protocol. The control plane stands
/// behind it.
#[async_trait]
pub trait ModelRepository: Send + Sync {
    /// Make the change with the rights of the operator's token; with those of the token that the
    /// server was started with if there is none. It is made once this returns.
    ///
    /// # Errors
    /// The model does not exist or cannot be loaded, or the token was changed meanwhile.
    async fn change(
        &self,
        operator: Option<&Operator>,
        model: Name,
        change: ModelChange,
    ) -> Result<(), Problem>;

    /// Why releases of other servers are not seen, in a word, if they are not.
    fn store_trouble(&self) -> Option<&'static str>;
}

/// A change of a model.
#[derive(Debug)]
pub enum ModelChange {
    /// Serve it.
    Load {
        /// Its configuration, in place of the one that it has.
        config: Option<Box<ModelConfig>>,
        /// Its file, in place of the one that it has.
        file: Option<ModelFile>,
    },
    /// Take it out of service.
    Unload,
}
