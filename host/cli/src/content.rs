//! Content that is put together of bytes and parts of files while it is read, so that it takes no
//! room of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

/// The pieces of some content, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pieces: Vec<Piece>,
    bytes: u64,
    /// A folder with files of the pieces, which is removed with the last clone.
    _folder: Option<Arc<TempDir>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    File(FilePart),
}

/// A part of a file.
#[derive(Clone, Debug)]
pub(crate) struct FilePart {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl FilePart {
    /// All of a file.
    pub(crate) fn whole(path: &Path) -> io::Result<Self> {
        let bytes = path.metadata()?.len();
        Ok(Self { path: path.to_owned(), offset: 0, bytes })
    }
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(part) => part.bytes,
        }
    }
}

impl Content {
    /// The content of a file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let mut content = Self::default();
        content.add_file(FilePart::whole(path)?);
        Ok(content)
    }

    pub(crate) fn add(&mut self, bytes: Vec<u8>) {
        self.push(Piece::Bytes(bytes));
    }

    pub(crate) fn add_file(&mut self, part: FilePart) {
        self.push(Piece::File(part));
    }

    fn push(&mut self, piece: Piece) {
        self.bytes += piece.len();
        self.pieces.push(piece);
    }

    /// Keep this folder for as long as the content.
    pub(crate) fn keep(&mut self, folder: Arc<TempDir>) {
        self._folder = Some(folder);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { content: self, at: 0, open: None }
    }
}

/// Reads content.
pub(crate) struct Reader<'a> {
    content: &'a Content,
    at: u64,
    /// The piece that was read last, if it is a file.
    open: Option<(usize, File)>,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut start = 0;
        for (index, piece) in self.content.pieces.iter().enumerate() {
            let inside = self.at - start;
            let left = piece.len().saturating_sub(inside);
            if left == 0 {
                start += piece.len();
                continue;
            }
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let buffer = &mut buffer[..most];
            match piece {
                Piece::Bytes(bytes) => {
                    let inside = inside as usize;
                    buffer.copy_from_slice(&bytes[inside..inside + most]);
                }
                Piece::File(part) => {
                    let mut file = match self.open.take() {
                        Some((open, file)) if open == index => file,
                        _ => File::open(&part.path)?,
                    };
                    file.seek(SeekFrom::Start(part.offset + inside))?;
                    file.read_exact(buffer)?;
                    self.open = Some((index, file));
                }
            }
            self.at += most as u64;
            return Ok(most);
        }
        Ok(0)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let from = |base: u64, by: i64| base.checked_add_signed(by);
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => from(self.at, by),
            SeekFrom::End(by) => from(self.content.bytes, by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?.min(self.content.bytes);
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_one_from_any_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let mut content = Content::default();
        content.add(b"ab".to_vec());
        content.add_file(FilePart { path: path.clone(), offset: 2, bytes: 3 });
        content.add(Vec::new());
        content.add_file(FilePart::whole(&path).unwrap());
        let whole = b"ab2340123456789";
        assert_eq!(content.bytes(), whole.len() as u64);
        let mut reader = content.reader();
        for start in (0..=whole.len()).rev() {
            reader.seek(SeekFrom::Start(start as u64)).unwrap();
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, whole[start..]);
        }
        std::fs::write(&path, b"0123").unwrap();
        reader.seek(SeekFrom::Start(0)).unwrap();
        assert!(reader.read_to_end(&mut Vec::new()).is_err(), "the file became shorter");
    }
}
