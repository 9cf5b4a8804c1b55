//! A runtime for callers that are not asynchronous.

use crate::error::ClientError;

/// Runs a call to its end on a new runtime. Must not be called from asynchronous code.
///
/// # Errors
/// Those of the call, and [`ClientError::Runtime`].
pub fn block_on<T, E: From<ClientError>>(call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ClientError::Runtime)?;
    let ended = runtime.block_on(call);
    // Do not wait for a name look-up that is still under way.
    runtime.shutdown_background();
    ended
}
