//! Images, worked on natively: decode, resize, crop, draw on, encode, and turn into tensors.
//!
//! Plugins reach this through the `image` interface. The cost of each operation is known before it
//! runs ([`Cost`]), so that the caller can charge for it or refuse it. About every millisecond an
//! operation asks whether it may go on ([`Workspace::check`]). Refuses to know wasmtime, HTTP and
//! budgets.
//!
//! Invariants: nothing is allocated for an image before the width and height in its header were
//! checked against the limits; an operation allocates at most as much as its cost says; a panic of
//! a decoder is an error of that image.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod crops;
mod decode;
mod draw;
mod encode;
mod error;
mod frame;
mod pixels;
mod resize;
mod statistics;
mod tensor;
mod work;

pub use crops::Crops;
pub use decode::{DecodeOptions, Encoded, is_decoding};
pub use draw::{Label, Polygon, Rectangle, Shape};
pub use encode::Encoding;
pub use error::{Bound, ImageError, Stopped};
pub use frame::{Border, Letterbox};
pub use pixels::{Pixels, Rect};
pub use resize::Filter;
pub use statistics::ChannelStatistics;
pub use tensor::{Channels, Layout, TensorOptions};
pub use work::{Cost, Limits, Size, Workspace};
