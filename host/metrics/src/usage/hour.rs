//! The hours by which usage is summed, in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An hour, written as `2026-11-25T14`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour(u64);

/// A text that is not an [`Hour`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an hour such as 2026-11-25T14, in UTC")]
pub struct InvalidHour(String);

impl Hour {
    /// The hour of this time.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_secs() / 3600)
    }

    /// The hour so many hours before this one.
    pub fn before(self, hours: u64) -> Self {
        Self(self.0.saturating_sub(hours))
    }

    /// The hours from this one to `last`, both included.
    pub fn count_to(self, last: Self) -> u64 {
        (last.0 + 1).saturating_sub(self.0)
    }

    /// The hours from this one to `last`, both included.
    pub(crate) fn to(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = UNIX_EPOCH + Duration::from_secs(self.0 * 3600);
        let text = humantime::format_rfc3339_seconds(begin).to_string();
        f.write_str(text.split(':').next().unwrap_or_default())
    }
}

impl FromStr for Hour {
    type Err = InvalidHour;

    fn from_str(text: &str) -> Result<Self, InvalidHour> {
        let invalid = || InvalidHour(text.chars().take(80).collect());
        let time = humantime::parse_rfc3339(&format!("{text}:00:00Z")).map_err(|_| invalid())?;
        let hour = Self::of(time);
        // Other ways to write the same hour are not taken, because files have these names.
        if hour.to_string() == text { Ok(hour) } else { Err(invalid()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Hour;

    #[test]
    fn an_hour_is_written_as_it_is_read() {
        let hour: Hour = "2026-11-25T14".parse().unwrap();
        assert_eq!(hour.to_string(), "2026-11-25T14");
        assert_eq!(hour.before(15).to_string(), "2026-11-24T23");
        assert_eq!(hour.before(2).count_to(hour), 3);
        for bad in ["", "2026-11-25", "2026-11-25T24", "2026-11-25T14:30", "x", "2026-11-25T1"] {
            let error = bad.parse::<Hour>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?} is not an hour such as")), "{error}");
        }
    }
}
