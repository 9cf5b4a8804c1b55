//! Arrays: native work on the elements of tensors, with NumPy's names and rules.
//!
//! Plugins reach this through the `arrays` interface. A plugin sends a program: a list of steps,
//! each of which makes one array of earlier ones. So many operations cost one call of the host, and
//! what lies between them never enters the plugin's memory. Refuses to know wasmtime and budgets:
//! the caller counts memory and time ([`Room`]).
//!
//! Invariants: an operation reserves the memory of an array before it makes it, and asks again and
//! again whether it may go on, about every 65,536 elements; arrays are dense and row-major, as
//! tensors are, and have at most 8 dimensions.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::unnecessary_cast,
    clippy::unnecessary_fallible_conversions,
    clippy::useless_conversion,
    reason = "macros repeat the code for each type of elements"
)]

mod array;
mod boxes;
mod call;
mod cast;
mod create;
mod elementwise;
mod index;
mod math;
mod order;
mod param;
mod product;
mod program;
mod promote;
mod reduce;
mod runs;
mod shapes;

pub use array::{Kind, Room, Stop, aligned};
pub use cast::Cast;
pub use program::{Done, Program, Run};
