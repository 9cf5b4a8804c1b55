//! A table: where its numbers are, how they are encoded, and how its rows are found.

use std::collections::BTreeMap;

use bytes::Bytes;
use memchr::memchr;

use crate::cells::QUOTE;
use crate::error::{TableError, shown};
use crate::index::Index;

/// Maximum columns of a table, besides that of the keys.
pub(crate) const COLUMNS_MAX: usize = 16 << 10;

/// The memory of a column's name besides its bytes: its entry in the map.
pub(crate) const COLUMN_BYTES: usize = 80;

/// Maximum bytes of a key, as in a store.
pub(crate) const KEY_BYTES_MAX: usize = 1024;

/// Maximum rows of a table.
pub(crate) const ROWS_MAX: usize = 1 << 28;

/// The bytes of a number that leaves a table.
const ELEMENT_BYTES: usize = size_of::<f32>();

/// What a row is found by.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// As it stands in the file, without quotation marks around it.
    Text(&'a str),
    /// The same as its decimal text.
    Number(i64),
}

/// Rows of numbers, each with a key.
#[derive(Debug)]
pub struct Table {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) source: Source,
}

/// Where the numbers of a table are, row by row, and what its keys are.
#[derive(Debug)]
pub(crate) enum Source {
    /// From CSV or Parquet.
    Parsed(Parsed),
    Npy {
        file: Bytes,
        /// Where the numbers begin in the file.
        start: usize,
        kind: Kind,
    },
}

/// What a file was read as whose numbers cannot be used where they lie.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) values: Vec<f32>,
    pub(crate) keys: Keys,
    pub(crate) index: Index,
    pub(crate) columns: BTreeMap<Box<str>, usize>,
    /// The bytes that were reserved for the columns' names.
    pub(crate) columns_bytes: usize,
}

/// The keys of all rows.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The file, if they can be read there.
    pub(crate) text: Bytes,
    /// What stands behind each key that has no quotation mark before it.
    pub(crate) end: u8,
    /// Where the key of each row begins.
    pub(crate) starts: Vec<u32>,
    /// What `text` takes besides the file.
    pub(crate) own_bytes: usize,
}

/// How an `.npy` has its numbers: little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F64,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

impl Table {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns, without that of the keys.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The memory that it takes besides the file.
    pub fn bytes(&self) -> usize {
        match &self.source {
            Source::Parsed(parsed) => parsed.bytes(),
            Source::Npy { .. } => 0,
        }
    }

    /// The places of the columns with these names.
    ///
    /// # Errors
    /// [`TableError::InvalidArgument`] names a column that the table does not have.
    pub fn columns(&self, names: &[String]) -> Result<Vec<usize>, TableError> {
        let Source::Parsed(parsed) = &self.source else {
            return Err(TableError::InvalidArgument(format!(
                "an .npy file has no names of columns: give their number, {}",
                self.width
            )));
        };
        let place = |name: &String| {
            let place = parsed.columns.get(name.as_str()).copied();
            place.ok_or_else(|| TableError::InvalidArgument(parsed.no_column(name)))
        };
        names.iter().map(place).collect()
    }

    /// The row with this key.
    pub fn row(&self, key: Key<'_>) -> Option<usize> {
        match (&self.source, key) {
            (Source::Parsed(parsed), Key::Text(key)) => parsed.row(key),
            (Source::Parsed(parsed), Key::Number(key)) => parsed.row(&key.to_string()),
            (Source::Npy { .. }, Key::Text(key)) => {
                // Only the text that the number itself has, as in the other formats.
                let number = key.parse::<i64>().ok().filter(|number| number.to_string() == key);
                self.row(Key::Number(number?))
            }
            (Source::Npy { .. }, Key::Number(key)) => {
                usize::try_from(key).ok().filter(|row| *row < self.rows)
            }
        }
    }

    /// Write the numbers of a row into `target`, as little-endian float32: all of them, or those of
    /// these columns.
    pub fn copy(&self, row: usize, columns: Option<&[usize]>, target: &mut [u8]) {
        let (bytes, kind) = match &self.source {
            Source::Parsed(parsed) => (bytemuck::cast_slice(&parsed.values), Kind::F32),
            Source::Npy { file, start, kind } => (&file[*start..], *kind),
        };
        let row_bytes = self.width * kind.bytes();
        kind.copy(&bytes[row * row_bytes..][..row_bytes], columns, target);
    }
}

impl Parsed {
    pub(crate) fn bytes(&self) -> usize {
        let values = self.values.capacity() * size_of::<f32>();
        let keys = self.keys.own_bytes + self.keys.starts.capacity() * size_of::<u32>();
        values + keys + self.index.bytes() + self.columns_bytes
    }

    fn row(&self, key: &str) -> Option<usize> {
        let Keys { text, end, starts, .. } = &self.keys;
        self.index.find(key.as_bytes(), |row| Keys::key_at(text, starts[row], *end))
    }

    fn no_column(&self, name: &str) -> String {
        const NAMES_SHOWN_MAX: usize = 16;
        let names = self.columns.keys().take(NAMES_SHOWN_MAX).map(|name| shown(name));
        let mut names = names.collect::<Vec<_>>().join(", ");
        if let Some(more @ 1..) = self.columns.len().checked_sub(NAMES_SHOWN_MAX) {
            names += &format!(" and {more} more");
        }
        format!("it has no column {:?}: its columns are {names}", shown(name))
    }
}

impl Keys {
    /// The key that begins here, up to this byte, or to a quotation mark if one stands before it.
    pub(crate) fn key_at(text: &[u8], start: u32, end: u8) -> &[u8] {
        let (before, rest) = text.split_at(start as usize);
        let end = if before.last() == Some(&QUOTE) { QUOTE } else { end };
        &rest[..memchr(end, rest).unwrap_or(rest.len())]
    }
}

impl Kind {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    fn copy(self, row: &[u8], columns: Option<&[usize]>, target: &mut [u8]) {
        match self {
            Self::F32 if columns.is_none() => target.copy_from_slice(row),
            Self::F32 => convert(row, columns, target, f32::from_le_bytes),
            Self::F64 => convert(row, columns, target, |bytes| f64::from_le_bytes(bytes) as f32),
            Self::I8 => convert(row, columns, target, |bytes| i8::from_le_bytes(bytes).into()),
            Self::U8 => convert(row, columns, target, |bytes| u8::from_le_bytes(bytes).into()),
            Self::I16 => convert(row, columns, target, |bytes| i16::from_le_bytes(bytes).into()),
            Self::U16 => convert(row, columns, target, |bytes| u16::from_le_bytes(bytes).into()),
            Self::I32 => convert(row, columns, target, |bytes| i32::from_le_bytes(bytes) as f32),
            Self::U32 => convert(row, columns, target, |bytes| u32::from_le_bytes(bytes) as f32),
            Self::I64 => convert(row, columns, target, |bytes| i64::from_le_bytes(bytes) as f32),
            Self::U64 => convert(row, columns, target, |bytes| u64::from_le_bytes(bytes) as f32),
        }
    }
}

/// Write each number of a row, or those of these columns, as float32.
fn convert<const N: usize>(
    row: &[u8],
    columns: Option<&[usize]>,
    target: &mut [u8],
    number: impl Fn([u8; N]) -> f32,
) {
    let cells = row.as_chunks::<N>().0;
    let slots = target.as_chunks_mut::<ELEMENT_BYTES>().0.iter_mut();
    match columns {
        None => slots.zip(cells).for_each(|(slot, cell)| *slot = number(*cell).to_le_bytes()),
        Some(columns) => slots
            .zip(columns)
            .for_each(|(slot, column)| *slot = number(cells[*column]).to_le_bytes()),
    }
}
