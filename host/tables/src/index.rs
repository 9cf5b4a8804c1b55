//! Finding a row by its key: a table of row numbers, open to the next place.
//!
//! The keys themselves stay in the file. Places are chosen by a hash with a secret of its own, so
//! that the author of a file cannot choose keys which meet.

use std::hash::{BuildHasher, RandomState};

/// Row numbers by the hashes of their keys. At most half of the places are taken.
#[derive(Debug)]
pub(crate) struct Index {
    /// A row number and 1, or 0.
    places: Vec<u32>,
    secret: RandomState,
}

impl Index {
    /// For at most so many rows.
    pub(crate) fn for_rows(rows: usize) -> Self {
        Self { places: vec![0; places_for(rows)], secret: RandomState::new() }
    }

    /// The bytes of an index for so many rows.
    pub(crate) fn bytes_for(rows: usize) -> usize {
        places_for(rows) * size_of::<u32>()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * size_of::<u32>()
    }

    /// The row of this key. `key_of` has the key of a row.
    pub(crate) fn find<'a>(&self, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) -> Option<usize> {
        match self.places[self.place_of(key, key_of)] {
            0 => None,
            row => Some(row as usize - 1),
        }
    }

    /// Add a row. Returns false, and adds nothing, if its key is there already.
    pub(crate) fn insert<'a>(
        &mut self,
        key: &[u8],
        row: usize,
        key_of: impl Fn(usize) -> &'a [u8],
    ) -> bool {
        let place = self.place_of(key, key_of);
        let is_free = self.places[place] == 0;
        if is_free {
            self.places[place] = row as u32 + 1;
        }
        is_free
    }

    /// The place of this key, or the free one where it would be.
    fn place_of<'a>(&self, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) -> usize {
        let last = self.places.len() - 1;
        let mut place = self.secret.hash_one(key) as usize & last;
        loop {
            match self.places[place] {
                0 => return place,
                row if key_of(row as usize - 1) == key => return place,
                _ => place = (place + 1) & last,
            }
        }
    }
}

/// A power of two, of which the rows take at most half.
fn places_for(rows: usize) -> usize {
    (rows + 1).next_power_of_two() * 2
}
