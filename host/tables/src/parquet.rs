//! Reading Parquet: flat columns of numbers, of which one has the keys.
//!
//! The file is read here rather than by a library, because memory and time must be bounded by what
//! it has, not by what it says: each size that it says is checked or counted before it is taken,
//! and no page is larger than a bound. Codecs and encodings are those that pandas, Polars and Spark
//! write without being told otherwise.

mod bits;
mod cells;
mod codec;
mod column;
mod footer;
mod keys;
mod kind;
mod reused;
mod thrift;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;

use self::cells::Cell;
use self::column::{Chunks, wrong};
use self::footer::Footer;
use self::keys::Collected;
use self::kind::Kind;
use crate::error::{TableError, Work, shown};
use crate::index::Index;
use crate::table::{COLUMN_BYTES, Parsed, Source, Table};

/// The head of a file, and that of its first page or of its footer, which no text has.
const BEGIN: &[u8] = b"PAR1\x15";

pub(crate) fn is_parquet(file: &[u8]) -> bool {
    file.starts_with(BEGIN)
}

pub(crate) fn read(file: &Bytes, work: &mut Work<'_>) -> Result<Table, TableError> {
    let footer = Footer::read(file, work)?;
    let key = keys::column(&footer, work)?;
    let names = footer.columns.iter().map(|column| column.name.len() + COLUMN_BYTES);
    let columns_bytes = names.sum();
    (work.reserve)(columns_bytes)?;
    let columns = columns_of(&footer, key)?;

    let (rows, width) = (footer.groups.iter().sum::<usize>(), columns.len());
    let bytes = rows * width * size_of::<f32>() + rows * size_of::<u32>();
    (work.reserve)(bytes + Index::bytes_for(rows))?;
    let mut chunks = Chunks::default();
    let mut collected = Collected::for_rows(rows);
    for part in footer.parts(key) {
        let mut take =
            |cell: Option<Cell<'_>>, work: &mut Work<'_>| collected.add(cell, part.column, work);
        chunks.read(file, &part, work, &mut take)?;
    }
    let mut values = vec![0.0; rows * width];
    let numbers = (0..footer.columns.len()).filter(|column| *column != key);
    for (place, column) in numbers.enumerate() {
        let mut slots = values.chunks_exact_mut(width).enumerate();
        for part in footer.parts(column) {
            let mut take = |cell: Option<Cell<'_>>, _: &mut Work<'_>| {
                if let Some((row, slots)) = slots.next() {
                    let number = number_of(cell, part.column.kind);
                    slots[place] = number.ok_or_else(|| {
                        wrong(part.column, format_args!("has {TOO_LARGE} in row {row}"))
                    })?;
                }
                Ok(())
            };
            chunks.read(file, &part, work, &mut take)?;
        }
    }
    let (keys, index) = collected.finish();
    let parsed = Parsed { values, keys, index, columns, columns_bytes };
    Ok(Table { rows, width, source: Source::Parsed(parsed) })
}

const TOO_LARGE: &str = "a number that is infinite, or over the range of float32,";

/// The number of a cell. None: it is not finite.
fn number_of(cell: Option<Cell<'_>>, kind: Kind) -> Option<f32> {
    match cell {
        Some(Cell::Bits(bits)) => Some(kind.number(bits)).filter(|number| !number.is_infinite()),
        // pandas makes null of NaN when it writes.
        Some(Cell::Text(_)) | None => Some(f32::NAN),
    }
}

/// The columns of numbers by name, with their places among them.
fn columns_of(footer: &Footer<'_>, key: usize) -> Result<BTreeMap<Box<str>, usize>, TableError> {
    let mut columns = BTreeMap::new();
    for (at, column) in footer.columns.iter().enumerate() {
        match (at == key, column.kind) {
            (true, Kind::Text | Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64) => continue,
            (true, _) => {
                return Err(wrong(
                    column,
                    format_args!(
                        "is the key, because it is the first or pandas' index, but has neither \
                         texts nor whole numbers: write the column of the keys first"
                    ),
                ));
            }
            (false, Kind::Text) => {
                return Err(wrong(
                    column,
                    format_args!(
                        "has texts: a table has numbers besides its keys, which are the first \
                         column or pandas' index; leave it out"
                    ),
                ));
            }
            (false, _) => {}
        }
        let place = columns.len();
        match columns.entry(Box::<str>::from(column.name)) {
            Entry::Vacant(entry) => entry.insert(place),
            Entry::Occupied(_) => {
                let name = shown(column.name);
                return Err(TableError::Malformed(format!("two columns are named {name:?}")));
            }
        };
    }
    Ok(columns)
}
