//! Reading zip archives.
//!
//! Source: PKWARE's APPNOTE, <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::CrcWriter;
use flate2::read::DeflateDecoder;
use gristmill_backend::package::{PackageError, plain_path};

use crate::progress::Progress;

/// The bytes at the archive's end in which its last record begins: the record has 22 bytes, and a
/// comment of 64 KiB at most.
const END_BYTES: u64 = 22 + (64 << 10);

/// Maximum bytes of the list of files.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// The file's type in the mode of Unix, and its value for a link.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Why a part of an archive is not unpacked, beside the error itself.
pub(super) fn unpacking_failed() -> String {
    let folder = std::env::temp_dir();
    format!("cannot unpack it into {}, which TMPDIR can replace", folder.display())
}

/// A zip archive.
pub(super) struct Zip {
    file: File,
    /// Its files, without folders.
    pub(super) entries: Vec<Entry>,
}

/// A file in an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The bytes of its content, as the archive says.
    pub(super) bytes: u64,
    method: u16,
    checksum: u32,
    packed_bytes: u64,
    /// Of its own header.
    offset: u64,
}

/// Reads numbers of little-endian bytes.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).context("the archive is damaged")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, len: usize) -> Result<u64> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn two(&mut self) -> Result<u16> {
        Ok(self.number(2)? as u16)
    }

    fn four(&mut self) -> Result<u32> {
        Ok(self.number(4)? as u32)
    }

    fn eight(&mut self) -> Result<u64> {
        self.number(8)
    }
}

impl Zip {
    /// Read the list of files.
    ///
    /// # Errors
    /// It cannot be read, or has a link or a path that leads elsewhere.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let (count, at, bytes) = list(&mut file)?;
        ensure!(
            bytes <= LIST_BYTES_MAX,
            "the archive has too many files: their list has {bytes} bytes, at most {LIST_BYTES_MAX} \
             are read; pack the model alone, with the files that it names"
        );
        let read = read_at(&mut file, at, bytes)?;
        let mut rest = Numbers(&read);
        let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
        for _ in 0..count {
            let Some(entry) = Entry::read(&mut rest)? else { continue };
            if !names.insert(entry.name.clone()) {
                return Err(PackageError::Twice(entry.name).into());
            }
            entries.push(entry);
        }
        Ok(Self { file, entries })
    }

    /// Write the content of an entry, which is not larger than it says.
    ///
    /// # Errors
    /// It is packed in an unknown way, or damaged.
    pub(super) fn unpack(&mut self, entry: &Entry, out: &mut impl Write) -> Result<()> {
        let header = read_at(&mut self.file, entry.offset, 30)?;
        let mut header = Numbers(&header);
        ensure!(header.take(4)? == b"PK\x03\x04", "the archive is damaged");
        header.take(22)?;
        let skipped = u64::from(header.two()?) + u64::from(header.two()?);
        self.file.seek(SeekFrom::Start(entry.offset.saturating_add(30 + skipped)))?;
        let packed = (&mut self.file).take(entry.packed_bytes);
        let progress = Progress::bytes(&format!("unpacking {}", entry.name), entry.bytes);
        let mut out = CrcWriter::new(out);
        // One byte more shows that the list of files is wrong.
        let most = entry.bytes.saturating_add(1);
        let written = match entry.method {
            0 => io::copy(&mut progress.of_read(packed.take(most)), &mut out),
            8 => {
                let unpacked = DeflateDecoder::new(packed).take(most);
                io::copy(&mut progress.of_read(unpacked), &mut out)
            }
            other => bail!("it is packed by method {other}: only deflate is known"),
        };
        let written = written.with_context(unpacking_failed)?;
        let is_whole = written == entry.bytes && out.crc().sum() == entry.checksum;
        ensure!(is_whole, "it is damaged");
        Ok(())
    }
}

impl Entry {
    /// The next entry of the list. None if it is a folder.
    fn read(list: &mut Numbers<'_>) -> Result<Option<Self>> {
        ensure!(list.take(4)? == b"PK\x01\x02", "the archive is damaged");
        list.take(4)?;
        let (flags, method) = (list.two()?, list.two()?);
        list.take(4)?;
        let checksum = list.four()?;
        let mut packed_bytes = u64::from(list.four()?);
        let mut bytes = u64::from(list.four()?);
        let [name, extra, comment] = [list.two()?, list.two()?, list.two()?].map(usize::from);
        list.take(4)?;
        let mode = list.four()? >> 16;
        let mut offset = u64::from(list.four()?);
        let name = String::from_utf8_lossy(list.take(name)?).into_owned();
        let mut extras = Numbers(list.take(extra)?);
        list.take(comment)?;
        while extras.0.len() >= 4 {
            let (id, len) = (extras.two()?, usize::from(extras.two()?));
            let mut large = Numbers(extras.take(len)?);
            if id == 1 {
                // Those numbers that do not fit into four bytes.
                for number in [&mut bytes, &mut packed_bytes, &mut offset] {
                    if *number == u64::from(u32::MAX) {
                        *number = large.eight()?;
                    }
                }
            }
        }
        let is_folder = name.ends_with('/');
        let name = plain_path(&name)?;
        ensure!(mode & TYPE != LINK, "{name} in the archive is a link");
        ensure!(flags & 1 == 0, "{name} in the archive is encrypted");
        let entry = Self { name, bytes, method, checksum, packed_bytes, offset };
        Ok((!is_folder).then_some(entry))
    }
}

/// The number of entries, and the place and the bytes of their list.
fn list(file: &mut File) -> Result<(u64, u64, u64)> {
    let len = file.seek(SeekFrom::End(0))?;
    let start = len.saturating_sub(END_BYTES);
    let end = read_at(file, start, len - start)?;
    let at = end.windows(4).rposition(|bytes| bytes == b"PK\x05\x06");
    let at = at.context("it is no whole zip archive")?;
    let mut last = Numbers(&end[at..]);
    last.take(10)?;
    let (count, bytes, place) = (last.two()?, last.four()?, last.four()?);
    if count != u16::MAX && bytes != u32::MAX && place != u32::MAX {
        return Ok((count.into(), place.into(), bytes.into()));
    }
    // An archive with large numbers has a second record, and the place of it before this one.
    let locator = start + at as u64;
    let locator = locator.checked_sub(20).context("the archive is damaged")?;
    let locator = read_at(file, locator, 20)?;
    let mut locator = Numbers(&locator);
    ensure!(locator.take(4)? == b"PK\x06\x07", "the archive is damaged");
    locator.take(4)?;
    let record = read_at(file, locator.eight()?, 56)?;
    let mut record = Numbers(&record);
    ensure!(record.take(4)? == b"PK\x06\x06", "the archive is damaged");
    record.take(28)?;
    let (count, bytes, place) = (record.eight()?, record.eight()?, record.eight()?);
    Ok((count, place, bytes))
}

fn read_at(file: &mut File, at: u64, len: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut read = Vec::new();
    file.take(len).read_to_end(&mut read)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of one stored file, which is so many times in the list, and whose numbers are all
    /// in records for large ones.
    fn listing(times: usize) -> Vec<u8> {
        let (name, content) = (b"m.onnx", b"model");
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let numbers = |numbers: &[u64]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        let mut archive = b"PK\x03\x04\x2d\0\0\0\0\0\0\0\0\0".to_vec();
        archive.extend([0; 12]);
        archive.extend([6, 0, 0, 0]);
        archive.extend(name);
        archive.extend(content);
        let at = archive.len() as u64;
        let mut list = b"PK\x01\x02\x2d\0\x2d\0\0\0\0\0\0\0\0\0".to_vec();
        list.extend(checksum.sum().to_le_bytes());
        list.extend([0xff; 8]);
        list.extend([6, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0x81, 0xff, 0xff, 0xff, 0xff]);
        list.extend(name);
        list.extend([1, 0, 24, 0]);
        list.extend(numbers(&[content.len() as u64, content.len() as u64, 0]));
        let list = list.repeat(times);
        archive.extend(&list);
        let record = archive.len() as u64;
        archive.extend(b"PK\x06\x06");
        archive.extend([0; 28]);
        archive.extend(numbers(&[times as u64, list.len() as u64, at]));
        archive.extend(b"PK\x06\x07\0\0\0\0");
        archive.extend(numbers(&[record]));
        archive.extend([1, 0, 0, 0]);
        archive.extend(b"PK\x05\x06\0\0\0\0");
        archive.extend([0xff; 12]);
        archive.extend([0, 0]);
        archive
    }

    fn entries(archive: &[u8]) -> Result<Zip> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zip");
        std::fs::write(&path, archive).unwrap();
        Zip::open(&path)
    }

    #[test]
    fn large_numbers_are_read_from_their_records() {
        let mut zip = entries(&listing(1)).unwrap();
        let [entry] = &zip.entries[..] else { panic!("{:?}", zip.entries) };
        let (entry, mut content) = (entry.clone(), Vec::new());
        assert_eq!(entry.name, "m.onnx");
        zip.unpack(&entry, &mut content).unwrap();
        assert_eq!(content, b"model");
    }

    #[test]
    fn a_file_that_is_there_twice_is_refused() {
        let error = entries(&listing(2)).err().unwrap().to_string();
        assert!(error.starts_with("\"m.onnx\" is in the archive twice"), "{error}");
    }

    #[test]
    fn no_damage_is_more_than_an_error() {
        let whole = listing(1);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            for archive in [&damaged[..], &whole[..at]] {
                let Ok(mut zip) = entries(archive) else { continue };
                for entry in zip.entries.clone() {
                    let _ = zip.unpack(&entry, &mut Vec::new());
                }
            }
        }
    }
}
