//! The features of one item, read into a fixed array.
//!
//! Microseconds of CPU time for a body of 16 items (4.8 KB, 512 numbers), in a warm instance and in
//! a fresh one, which also touches its memory for the first time:
//!
//! | | warm | fresh |
//! |---|---|---|
//! | serde_json, a `Vec<f32>` for each item | 27 | 31 |
//! | serde_json, a fixed array for each item | 23 | 28 |
//! | simd-json, a `Vec<f32>` for each item; 59 KB more code | 15 | 38 |
//! | this | 17 | 28 |

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

/// Features of an item.
pub(crate) const FEATURES: usize = 32;

/// Numbers of so many digits, and powers of ten up to that, are exact in an `f64`.
const DIGITS_MAX: usize = 15;

const POWERS: [f64; DIGITS_MAX + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A list of numbers: the first ones, and how many there are.
pub(crate) struct Features {
    first: [f32; FEATURES],
    count: usize,
}

impl Features {
    const EMPTY: Self = Self { first: [0.0; FEATURES], count: 0 };

    /// How many numbers the list has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The numbers, if there are [`FEATURES`] of them.
    pub(crate) fn row(&self) -> Option<&[f32; FEATURES]> {
        (self.count == FEATURES).then_some(&self.first)
    }

    fn push(&mut self, number: f32) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = number;
        }
        self.count += 1;
    }

    /// The numbers of a list in valid JSON; none if it has anything but short numbers.
    fn short(json: &str) -> Option<Self> {
        let mut features = Self::EMPTY;
        let mut rest = json.as_bytes().strip_prefix(b"[")?;
        loop {
            let (number, tail) = short_number(rest.trim_ascii_start())?;
            features.push(number);
            match tail.trim_ascii_start().split_first()? {
                (b',', tail) => rest = tail,
                (b']', _) => return Some(features),
                _ => return None,
            }
        }
    }
}

impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        if let Some(features) = Self::short(json) {
            return Ok(features);
        }
        let numbers: Vec<f32> = serde_json::from_str(json).map_err(D::Error::custom)?;
        let mut features = Self::EMPTY;
        numbers.into_iter().for_each(|number| features.push(number));
        Ok(features)
    }
}

/// The number with which `json` begins, and the rest; none if it has an exponent or many digits.
fn short_number(json: &[u8]) -> Option<(f32, &[u8])> {
    let (is_negative, rest) = match json.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, json),
    };
    let mut significand = 0_u64;
    let (mut digits, mut decimals) = (0, None);
    let mut rest = rest;
    while let Some((byte, tail)) = rest.split_first() {
        match byte {
            b'0'..=b'9' => {
                significand = significand.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                digits += 1;
            }
            b'.' => decimals = Some(digits),
            b'e' | b'E' => return None,
            _ => break,
        }
        rest = tail;
    }
    if digits == 0 || digits > DIGITS_MAX {
        return None;
    }
    let value = significand as f64 / POWERS[decimals.map_or(0, |whole| digits - whole)];
    Some((if is_negative { -value } else { value } as f32, rest))
}
