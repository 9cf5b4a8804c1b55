//! The column that has the keys, and the keys as texts.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::cells::Cell;
use super::column::wrong;
use super::footer::{Column, Footer};
use super::kind::Kind;
use crate::error::{TableError, Work, shown};
use crate::index::Index;
use crate::table::{KEY_BYTES_MAX, Keys};

/// Maximum bytes of all keys, whose places have 32 bits.
const KEYS_BYTES_MAX: usize = 1 << 30;

/// The memory for keys grows by this, or by half.
const GROWTH_BYTES_MIN: usize = 64 << 10;

/// What stands behind each key: a byte that no text has.
const END: u8 = 0xff;

/// The memory that the list of an index takes for each byte of its JSON, at most: twice a slice for
/// an item of two bytes, because the list doubles.
const MEMORY_FOR_JSON: usize = 16;

/// What pandas says of a table's index.
#[derive(Deserialize)]
struct Pandas<'a> {
    /// Names, or ranges, which are no columns. They stay in the file.
    #[serde(borrow)]
    index_columns: Vec<&'a RawValue>,
}

/// The column of the keys: pandas' index if the file has one, otherwise the first.
pub(super) fn column(footer: &Footer<'_>, work: &mut Work<'_>) -> Result<usize, TableError> {
    let wrong = |why: String| Err(TableError::Malformed(why));
    let Some(json) = footer.pandas else { return Ok(0) };
    (work.reserve)(json.len().saturating_mul(MEMORY_FOR_JSON))?;
    let broken = |_| {
        let why = "what pandas wrote about its index is broken: write the file anew";
        TableError::Malformed(why.into())
    };
    let pandas = serde_json::from_slice::<Pandas<'_>>(json).map_err(broken)?;
    let columns = pandas.index_columns.iter().map(|column| column.get());
    let mut names = columns.filter(|column| column.starts_with('"'));
    let Some(name) = names.next() else { return Ok(0) };
    let name = serde_json::from_str::<String>(name).map_err(broken)?;
    if names.next().is_some() {
        return wrong(
            "its pandas index has several columns: a table has one key; set_index(\"id\") chooses \
             it"
            .into(),
        );
    }
    if name.starts_with("__index_level_") {
        return wrong(
            "its pandas index has no name: name it with frame.index.name = \"id\" if it is the \
             key, or leave it out with to_parquet(path, index=False)"
                .into(),
        );
    }
    let place = footer.columns.iter().position(|column| column.name == name);
    place.ok_or_else(|| {
        let name = shown(&name);
        TableError::Malformed(format!("its pandas index {name:?} is no column: write it anew"))
    })
}

/// Keys, one after another, with their index.
pub(super) struct Collected {
    text: Vec<u8>,
    starts: Vec<u32>,
    index: Index,
}

impl Collected {
    /// The caller has reserved the memory of places and index.
    pub(super) fn for_rows(rows: usize) -> Self {
        let (starts, index) = (Vec::with_capacity(rows), Index::for_rows(rows));
        Self { text: Vec::new(), starts, index }
    }

    /// Add the key of the next row.
    pub(super) fn add(
        &mut self,
        cell: Option<Cell<'_>>,
        column: &Column<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), TableError> {
        let row = self.starts.len();
        let mut number = Decimal::default();
        let key = match cell {
            Some(Cell::Text(text)) => text,
            Some(Cell::Bits(bits)) => number.of(column.kind, bits),
            None => return Err(wrong(column, format_args!("has no key in row {row}"))),
        };
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            let bytes = key.len();
            return Err(wrong(
                column,
                format_args!(
                    "has a key of {bytes} bytes in row {row}: must be 1 to {KEY_BYTES_MAX}"
                ),
            ));
        }
        let Ok(text) = str::from_utf8(key) else {
            return Err(wrong(column, format_args!("has a key that is not UTF-8, in row {row}")));
        };
        self.make_room(key.len() + 1, work)?;
        let start = self.text.len();
        let (kept, starts) = (&self.text, &self.starts);
        let key_of = |row: usize| Keys::key_at(kept, starts[row], END);
        if !self.index.insert(key, row, key_of) {
            let key = shown(text);
            return Err(wrong(
                column,
                format_args!("has the key {key:?} in row {row}, and in an earlier one"),
            ));
        }
        self.text.extend_from_slice(key);
        self.text.push(END);
        self.starts.push(start as u32);
        Ok(())
    }

    fn make_room(&mut self, bytes: usize, work: &mut Work<'_>) -> Result<(), TableError> {
        let (length, capacity) = (self.text.len(), self.text.capacity());
        if length + bytes <= capacity {
            return Ok(());
        }
        if length + bytes > KEYS_BYTES_MAX {
            return Err(TableError::Malformed(format!(
                "its keys have more than {KEYS_BYTES_MAX} bytes in all"
            )));
        }
        let more = (capacity / 2).max(GROWTH_BYTES_MIN);
        (work.reserve)(more)?;
        self.text.reserve_exact(capacity - length + more);
        Ok(())
    }

    pub(super) fn finish(mut self) -> (Keys, Index) {
        self.text.shrink_to_fit();
        self.starts.shrink_to_fit();
        let own_bytes = self.text.capacity();
        (Keys { text: self.text.into(), end: END, starts: self.starts, own_bytes }, self.index)
    }
}

/// A whole number as a text.
#[derive(Default)]
struct Decimal(String);

impl Decimal {
    fn of(&mut self, kind: Kind, bits: u64) -> &[u8] {
        if let Some(number) = kind.whole(bits) {
            let _ = write!(self.0, "{number}");
        }
        self.0.as_bytes()
    }
}
