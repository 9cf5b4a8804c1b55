//! What comes with a change besides its content.

use crate::conditions::Conditions;
use crate::reach::Reach;
use crate::release::change::ReleaseNote;

/// The terms of a change: when it may be made, and what its author may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// They must hold for the subject of the change.
    pub conditions: Conditions,
    /// The release keeps it.
    pub note: ReleaseNote,
    /// Whether the release is made without running samples.
    pub skips_samples: bool,
    /// What the author may change.
    pub reach: Reach,
}
