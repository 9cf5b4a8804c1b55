//! The cells of a page, in each encoding that writers use without being told to.

use super::bits::{Bits, Runs};
use super::kind::Kind;
use super::reused::Reused;
use super::thrift::Reader;
use crate::error::{TableError, Work};

/// How many cells of a dictionary are read between two checks.
const BETWEEN_CHECKS: usize = 8 << 10;

/// What a row has in a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    /// The bits of a number.
    Bits(u64),
    Text(&'a [u8]),
}

/// The cells that the pages of a chunk name by number.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    bits: Vec<u64>,
    /// Of texts: their bytes one after another, and where each ends.
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Dictionary {
    /// Read so many cells, which are written plainly. None: there are fewer.
    pub(super) fn read(
        page: &[u8],
        count: usize,
        kind: Kind,
        memory: &mut Reused,
        work: &mut Work<'_>,
    ) -> Result<Option<Self>, TableError> {
        // A text has its length before it, and no writer has a dictionary of bools.
        if count.checked_mul(kind.bytes().unwrap_or(4)).is_none_or(|bytes| bytes > page.len()) {
            return Ok(None);
        }
        let mut all = Self::default();
        if kind == Kind::Text {
            memory.fit(page.len() + count * size_of::<u32>(), work)?;
            all.text.reserve_exact(page.len());
            all.ends.reserve_exact(count);
        } else {
            memory.fit(count * size_of::<u64>(), work)?;
            all.bits.reserve_exact(count);
        }
        let Some(mut cells) = Cells::plain(page, kind) else { return Ok(None) };
        for at in 0..count {
            if at % BETWEEN_CHECKS == 0 {
                (work.check)()?;
            }
            match cells.next() {
                Some(Cell::Bits(bits)) => all.bits.push(bits),
                Some(Cell::Text(text)) => {
                    all.text.extend_from_slice(text);
                    all.ends.push(all.text.len() as u32);
                }
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    fn cell(&self, at: usize) -> Option<Cell<'_>> {
        let Some(end) = self.ends.get(at) else {
            return self.bits.get(at).copied().map(Cell::Bits);
        };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(Cell::Text(&self.text[start as usize..*end as usize]))
    }
}

/// The cells of a page, one after another.
#[derive(Debug)]
pub(super) enum Cells<'a> {
    Fixed { rest: &'a [u8], width: usize },
    Bools(Bits<'a>),
    Texts(Reader<'a>),
    Runs(Runs<'a>),
    Named { places: Runs<'a>, dictionary: &'a Dictionary },
}

impl<'a> Cells<'a> {
    /// The cells of a page in this encoding.
    ///
    /// # Errors
    /// The name of an encoding that is not read. None: the page is broken.
    pub(super) fn of(
        page: &'a [u8],
        encoding: u8,
        kind: Kind,
        dictionary: &'a Dictionary,
    ) -> Result<Self, Option<&'static str>> {
        let cells = match (encoding, kind) {
            (0, _) => Self::plain(page, kind),
            (2 | 8, _) => Self::named(page, dictionary),
            // The length of the runs stands before them.
            (3, Kind::Bool) => page.get(4..).and_then(|runs| Runs::new(runs, 1)).map(Self::Runs),
            (4, _) => return Err(Some("BIT_PACKED")),
            (5, _) => return Err(Some("DELTA_BINARY_PACKED")),
            (6, _) => return Err(Some("DELTA_LENGTH_BYTE_ARRAY")),
            (7, _) => return Err(Some("DELTA_BYTE_ARRAY")),
            (9, _) => return Err(Some("BYTE_STREAM_SPLIT")),
            _ => None,
        };
        cells.ok_or(None)
    }

    fn plain(page: &'a [u8], kind: Kind) -> Option<Self> {
        Some(match (kind, kind.bytes()) {
            (_, Some(width)) => Self::Fixed { rest: page, width },
            (Kind::Bool, _) => Self::Bools(Bits::new(page)),
            _ => Self::Texts(Reader::new(page)),
        })
    }

    fn named(page: &'a [u8], dictionary: &'a Dictionary) -> Option<Self> {
        // A page of nulls may have nothing.
        let (width, runs) = page.split_first().unwrap_or((&0, &[]));
        Some(Self::Named { places: Runs::new(runs, *width)?, dictionary })
    }

    pub(super) fn next(&mut self) -> Option<Cell<'a>> {
        match self {
            Self::Fixed { rest, width } => {
                let (cell, after) = rest.split_at_checked(*width)?;
                *rest = after;
                Some(Cell::Bits(bits_of(cell)))
            }
            Self::Bools(bits) => bits.next(1).map(|value| Cell::Bits(value.into())),
            Self::Texts(rest) => {
                let length = rest.take(4)?.first_chunk()?;
                rest.take(u32::from_le_bytes(*length) as usize).map(Cell::Text)
            }
            Self::Runs(runs) => runs.next().map(|value| Cell::Bits(value.into())),
            Self::Named { places, dictionary } => dictionary.cell(places.next()? as usize),
        }
    }
}

/// A number of 4 or 8 bytes.
fn bits_of(cell: &[u8]) -> u64 {
    let mut bits = [0; size_of::<u64>()];
    bits[..cell.len()].copy_from_slice(cell);
    u64::from_le_bytes(bits)
}
