//! Reading a column's part of a group: its pages, one after another.

use super::bits::Runs;
use super::cells::{Cell, Cells, Dictionary};
use super::codec::Codec;
use super::footer::{Column, ColumnChunk};
use super::reused::Reused;
use super::thrift::{Reader, Type};
use crate::error::{TableError, Work, shown};

/// Maximum bytes of a page, compressed or not. Writers end a page at about 1 MiB.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// How many rows are read between two checks.
const BETWEEN_CHECKS: usize = 8 << 10;

/// What is done with the cells of a column, in the order of its rows. A null is `None`.
pub(super) type Take<'t> =
    &'t mut dyn FnMut(Option<Cell<'_>>, &mut Work<'_>) -> Result<(), TableError>;

/// Reads parts of columns, in memory that they share.
#[derive(Default)]
pub(super) struct Chunks {
    pages: Decompressor,
    dictionary_memory: Reused,
}

/// Where pages are decompressed, one after another.
#[derive(Default)]
struct Decompressor {
    page: Vec<u8>,
    memory: Reused,
    window: Reused,
}

/// What the head of a page says.
struct Head {
    kind: PageKind,
    /// Its bytes in the file, and without compression.
    bytes: usize,
    plain_bytes: usize,
    cells: usize,
    encoding: u8,
    /// The levels of a page of version 2 stand before it, with this length.
    level_bytes: Option<usize>,
    is_compressed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PageKind {
    Data,
    Dictionary,
    /// Nothing that is needed here.
    Other,
}

impl Chunks {
    /// Read the rows of a part.
    pub(super) fn read(
        &mut self,
        file: &[u8],
        part: &ColumnChunk<'_>,
        work: &mut Work<'_>,
        take: Take<'_>,
    ) -> Result<(), TableError> {
        let column = part.column;
        let codec = Codec::of(part.chunk.codec).map_err(|name| {
            let cure = "write the file with compression=\"snappy\", \"gzip\" or \"zstd\"";
            wrong(column, format_args!("is compressed with {name}: {cure}"))
        })?;
        let broken = || broken(column);
        let mut reader = Reader::new(file.get(part.chunk.range()).ok_or_else(broken)?);
        let mut dictionary = Dictionary::default();
        let mut left = part.rows;
        while left > 0 {
            (work.check)()?;
            let head = Head::read(&mut reader).ok_or_else(broken)?;
            let stored = reader.take(head.bytes).ok_or_else(broken)?;
            head.check_bytes(column)?;
            if head.kind == PageKind::Other {
                continue;
            }
            // Levels of version 2 stand before the page, and are never compressed.
            let split = stored.split_at_checked(head.level_bytes.unwrap_or(0));
            let (levels, stored) = split.ok_or_else(broken)?;
            let plain_bytes = head.plain_bytes.checked_sub(levels.len()).ok_or_else(broken)?;
            let codec = codec.filter(|_| head.is_compressed);
            let page = self.pages.plain(codec, stored, plain_bytes, work)?.ok_or_else(broken)?;
            if head.kind == PageKind::Dictionary {
                // Only one is in memory at a time.
                drop(std::mem::take(&mut dictionary));
                let memory = &mut self.dictionary_memory;
                let read = Dictionary::read(page, head.cells, column.kind, memory, work)?;
                dictionary = read.ok_or_else(broken)?;
                continue;
            }
            left = left.checked_sub(head.cells).ok_or_else(broken)?;
            let (levels, page) = match (column.is_optional, head.level_bytes) {
                (false, _) => (None, page),
                (true, Some(_)) => (Some(levels), page),
                (true, None) => {
                    let (levels, page) = split_levels(page).ok_or_else(broken)?;
                    (Some(levels), page)
                }
            };
            let cells = Cells::of(page, head.encoding, column.kind, &dictionary);
            let cells = cells.map_err(|encoding| match encoding {
                Some(name) => wrong(
                    column,
                    format_args!("is encoded as {name}: write the file with the default encodings"),
                ),
                None => broken(),
            })?;
            let levels = match levels {
                Some(levels) => Some(Runs::new(levels, 1).ok_or_else(broken)?),
                None => None,
            };
            let mut page = Page { cells, levels };
            for at in 0..head.cells {
                if at % BETWEEN_CHECKS == 0 {
                    (work.check)()?;
                }
                take(page.next().ok_or_else(broken)?, work)?;
            }
        }
        Ok(())
    }
}

impl Decompressor {
    /// The bytes of a page without compression. None: it is broken.
    fn plain<'p>(
        &'p mut self,
        codec: Option<Codec>,
        stored: &'p [u8],
        bytes: usize,
        work: &mut Work<'_>,
    ) -> Result<Option<&'p [u8]>, TableError> {
        match codec {
            None => Ok((stored.len() == bytes).then_some(stored)),
            // A page of nulls has nothing to compress.
            Some(_) if bytes == 0 => Ok(Some(&[])),
            Some(codec) => {
                self.memory.fit(bytes, work)?;
                // No more than what was counted: `resize` alone would take twice as much.
                self.page.reserve_exact(bytes.saturating_sub(self.page.len()));
                self.page.resize(bytes, 0);
                let filled = codec.decompress(stored, &mut self.page, &mut self.window, work)?;
                Ok(filled.map(|()| &self.page[..]))
            }
        }
    }
}

/// An error in a column.
pub(super) fn wrong(column: &Column<'_>, why: std::fmt::Arguments<'_>) -> TableError {
    TableError::Malformed(format!("column {:?} {why}", shown(column.name)))
}

fn broken(column: &Column<'_>) -> TableError {
    wrong(column, format_args!("is broken: write the file anew"))
}

/// The levels of a page of version 1, which begins with their length, and its cells.
fn split_levels(page: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = page.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// The rows of a page.
struct Page<'a> {
    cells: Cells<'a>,
    /// 1 for a row that has a cell. None: all have one.
    levels: Option<Runs<'a>>,
}

impl<'a> Page<'a> {
    /// The next row: its cell, or none if it is null. Without a next row, None.
    #[expect(clippy::option_option, reason = "the rows of a page end, and a row may have no cell")]
    fn next(&mut self) -> Option<Option<Cell<'a>>> {
        let is_there = match &mut self.levels {
            Some(levels) => levels.next()? == 1,
            None => true,
        };
        if is_there { self.cells.next().map(Some) } else { Some(None) }
    }
}

impl Head {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (mut kind, mut bytes, mut plain_bytes) = (None, None, None);
        let (mut cells, mut encoding, mut level_bytes) = (None, None, None);
        let mut is_compressed = true;
        reader.fields(|reader, id, field| {
            match (id, field) {
                (1, Type::Int) => kind = Some(reader.int::<u8>()?),
                (2, Type::Int) => plain_bytes = Some(reader.int()?),
                (3, Type::Int) => bytes = Some(reader.int()?),
                // Of a page of data, and of a dictionary.
                (5 | 7, Type::Struct) => reader.fields(|reader, id, field| {
                    match (id, field) {
                        (1, Type::Int) => cells = Some(reader.int()?),
                        (2, Type::Int) => encoding = Some(reader.int()?),
                        _ => return Some(false),
                    }
                    Some(true)
                })?,
                // Of a page of data of version 2.
                (8, Type::Struct) => {
                    let (mut levels, mut repeats) = (None, None);
                    reader.fields(|reader, id, field| {
                        match (id, field) {
                            (1, Type::Int) => cells = Some(reader.int()?),
                            (4, Type::Int) => encoding = Some(reader.int()?),
                            (5, Type::Int) => levels = Some(reader.int()?),
                            (6, Type::Int) => repeats = Some(reader.int::<u8>()?),
                            (7, Type::Bool(is)) => {
                                is_compressed = is;
                                // Its value is in the head of the field.
                            }
                            _ => return Some(false),
                        }
                        Some(true)
                    })?;
                    level_bytes = levels.filter(|_| repeats == Some(0));
                    level_bytes?;
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        let kind = match kind? {
            0 | 3 => PageKind::Data,
            2 => PageKind::Dictionary,
            _ => PageKind::Other,
        };
        let is_data = kind != PageKind::Other;
        Some(Self {
            kind,
            bytes: bytes?,
            plain_bytes: plain_bytes?,
            cells: if is_data { cells? } else { 0 },
            encoding: if is_data { encoding? } else { 0 },
            level_bytes,
            is_compressed,
        })
    }

    fn check_bytes(&self, column: &Column<'_>) -> Result<(), TableError> {
        // Hostile ones are longer compressed than not: parts of nothing take time, too.
        let bytes = self.bytes.max(self.plain_bytes);
        if bytes <= PAGE_BYTES_MAX {
            return Ok(());
        }
        Err(wrong(
            column,
            format_args!(
                "has a page of {bytes} bytes; at most {PAGE_BYTES_MAX} are read: write the file \
                 with smaller pages"
            ),
        ))
    }
}
