//! Which web pages of other origins may call.

use gristmill_core::Origins;

/// Which web pages of other origins may call the data plane and read its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// The origins of the pages.
    pub origins: Origins,
    /// The names of headers that their requests may have, besides those that the API reads.
    pub headers: Vec<String>,
    /// The seconds for which a browser may keep the answer to a preflight.
    pub max_age_s: u32,
}

impl Cors {
    /// [`Self::max_age_s`], if nothing else is given. A browser keeps an answer for at most two
    /// hours (Chromium) or a day (Firefox).
    pub const MAX_AGE_S: u32 = 600;

    /// Pages of these origins, with no other headers than those that the API reads.
    pub fn of(origins: Origins) -> Self {
        Self { origins, headers: Vec::new(), max_age_s: Self::MAX_AGE_S }
    }
}
