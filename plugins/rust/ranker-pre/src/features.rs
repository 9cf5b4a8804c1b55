//! The features of one item, read into a fixed array.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// Features of an item.
pub(crate) const FEATURES: usize = 32;

/// A list of numbers: the first ones, and how many there are.
pub(crate) struct Features {
    first: [f32; FEATURES],
    count: usize,
}

impl Features {
    /// How many numbers the list has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The numbers, if there are [`FEATURES`] of them.
    pub(crate) fn row(&self) -> Option<&[f32; FEATURES]> {
        (self.count == FEATURES).then_some(&self.first)
    }
}

impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Numbers)
    }
}

struct Numbers;

impl<'de> Visitor<'de> for Numbers {
    type Value = Features;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of {FEATURES} numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Features, A::Error> {
        let mut features = Features { first: [0.0; FEATURES], count: 0 };
        while let Some(number) = numbers.next_element()? {
            if let Some(place) = features.first.get_mut(features.count) {
                *place = number;
            }
            features.count += 1;
        }
        Ok(features)
    }
}
