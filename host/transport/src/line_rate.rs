//! A limit on log lines that anyone can cause. A few are written in each interval; the others are
//! counted.

use std::time::{Duration, Instant};

const LINES_MAX: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(10);

/// Lets a few lines through in each interval.
#[derive(Default)]
pub struct LineRate {
    began: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl LineRate {
    /// If a line may be written at `now`, the number of lines left out since the last one.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= INTERVAL) {
            (self.began, self.written) = (Some(now), 0);
        }
        if self.written == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_instead() {
        let (mut lines, begun) = (LineRate::default(), Instant::now());
        let written = (0..1000).filter_map(|_| lines.take(begun)).collect::<Vec<_>>();
        assert_eq!(written, [0; LINES_MAX as usize]);
        assert_eq!(lines.take(begun + INTERVAL), Some(1000 - u64::from(LINES_MAX)));
        assert_eq!(lines.take(begun + INTERVAL), Some(0));
    }
}
