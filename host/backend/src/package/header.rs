//! Headers of a tar archive.

use std::io::{Read, Seek, SeekFrom};

use super::PackageError;

/// The bytes of a block. A header is one, and content is padded to blocks.
pub(super) const BLOCK: u64 = 512;

/// The field of the checksum, which counts as blanks in its own sum.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// More about the next entry, in records.
    Pax,
    /// More about all entries. Nothing in it is needed.
    Global,
    /// The name of the next entry.
    LongName,
    /// A link, a device, or a file in another form.
    Other,
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// The bytes of its content.
    pub(super) bytes: u64,
}

impl Header {
    /// The header at `at` in a file of `len` bytes. None at the archive's end.
    pub(super) fn read(
        file: &mut (impl Read + Seek),
        at: u64,
        len: u64,
    ) -> Result<Option<Self>, PackageError> {
        if at >= len {
            // Archives without their last blocks are whole all the same.
            return Ok(None);
        }
        let mut block = [0; BLOCK as usize];
        file.seek(SeekFrom::Start(at))?;
        if at + BLOCK > len {
            return Err(PackageError::Damaged(at));
        }
        file.read_exact(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Self::of(&block).map(Some).ok_or(PackageError::Damaged(at))
    }

    fn of(block: &[u8; BLOCK as usize]) -> Option<Self> {
        if number(&block[CHECKSUM])? != checksum(block) {
            return None;
        }
        let kind = match block[156] {
            b'0' | 0 | b'7' => Kind::File,
            b'5' => Kind::Folder,
            b'x' => Kind::Pax,
            b'g' => Kind::Global,
            b'L' => Kind::LongName,
            _ => Kind::Other,
        };
        let mut name = text(&block[..100])?.to_owned();
        // GNU tar has other fields where POSIX has a prefix.
        let prefix = if &block[257..263] == b"ustar\0" { text(&block[345..500])? } else { "" };
        if !prefix.is_empty() {
            name = format!("{prefix}/{name}");
        }
        Some(Self { kind, name, bytes: number(&block[124..136])? })
    }
}

/// The sum of all bytes of a header.
pub(super) fn checksum(block: &[u8; BLOCK as usize]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let blanks = u64::from(b' ') * CHECKSUM.len() as u64;
    sum(&block[..CHECKSUM.start]) + blanks + sum(&block[CHECKSUM.end..])
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field.split(|byte| *byte == 0).next()?).ok()
}

/// A number in octal digits; a large one in binary, behind a first bit of 1.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] == 0x80 {
        let (above, number) = field[1..].split_at(field.len() - 9);
        let number = u64::from_be_bytes(number.try_into().ok()?);
        return above.iter().all(|byte| *byte == 0).then_some(number);
    }
    let digits = text(field)?.trim_matches(' ');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// The value of a key in records `LENGTH KEY=VALUE\n`. None if they are malformed.
pub(super) fn pax_record(mut records: &[u8], key: &str) -> Option<Option<String>> {
    let mut last_value = None;
    while !records.is_empty() {
        let blank = records.iter().position(|byte| *byte == b' ')?;
        let len: usize = std::str::from_utf8(&records[..blank]).ok()?.parse().ok()?;
        let (record, rest) = records.split_at_checked(len)?;
        let text = std::str::from_utf8(record.get(blank + 1..)?).ok()?.strip_suffix('\n')?;
        let (record_key, value) = text.split_once('=')?;
        if record_key == key {
            last_value = Some(value.to_owned());
        }
        records = rest;
    }
    Some(last_value)
}
