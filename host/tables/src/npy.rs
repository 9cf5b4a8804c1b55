//! Reading NumPy's `.npy`: a header that is a dictionary in Python, then the numbers, row by row.

use bytes::Bytes;

use crate::error::{TableError, shown};
use crate::table::{COLUMNS_MAX, Kind, ROWS_MAX, Source, Table};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum bytes of the header's dictionary. Those of two dimensions have about 100.
const HEADER_BYTES_MAX: usize = 4 << 10;

pub(crate) fn is_npy(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

pub(crate) fn read(file: Bytes) -> Result<Table, TableError> {
    let (header, start) = header_of(&file)?;
    let header = Header::parse(header)?;
    let kind = header.kind()?;
    if header.is_fortran {
        return wrong(
            "its columns follow each other (fortran_order): save numpy.ascontiguousarray(array)",
        );
    }
    let [rows, width] = header.shape[..] else {
        let dimensions = header.shape.len();
        return wrong(format!(
            "it has {dimensions} dimensions: a table has 2, rows and columns; reshape the array"
        ));
    };
    if rows > ROWS_MAX || !(1..=COLUMNS_MAX).contains(&width) {
        return wrong(format!(
            "it has the shape ({rows}, {width}): a table has at most {ROWS_MAX} rows and 1 to \
             {COLUMNS_MAX} columns"
        ));
    }
    let (expected, actual) = (rows * width * kind.bytes(), file.len() - start);
    if expected != actual {
        return wrong(format!(
            "its header says ({rows}, {width}) numbers in {expected} bytes, but {actual} follow"
        ));
    }
    Ok(Table { rows, width, source: Source::Npy { file, start, kind } })
}

fn wrong<T>(why: impl Into<String>) -> Result<T, TableError> {
    Err(TableError::Malformed(why.into()))
}

/// The text of the header, and where the numbers begin.
fn header_of(file: &[u8]) -> Result<(&str, usize), TableError> {
    let (version, lengths) = (file.get(MAGIC.len()), file.get(MAGIC.len() + 2..));
    let length = match (version, lengths.unwrap_or_default()) {
        (Some(1), [low, high, ..]) => Some((u16::from_le_bytes([*low, *high]).into(), 2)),
        (Some(2 | 3), [a, b, c, d, ..]) => Some((u32::from_le_bytes([*a, *b, *c, *d]) as usize, 4)),
        _ => None,
    };
    let Some((length, length_bytes)) = length else {
        return wrong("it begins as an .npy file, but its header is cut off or of a new version");
    };
    let begin = MAGIC.len() + 2 + length_bytes;
    let text = match length {
        0..=HEADER_BYTES_MAX => file.get(begin..begin + length),
        _ => None,
    };
    match text.map(str::from_utf8) {
        Some(Ok(text)) => Ok((text, begin + length)),
        _ => wrong(format!(
            "the header of the .npy file is cut off, or over {HEADER_BYTES_MAX} bytes"
        )),
    }
}

/// The entries of the header.
struct Header<'a> {
    /// None if the numbers have fields.
    descr: Option<&'a str>,
    is_fortran: bool,
    shape: Vec<usize>,
}

impl<'a> Header<'a> {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, as NumPy writes it.
    fn parse(text: &'a str) -> Result<Self, TableError> {
        let entries = Self::entries(text);
        entries.ok_or_else(|| {
            let text = shown(text.trim());
            TableError::Malformed(format!("the header of the .npy file is not NumPy's: {text:?}"))
        })
    }

    fn entries(text: &'a str) -> Option<Self> {
        let descr = value_of(text, "'descr':")?;
        let shape = value_of(text, "'shape':")?.strip_prefix('(')?;
        let (shape, _) = shape.split_once(')')?;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let order = value_of(text, "'fortran_order':")?;
        Some(Self {
            descr: descr.strip_prefix('\'').and_then(|descr| Some(descr.split_once('\'')?.0)),
            is_fortran: match order {
                order if order.starts_with("True") => true,
                order if order.starts_with("False") => false,
                _ => return None,
            },
            shape: sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?,
        })
    }

    /// How its numbers are encoded.
    fn kind(&self) -> Result<Kind, TableError> {
        let kind = self.descr.and_then(|descr| match descr {
            "<f4" => Some(Kind::F32),
            "<f8" => Some(Kind::F64),
            "|i1" => Some(Kind::I8),
            "|u1" => Some(Kind::U8),
            "<i2" => Some(Kind::I16),
            "<u2" => Some(Kind::U16),
            "<i4" => Some(Kind::I32),
            "<u4" => Some(Kind::U32),
            "<i8" => Some(Kind::I64),
            "<u8" => Some(Kind::U64),
            _ => None,
        });
        kind.ok_or_else(|| {
            let descr = self.descr.map_or_else(|| "a structure".to_owned(), shown);
            TableError::Malformed(format!(
                "its dtype is {descr}: must be little-endian float32, float64 or an integer; save \
                 array.astype(\"<f4\")"
            ))
        })
    }
}

/// What follows a key of the header, without space before it.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Some(text.split_once(key)?.1.trim_start())
}
