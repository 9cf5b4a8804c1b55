//! Bounds on lists and texts, for both encodings of the protocol.

/// Maximum dimensions of a shape.
pub const DIMENSIONS_MAX: usize = 32;

/// Maximum inputs of a request, and the most outputs that it asks for.
pub const TENSORS_MAX: usize = 1024;

/// The longest name or id of a request, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024;
