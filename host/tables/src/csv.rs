//! Reading CSV: a heading that names the columns, then a key and its numbers in each line.
//!
//! The keys stay in the file, so none has a quotation mark, which would stand there twice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use memchr::{memchr, memchr_iter};

use crate::cells::{Cell, CellError, Cells, QUOTE};
use crate::error::{Check, TableError, Work, shown};
use crate::index::Index;
use crate::table::{
    COLUMN_BYTES, COLUMNS_MAX, KEY_BYTES_MAX, Keys, Parsed, ROWS_MAX, Source, Table,
};

/// What stands behind a key that is not quoted.
const END: u8 = b',';

/// Maximum bytes of a line.
const LINE_BYTES_MAX: usize = 1 << 20;

/// How many bytes are read between two checks: about a millisecond of work.
const BETWEEN_CHECKS: usize = 64 << 10;

/// How many bytes are searched for the ends of lines between two checks.
const COUNTED_BYTES: usize = 4 << 20;

/// Some programs write it before the first line.
const MARK: &[u8] = "\u{feff}".as_bytes();

pub(crate) fn read(file: Bytes, work: &mut Work<'_>) -> Result<Table, TableError> {
    let mut lines = Lines::of(&file);
    let Some(heading) = lines.next_line(work.check)? else {
        return Err(TableError::Malformed(format!("it is empty: {FORM}")));
    };
    let commas = memchr_iter(b',', heading.text.as_bytes()).count();
    let columns_bytes = heading.text.len() + commas.min(COLUMNS_MAX) * COLUMN_BYTES;
    (work.reserve)(columns_bytes)?;
    let columns = columns_of(&heading)?;
    let width = columns.len();

    let rows_max = count_rows(&file, width, work)?;
    let values_max = rows_max * width;
    let bytes = values_max * size_of::<f32>() + rows_max * size_of::<u32>();
    (work.reserve)(bytes + Index::bytes_for(rows_max))?;
    let mut values = Vec::with_capacity(values_max);
    let mut starts: Vec<u32> = Vec::with_capacity(rows_max);
    let mut index = Index::for_rows(rows_max);

    while let Some(line) = lines.next_line(work.check)? {
        let key = line.read_row(&columns, width, &mut values)?;
        if !index.insert(key.as_bytes(), starts.len(), |row| Keys::key_at(&file, starts[row], END))
        {
            return Err(
                line.wrong(format_args!("an earlier line has the key {:?}, too", shown(key)))
            );
        }
        starts.push(line.key_start() as u32);
    }
    // The lines may be fewer than their bytes allowed.
    values.shrink_to_fit();
    starts.shrink_to_fit();
    let rows = starts.len();
    let keys = Keys { text: file, end: END, starts, own_bytes: 0 };
    let parsed = Parsed { values, keys, index, columns, columns_bytes };
    Ok(Table { rows, width, source: Source::Parsed(parsed) })
}

/// What a table is, for errors.
const FORM: &str = "the first line names the columns, as id,price,rating, and each other line is a \
                    key and its numbers, as 17,9.5,4";

/// The most rows that the file can have: a line has at least a key of one byte, and a comma and a
/// digit for each column.
fn count_rows(file: &[u8], width: usize, work: &Work<'_>) -> Result<usize, TableError> {
    let mut lines = 1;
    for part in file.chunks(COUNTED_BYTES) {
        (work.check)()?;
        lines += memchr_iter(b'\n', part).count();
    }
    let rows = lines.min((file.len() + 1) / (2 * width + 2));
    if rows > ROWS_MAX {
        return Err(TableError::Malformed(format!(
            "it has {rows} lines; a table has at most {ROWS_MAX} rows"
        )));
    }
    Ok(rows)
}

/// The columns of the heading, without that of the keys, with their places.
fn columns_of(heading: &Line<'_>) -> Result<BTreeMap<Box<str>, usize>, TableError> {
    let mut columns = BTreeMap::new();
    let mut cells = Cells::of(heading.text);
    cells.next().transpose().map_err(|error| heading.wrong_cell(error))?;
    for (place, cell) in cells.enumerate() {
        let name = cell.map_err(|error| heading.wrong_cell(error))?.text();
        let name = name.trim();
        if place == COLUMNS_MAX {
            return Err(heading
                .wrong(format_args!("a table has at most {COLUMNS_MAX} columns besides the key")));
        }
        // pandas names columns 0, 1, 2, .. if they have no names.
        if name.parse::<f32>().is_ok() && name.parse::<u32>().is_err() {
            let name = shown(name);
            return Err(heading.wrong(format_args!("{name:?} is not the name of a column: {FORM}")));
        }
        match columns.entry(Box::<str>::from(name)) {
            Entry::Vacant(entry) => entry.insert(place),
            Entry::Occupied(_) => {
                return Err(heading.wrong(format_args!("two columns are named {:?}", shown(name))));
            }
        };
    }
    match columns.is_empty() {
        true => Err(heading.wrong(format_args!("it names no column after the key: {FORM}"))),
        false => Ok(columns),
    }
}

/// The lines of a file that are not blank.
struct Lines<'a> {
    file: &'a [u8],
    at: usize,
    number: usize,
    /// Where the work last asked whether it may go on.
    checked: usize,
}

/// A line without its end.
struct Line<'a> {
    /// From 1.
    number: usize,
    /// Where it begins in the file.
    start: usize,
    text: &'a str,
}

impl<'a> Lines<'a> {
    fn of(file: &'a [u8]) -> Self {
        let at = if file.starts_with(MARK) { MARK.len() } else { 0 };
        Self { file, at, number: 0, checked: at }
    }

    fn next_line(&mut self, check: Check<'_>) -> Result<Option<Line<'a>>, TableError> {
        while self.at < self.file.len() {
            if self.at - self.checked > BETWEEN_CHECKS {
                check()?;
                self.checked = self.at;
            }
            let (start, rest) = (self.at, &self.file[self.at..]);
            self.number += 1;
            let number = self.number;
            let window = &rest[..rest.len().min(LINE_BYTES_MAX + 1)];
            let length = match memchr(b'\n', window) {
                Some(length) => length,
                None if window.len() > LINE_BYTES_MAX => {
                    return Err(TableError::Malformed(format!(
                        "line {number} is longer than {LINE_BYTES_MAX} bytes: {FORM}"
                    )));
                }
                None => rest.len(),
            };
            self.at = start + length + 1;
            let text = str::from_utf8(&rest[..length]).map_err(|_| {
                TableError::Malformed(format!(
                    "line {number} is not UTF-8, so it is neither CSV, nor an .npy file, nor Parquet"
                ))
            })?;
            let text = text.strip_suffix('\r').unwrap_or(text);
            if !text.trim().is_empty() {
                return Ok(Some(Line { number, start, text }));
            }
        }
        Ok(None)
    }
}

impl<'a> Line<'a> {
    /// Where its key begins in the file.
    fn key_start(&self) -> usize {
        self.start + usize::from(self.text.as_bytes().first() == Some(&QUOTE))
    }

    /// Add the numbers of the row that it is to `values`. Returns the key.
    fn read_row(
        &self,
        columns: &BTreeMap<Box<str>, usize>,
        width: usize,
        values: &mut Vec<f32>,
    ) -> Result<&'a str, TableError> {
        let mut cells = Cells::of(self.text);
        let key = cells.next().transpose().map_err(|error| self.wrong_cell(error))?;
        let key = key.map_or(Some(""), Cell::plain).ok_or_else(|| {
            self.wrong(format_args!(
                "its key has a quotation mark, which a key of CSV cannot have: write the table as \
                 Parquet"
            ))
        })?;
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Err(self.wrong(format_args!(
                "its key has {} bytes: must be 1 to {KEY_BYTES_MAX}",
                key.len()
            )));
        }
        let before = values.len();
        for cell in cells {
            let cell = cell.map_err(|error| self.wrong_cell(error))?.written().trim();
            let place = values.len() - before;
            if place == width {
                return Err(self.wrong(format_args!("it has more than {width} numbers")));
            }
            let number = match cell.parse::<f32>() {
                Ok(number) if !number.is_infinite() => number,
                _ => return Err(self.wrong_number(columns, place, cell)),
            };
            values.push(number);
        }
        match values.len() - before {
            count if count == width => Ok(key),
            count => Err(self.wrong(format_args!(
                "it has {count} numbers after the key, but the heading has {width} columns"
            ))),
        }
    }

    fn wrong_number(
        &self,
        columns: &BTreeMap<Box<str>, usize>,
        place: usize,
        cell: &str,
    ) -> TableError {
        let name = columns.iter().find(|(_, other)| **other == place).map(|(name, _)| shown(name));
        let name = name.unwrap_or_default();
        let cell = shown(cell);
        self.wrong(format_args!(
            "column {name:?} has {cell:?}, which is not a finite number of float32: write one as \
             9.5, or nan where there is none"
        ))
    }

    fn wrong_cell(&self, error: CellError) -> TableError {
        self.wrong(format_args!("{error}"))
    }

    fn wrong(&self, why: std::fmt::Arguments<'_>) -> TableError {
        TableError::Malformed(format!("line {}: {why}", self.number))
    }
}
