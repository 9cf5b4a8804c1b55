//! `tokenizer`: files are lists of words that the thread's test has made.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::tensors::{Dtype, Tensor};
use super::types::Blob;

#[derive(Clone, Debug, PartialEq)]
pub enum TokenizerError {
    NoAsset(String),
    Malformed(String),
    TooLarge(String),
    InvalidArgument(String),
}

impl fmt::Display for TokenizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for TokenizerError {}

#[derive(Clone, Debug)]
pub enum Texts<'a> {
    List(Vec<String>),
    Tensor(&'a Tensor),
    Blob(&'a Blob),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Padding {
    Longest,
    Fixed(u32),
    Buckets(Vec<u32>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OffsetUnit {
    Characters,
    Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub max_length: Option<u32>,
    pub truncate: Option<Side>,
    pub padding: Padding,
    pub pad: Option<Side>,
    pub pad_id: Option<u32>,
    pub add_special_tokens: bool,
    pub dtype: Dtype,
    pub offsets: Option<OffsetUnit>,
}

#[derive(Debug)]
pub struct Encoded {
    pub ids: Tensor,
    pub attention_mask: Tensor,
    pub type_ids: Tensor,
    pub lengths: Vec<u32>,
    pub offsets: Option<Tensor>,
}

/// The words of a file; a word's id is its place.
pub(crate) type Words = Vec<String>;

thread_local! {
    /// The files with their names, in the order in which they were made.
    static FILES: RefCell<Vec<(String, Rc<Words>)>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's calls find the file `name`, until [`remove`].
pub(crate) fn register(name: &str, words: Rc<Words>) {
    FILES.with_borrow_mut(|files| files.push((name.into(), words)));
}

pub(crate) fn remove(words: &Rc<Words>) {
    FILES.with_borrow_mut(|files| files.retain(|(_, other)| !Rc::ptr_eq(other, words)));
}

/// A token: its id, the type of its text, and where it stands there.
type Token = (i64, i64, [i64; 2]);

pub fn encode(
    asset: &str,
    texts: &Texts<'_>,
    pairs: Option<&Texts<'_>>,
    options: &Options,
) -> Result<Encoded, TokenizerError> {
    let words = find(asset)?;
    let texts = list(texts)?;
    let pairs = pairs.map(list).transpose()?;
    let count = texts.len();
    if let Some(pairs) = pairs.as_ref().filter(|pairs| pairs.len() != count) {
        let why = format!("there are {count} texts, but {} pairs", pairs.len());
        return Err(TokenizerError::InvalidArgument(why));
    }
    let rows = texts.iter().enumerate().map(|(at, text)| {
        let pair = pairs.as_ref().map(|pairs| pairs[at].as_str());
        row(&words, text, pair, options)
    });
    padded(&words, &rows.collect::<Vec<_>>(), options)
}

fn row(words: &[String], text: &str, pair: Option<&str>, options: &Options) -> Vec<Token> {
    let id = |word: &str| words.iter().position(|other| other == word).map(|at| at as i64);
    let special = |name: &str, kind: i64| {
        let id = id(name).filter(|_| options.add_special_tokens);
        id.map(|id| (id, kind, [0, 0]))
    };
    let tokens = |text: &str, kind: i64| -> Vec<Token> {
        let unknown = id("[UNK]").unwrap_or(0);
        let place = |word: &str| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            match options.offsets {
                Some(OffsetUnit::Characters) => {
                    let before = text[..start].chars().count();
                    [before as i64, (before + word.chars().count()) as i64]
                }
                _ => [start as i64, (start + word.len()) as i64],
            }
        };
        let words = text.split_whitespace();
        words.map(|word| (id(word).unwrap_or(unknown), kind, place(word))).collect()
    };
    let mut first = tokens(text, 0);
    let mut second = pair.map(|pair| tokens(pair, 1)).unwrap_or_default();
    let ends = |kind: i64| special("[SEP]", kind);
    let texts = 1 + usize::from(pair.is_some());
    let added = usize::from(special("[CLS]", 0).is_some()) + usize::from(ends(0).is_some()) * texts;
    if let Some(most) = options.max_length {
        let most = (most as usize).saturating_sub(added);
        while first.len() + second.len() > most {
            let longer = if first.len() >= second.len() { &mut first } else { &mut second };
            match options.truncate {
                Some(Side::Left) => {
                    longer.remove(0);
                }
                _ => {
                    longer.pop();
                }
            }
        }
    }
    let mut all: Vec<Token> = special("[CLS]", 0).into_iter().chain(first).collect();
    all.extend(ends(0));
    if pair.is_some() {
        all.extend(second);
        all.extend(ends(1));
    }
    all
}

fn padded(
    words: &[String],
    rows: &[Vec<Token>],
    options: &Options,
) -> Result<Encoded, TokenizerError> {
    let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let (length, most) = match &options.padding {
        Padding::Longest => (Some(longest), longest),
        Padding::Fixed(length) => ((*length >= longest).then_some(*length), *length),
        Padding::Buckets(lengths) => (
            lengths.iter().copied().filter(|length| *length >= longest).min(),
            lengths.iter().copied().max().unwrap_or(0),
        ),
    };
    let length = length.ok_or_else(|| {
        TokenizerError::InvalidArgument(format!(
            "a text has {longest} tokens, but padding makes rows of at most {most}: set \
             max-length to cut it off"
        ))
    })?;
    let usual = words.iter().position(|word| word == "[PAD]").unwrap_or(0) as u32;
    let pad_id = options.pad_id.unwrap_or(usual);
    let tensor = |shape: &[u32], pad: i64, element: &dyn Fn(&Token) -> Vec<i64>| {
        let width: u32 = shape[2..].iter().product();
        let mut elements = Vec::new();
        for row in rows {
            let padding = vec![pad; (length as usize - row.len()) * width as usize];
            let tokens = row.iter().flat_map(element);
            match options.pad {
                Some(Side::Left) => elements.extend(padding.into_iter().chain(tokens)),
                _ => elements.extend(tokens.chain(padding)),
            }
        }
        integers(options.dtype, shape, &elements)
    };
    let shape = [rows.len() as u32, length];
    Ok(Encoded {
        ids: tensor(&shape, i64::from(pad_id), &|token| vec![token.0])?,
        attention_mask: tensor(&shape, 0, &|_| vec![1])?,
        type_ids: tensor(&shape, 0, &|token| vec![token.1])?,
        lengths,
        offsets: match options.offsets {
            Some(_) => Some(tensor(&[shape[0], length, 2], 0, &|token| token.2.to_vec())?),
            None => None,
        },
    })
}

fn integers(dtype: Dtype, shape: &[u32], elements: &[i64]) -> Result<Tensor, TokenizerError> {
    let bytes: Vec<u8> = match dtype {
        Dtype::Int64 => elements.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Dtype::Int32 => {
            elements.iter().flat_map(|element| (*element as i32).to_le_bytes()).collect()
        }
        _ => {
            let why = format!("dtype is {dtype:?}: must be int64 or int32");
            return Err(TokenizerError::InvalidArgument(why));
        }
    };
    let made = Tensor::create(dtype, shape, &bytes);
    made.map_err(|error| TokenizerError::TooLarge(error.to_string()))
}

pub fn decode(
    asset: &str,
    ids: &Tensor,
    skip_special_tokens: bool,
) -> Result<Vec<String>, TokenizerError> {
    let words = find(asset)?;
    let (shape, data) = (ids.shape(), ids.data());
    let ids: Vec<i64> = match ids.dtype() {
        Dtype::Int64 => data.as_chunks::<8>().0.iter().map(|id| i64::from_le_bytes(*id)).collect(),
        Dtype::Int32 => {
            data.as_chunks::<4>().0.iter().map(|id| i32::from_le_bytes(*id).into()).collect()
        }
        Dtype::Uint32 => {
            data.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id).into()).collect()
        }
        dtype => {
            let why = format!("ids is a tensor of {dtype:?}: must be int64, int32 or uint32");
            return Err(TokenizerError::InvalidArgument(why));
        }
    };
    let word = |id: &i64| {
        let word = usize::try_from(*id).ok().and_then(|at| words.get(at))?;
        let is_special = word.starts_with('[') && word.ends_with(']');
        (!is_special || !skip_special_tokens).then_some(word.as_str())
    };
    let length = shape.last().map_or(1, |length| (*length).max(1)) as usize;
    let texts = ids.chunks(length).map(|row| row.iter().filter_map(word).collect::<Vec<_>>());
    Ok(texts.map(|words| words.join(" ")).collect())
}

pub fn token_to_id(asset: &str, token: &str) -> Result<Option<u32>, TokenizerError> {
    let words = find(asset)?;
    Ok(words.iter().position(|word| word == token).map(|at| at as u32))
}

fn list(texts: &Texts<'_>) -> Result<Vec<String>, TokenizerError> {
    let invalid = |why: &str| TokenizerError::InvalidArgument(why.into());
    match texts {
        Texts::List(texts) => Ok(texts.clone()),
        Texts::Tensor(tensor) => {
            tensor.strings().map_err(|_| invalid("texts is not a tensor of strings"))
        }
        Texts::Blob(blob) => {
            let text = String::from_utf8(blob.read(0, u64::MAX));
            text.map(|text| vec![text]).map_err(|_| invalid("texts is not UTF-8"))
        }
    }
}

/// The file of this name, the one that was made last.
fn find(name: &str) -> Result<Rc<Words>, TokenizerError> {
    let found = FILES.with_borrow(|files| {
        let found = files.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, words)| Rc::clone(words))
    });
    found.ok_or_else(|| {
        TokenizerError::NoAsset(format!(
            "this test has no asset {name:?}: make one with testing::tokenizer({name:?}, ..)"
        ))
    })
}
