//! The texts and the ids that a guest gives, and their bounds.

use bytes::Bytes;
use gristmill_core::{Dtype, Tensor};
use gristmill_text::TEXT_BYTES_MAX;

use super::bindings::wit;
use super::terms::invalid;

/// Maximum texts of a call, and their bytes.
const TEXTS_MAX: usize = 4096;
const TEXTS_BYTES_MAX: usize = 4 << 20;

/// Maximum ids of a call.
const IDS_MAX: usize = 1 << 20;

/// Texts.
pub(super) enum Source {
    List(Vec<String>),
    Tensor(Tensor),
    Blob(Bytes),
}

impl Source {
    /// The bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::List(texts) => texts.iter().map(String::len).sum(),
            Self::Tensor(tensor) => tensor.as_bytes().len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }

    /// The texts, within the limits. `name` is that of the argument.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, wit::TokenizerError> {
        let texts: Vec<&[u8]> = match self {
            Self::List(texts) => {
                check_count(name, texts.len())?;
                texts.iter().map(String::as_bytes).collect()
            }
            Self::Tensor(tensor) => {
                let (dtype, shape) = (tensor.dtype(), tensor.shape());
                let Some(texts) = tensor.texts().filter(|_| shape.len() == 1) else {
                    return Err(invalid(format!(
                        "{name} is a tensor of {dtype} with the shape {shape:?}: must be strings \
                         of one dimension"
                    )));
                };
                check_count(name, shape[0])?;
                texts.collect()
            }
            Self::Blob(bytes) => vec![&bytes[..]],
        };
        let (mut all, mut checked) = (0, Vec::with_capacity(texts.len()));
        for (at, text) in texts.into_iter().enumerate() {
            let bytes = text.len();
            all += bytes;
            if bytes > TEXT_BYTES_MAX || all > TEXTS_BYTES_MAX {
                return Err(wit::TokenizerError::TooLarge(format!(
                    "{name}[{at}] has {bytes} bytes, and those up to it have {all}; the limits are \
                     {TEXT_BYTES_MAX} and {TEXTS_BYTES_MAX}"
                )));
            }
            let text = str::from_utf8(text)
                .map_err(|error| invalid(format!("{name}[{at}] is not UTF-8: {error}")))?;
            checked.push(text);
        }
        Ok(checked)
    }
}

fn check_count(name: &str, count: usize) -> Result<(), wit::TokenizerError> {
    if count <= TEXTS_MAX {
        return Ok(());
    }
    let why = format!("{name} has {count} texts; the limit is {TEXTS_MAX}");
    Err(wit::TokenizerError::TooLarge(why))
}

/// Rows of ids.
pub(super) struct Ids {
    ids: Vec<u32>,
    rows: usize,
    length: usize,
}

impl Ids {
    /// The number of all ids.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.rows).map(move |row| &self.ids[row * self.length..][..self.length])
    }
}

/// The memory of the ids of this tensor, at most.
pub(super) fn ids_bytes(tensor: &Tensor) -> usize {
    tensor.as_bytes().len().min(IDS_MAX * size_of::<u32>())
}

/// The ids of a tensor.
pub(super) fn ids_of(tensor: &Tensor) -> Result<Ids, wit::TokenizerError> {
    let (dtype, shape, bytes) = (tensor.dtype(), tensor.shape(), tensor.as_bytes());
    let count: usize = shape.iter().product();
    let (rows, length) = match shape {
        [length] => (1, *length),
        [rows, length] => (*rows, *length),
        _ => {
            let why = format!("ids has the shape {shape:?}: must be [length] or [texts, length]");
            return Err(invalid(why));
        }
    };
    if rows > TEXTS_MAX || count > IDS_MAX {
        return Err(wit::TokenizerError::TooLarge(format!(
            "ids has {rows} rows and {count} elements; the limits are {TEXTS_MAX} and {IDS_MAX}"
        )));
    }
    let id_of = |id: i64| {
        u32::try_from(id).map_err(|_| invalid(format!("the id {id} must be 0 to {}", u32::MAX)))
    };
    let ids = match dtype {
        Dtype::Int64 => elements(bytes, |element| id_of(i64::from_le_bytes(element)))?,
        Dtype::Int32 => elements(bytes, |element| id_of(i32::from_le_bytes(element).into()))?,
        Dtype::Uint32 => elements(bytes, |element| Ok(u32::from_le_bytes(element)))?,
        _ => {
            let why = format!("ids is a tensor of {dtype}: must be int64, int32 or uint32");
            return Err(invalid(why));
        }
    };
    Ok(Ids { ids, rows, length })
}

fn elements<const N: usize>(
    bytes: &[u8],
    element: impl Fn([u8; N]) -> Result<u32, wit::TokenizerError>,
) -> Result<Vec<u32>, wit::TokenizerError> {
    let elements = bytes.as_chunks::<N>().0;
    let mut ids = Vec::with_capacity(elements.len());
    for bytes in elements {
        ids.push(element(*bytes)?);
    }
    Ok(ids)
}
