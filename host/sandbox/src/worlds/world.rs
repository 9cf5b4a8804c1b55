//! How one export of a world is called.

use std::sync::Arc;

use wasmtime::component::{ComponentNamedList, Lift, Lower, Resource};

use crate::call::CallState;
use crate::error::CallError;
use crate::request::Context;

/// An exported function of a plugin: its name, its types in the contract, and those of the host.
pub(crate) trait World: 'static {
    /// The function's name.
    const EXPORT: &'static str;

    /// The parameters, in the host's types.
    type Request: Send + 'static;

    /// The answer, in the host's types.
    type Output: Send + 'static;

    /// The function's parameters in the contract.
    type Params: ComponentNamedList + Lower + Send + Sync + 'static;

    /// The function's results in the contract.
    type Results: ComponentNamedList + Lift + Send + Sync + 'static;

    /// Make the parameters, whose resources go into the call's table.
    fn lower<S>(
        context: Arc<Context>,
        request: Self::Request,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError>;

    /// Check the results against the limits, and take their resources out of the call's table.
    ///
    /// # Errors
    /// The plugin's own failure, or an answer that cannot be used.
    fn lift<S>(results: Self::Results, state: &mut CallState<S>)
    -> Result<Self::Output, CallError>;
}

/// Put `value` into the call's table.
pub(crate) fn push<S, T: Send + 'static>(
    state: &mut CallState<S>,
    value: T,
) -> Result<Resource<T>, CallError> {
    state.table.push(value).map_err(|error| CallError::Host(error.into()))
}

/// The handle of something that is lent to the guest for the length of the call.
pub(super) fn lent<T: 'static>() -> Resource<T> {
    Resource::new_borrow(0)
}
