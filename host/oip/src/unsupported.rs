//! Parts of the protocol that this host refuses, in either encoding.

use crate::error::ParseError;

/// Refuse shared memory for the tensor called `name`.
///
/// # Errors
/// [`ParseError::SharedMemory`] if it is `wanted`.
pub fn no_shared_memory(name: &str, wanted: bool) -> Result<(), ParseError> {
    if wanted { Err(ParseError::SharedMemory(name.into())) } else { Ok(()) }
}
