//! The footer of a file: its columns, and where their parts lie.
//!
//! It is read twice: the first time finds the lists in it, so that their order is of no matter.

use std::ops::Range;

use super::kind::{Element, Kind};
use super::thrift::{Reader, Type};
use crate::error::{TableError, Work, shown};
use crate::table::{COLUMNS_MAX, ROWS_MAX};

/// A file begins and ends with it.
const MAGIC: &[u8] = b"PAR1";

/// What follows the footer: its length, and `MAGIC`.
const END_BYTES: usize = 8;

/// Maximum bytes of a footer. That of a hundred columns in a hundred parts has about a mebibyte.
const FOOTER_BYTES_MAX: usize = 16 << 20;

/// Minimum bytes of what a footer says of a chunk.
const CHUNK_BYTES_MIN: usize = 12;

/// What a file says of itself.
#[derive(Debug)]
pub(super) struct Footer<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// The rows of each group.
    pub(super) groups: Vec<usize>,
    /// Of the columns of the first group, then of those of the second.
    pub(super) chunks: Vec<Chunk>,
    /// What pandas wrote for itself, as JSON.
    pub(super) pandas: Option<&'a [u8]>,
}

#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// Whether its numbers may be absent.
    pub(super) is_optional: bool,
}

/// A column's part of a group: its pages.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Where it lies in the file.
    start: u32,
    bytes: u32,
    pub(super) codec: u8,
}

impl Chunk {
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.bytes as usize
    }
}

/// A column's part of a group, with what is known of it.
pub(super) struct ColumnChunk<'f> {
    pub(super) column: &'f Column<'f>,
    pub(super) chunk: &'f Chunk,
    pub(super) rows: usize,
}

impl<'a> Footer<'a> {
    /// # Errors
    /// It is not a footer, or not one of rows of numbers.
    pub(super) fn read(file: &'a [u8], work: &mut Work<'_>) -> Result<Self, TableError> {
        let bytes = bytes_of(file)?;
        let lists = Lists::find(bytes).ok_or_else(broken)?;
        (work.check)()?;
        let columns = columns_of(lists.schema.ok_or_else(broken)?, work)?;
        let mut footer = Self { columns, groups: Vec::new(), chunks: Vec::new(), pandas: None };
        if let Some(groups) = lists.groups {
            footer.read_groups(groups, file.len() - END_BYTES, work)?;
        }
        if let Some(entries) = lists.entries {
            footer.pandas = pandas_of(entries).ok_or_else(broken)?;
        }
        Ok(footer)
    }

    /// The parts of a column.
    pub(super) fn parts(&self, column: usize) -> impl Iterator<Item = ColumnChunk<'_>> {
        let chunks = self.chunks.iter().skip(column).step_by(self.columns.len());
        let column = &self.columns[column];
        self.groups.iter().zip(chunks).map(move |(rows, chunk)| ColumnChunk {
            column,
            chunk,
            rows: *rows,
        })
    }

    fn read_groups(
        &mut self,
        mut list: Reader<'a>,
        end: usize,
        work: &mut Work<'_>,
    ) -> Result<(), TableError> {
        let width = self.columns.len();
        let groups = list.structs().ok_or_else(broken)?;
        let chunks = groups * width;
        if chunks * CHUNK_BYTES_MIN > list.rest().len() {
            return Err(broken());
        }
        (work.reserve)(chunks * size_of::<Chunk>() + groups * size_of::<usize>())?;
        self.chunks.reserve_exact(chunks);
        self.groups.reserve_exact(groups);
        let mut all_rows = 0_usize;
        for _ in 0..groups {
            (work.check)()?;
            let rows = group_of(&mut list, width, end, &mut self.chunks).ok_or_else(broken)?;
            all_rows = all_rows.saturating_add(rows);
            if all_rows > ROWS_MAX {
                return Err(TableError::Malformed(format!(
                    "it has {all_rows} rows; a table has at most {ROWS_MAX}"
                )));
            }
            self.groups.push(rows);
        }
        Ok(())
    }
}

fn broken() -> TableError {
    TableError::Malformed(
        "its Parquet footer is broken, encrypted, or of a file that is in several parts: write it \
         anew, as one file"
            .into(),
    )
}

/// The bytes of the footer.
fn bytes_of(file: &[u8]) -> Result<&[u8], TableError> {
    let end = file.strip_suffix(MAGIC).and_then(|file| file.split_last_chunk());
    let Some((before, length)) = end else {
        return Err(TableError::Malformed(
            "it begins as a Parquet file, but its end is missing: upload the whole file".into(),
        ));
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > FOOTER_BYTES_MAX {
        return Err(TableError::Malformed(format!(
            "its Parquet footer has {length} bytes; at most {FOOTER_BYTES_MAX} are read: write it \
             with larger row groups"
        )));
    }
    let start = before.len().checked_sub(length).filter(|start| *start >= MAGIC.len());
    Ok(&before[start.ok_or_else(broken)?..])
}

/// Where the lists of a footer begin.
#[derive(Default)]
struct Lists<'a> {
    schema: Option<Reader<'a>>,
    groups: Option<Reader<'a>>,
    entries: Option<Reader<'a>>,
}

impl<'a> Lists<'a> {
    fn find(footer: &'a [u8]) -> Option<Self> {
        let mut found = Self::default();
        Reader::new(footer).fields(|reader, id, kind| {
            match (id, kind) {
                (2, Type::List) => found.schema = Some(*reader),
                (4, Type::List) => found.groups = Some(*reader),
                (5, Type::List) => found.entries = Some(*reader),
                _ => {}
            }
            Some(false)
        })?;
        Some(found)
    }
}

fn columns_of<'a>(
    mut list: Reader<'a>,
    work: &mut Work<'_>,
) -> Result<Vec<Column<'a>>, TableError> {
    let elements = list.structs().ok_or_else(broken)?;
    // The first is the row.
    let row = Element::read(&mut list).ok_or_else(broken)?;
    let columns = row.children.ok_or_else(broken)?;
    if !(2..=COLUMNS_MAX + 1).contains(&columns) {
        return Err(TableError::Malformed(format!(
            "it has {columns} columns: a table has one of keys, and 1 to {COLUMNS_MAX} of numbers"
        )));
    }
    if columns >= elements {
        return Err(broken());
    }
    (work.reserve)(columns * size_of::<Column<'_>>())?;
    let mut found = Vec::with_capacity(columns);
    for _ in 0..columns {
        let element = Element::read(&mut list).ok_or_else(broken)?;
        let name = str::from_utf8(element.name).map_err(|_| broken())?;
        let kind = element.kind().map_err(|what| {
            TableError::Malformed(format!(
                "column {:?} has {what}: a table has numbers besides its keys; cast it to a \
                 number, or leave it out",
                shown(name)
            ))
        })?;
        found.push(Column { name, kind, is_optional: element.is_optional() });
    }
    Ok(found)
}

/// Add the chunks of a group. Returns its rows.
fn group_of(
    list: &mut Reader<'_>,
    width: usize,
    end: usize,
    chunks: &mut Vec<Chunk>,
) -> Option<usize> {
    let (mut rows, mut count) = (None, None);
    list.fields(|reader, id, kind| {
        match (id, kind) {
            (1, Type::List) if count.is_none() => {
                let columns = reader.structs().filter(|columns| *columns == width)?;
                for _ in 0..columns {
                    chunks.push(chunk_of(reader, end)?);
                }
                count = Some(columns);
            }
            (3, Type::Int) => rows = Some(reader.int()?),
            _ => return Some(false),
        }
        Some(true)
    })?;
    count.and(rows)
}

fn chunk_of(reader: &mut Reader<'_>, end: usize) -> Option<Chunk> {
    let mut chunk = None;
    reader.fields(|reader, id, kind| match (id, kind) {
        // It is in another file.
        (1, Type::Binary) => None,
        (3, Type::Struct) => {
            chunk = Some(place_of(reader, end)?);
            Some(true)
        }
        _ => Some(false),
    })?;
    chunk
}

fn place_of(reader: &mut Reader<'_>, end: usize) -> Option<Chunk> {
    let (mut codec, mut bytes, mut data, mut dictionary) = (None, None, None, None);
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (4, Type::Int) => codec = Some(reader.int()?),
            (7, Type::Int) => bytes = Some(reader.int()?),
            (9, Type::Int) => data = Some(reader.int::<u32>()?),
            (11, Type::Int) => dictionary = Some(reader.int::<u32>()?),
            _ => return Some(false),
        }
        Some(true)
    })?;
    // Some writers say 0 for none: of a dictionary, and pyarrow of data if there are no rows.
    let start = dictionary.into_iter().chain(data).filter(|at| *at > 0).min()?;
    let chunk = Chunk { start, bytes: bytes?, codec: codec? };
    let range = chunk.range();
    (range.start >= MAGIC.len() && range.end <= end).then_some(chunk)
}

/// What pandas wrote, if the file has it.
fn pandas_of(mut list: Reader<'_>) -> Option<Option<&[u8]>> {
    let mut found = None;
    for _ in 0..list.structs()? {
        let (mut key, mut value) = (None, None);
        list.fields(|reader, id, kind| {
            match (id, kind) {
                (1, Type::Binary) => key = Some(reader.binary()?),
                (2, Type::Binary) => value = Some(reader.binary()?),
                _ => return Some(false),
            }
            Some(true)
        })?;
        if key == Some(b"pandas") {
            found = value;
        }
    }
    Some(found)
}
