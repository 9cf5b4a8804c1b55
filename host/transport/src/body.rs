//! Bodies: reading those of requests within bounds on bytes and time, and sending those of answers.
//!
//! Invariant: reading a body fills memory in proportion to the bytes that have arrived, never to
//! the length that it claims. The one exception is a large body of known length (`whole`): its
//! buffer is made in advance, and the tenant's budget bounds what is promised to such bodies.

mod drain;
mod hold;
mod lent;
mod plan;
mod read;
mod response;
mod turns;
mod whole;

pub use drain::finish;
pub use hold::{count, held, try_held, try_reserved, with_held};
pub use lent::{Lender, Lent};
pub use plan::ReadPlan;
pub use read::read;
pub use response::{Answer, AnswerEnd, ResponseBody, answer_of};
pub use turns::Turns;
#[cfg(test)]
pub(crate) use whole::POOLED_BYTES_MIN;
