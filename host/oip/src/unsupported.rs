//! Parts of the protocol that this host refuses, in either encoding.

use crate::error::ParseError;

/// Refuse the tensor called `name` where it is to lie in shared memory.
///
/// # Errors
/// [`ParseError::SharedMemory`] where it is `wanted`.
pub fn no_shared_memory(name: &str, wanted: bool) -> Result<(), ParseError> {
    if wanted { Err(ParseError::SharedMemory(name.into())) } else { Ok(()) }
}

/// Refuse the output called `name` where it is to be classified.
///
/// # Errors
/// [`ParseError::Classification`] where that is `asked`.
pub fn no_classification(name: &str, asked: bool) -> Result<(), ParseError> {
    if asked { Err(ParseError::Classification(name.into())) } else { Ok(()) }
}
