//! The contract's terms and those of `gristmill_text`.

use gristmill_core::Dtype;
use gristmill_text::{EncodeOptions, OffsetUnit, Side, TextError, Tokenizer};

use super::bindings::wit;
use crate::capability::tensors::dtype_of;

/// Maximum lengths of rows to choose from.
const BUCKETS_MAX: usize = 64;

/// How texts are encoded, and how their rows are padded.
pub(super) struct Plan {
    pub(super) encode: EncodeOptions,
    padding: wit::Padding,
    pub(super) pad_left: bool,
    pub(super) pad_id: i64,
    pub(super) pad_type_id: i64,
    pub(super) dtype: Dtype,
}

impl Plan {
    pub(super) fn of(
        options: wit::Options,
        tokenizer: &Tokenizer,
    ) -> Result<Self, wit::TokenizerError> {
        let dtype = dtype_of(options.dtype);
        if !matches!(dtype, Dtype::Int64 | Dtype::Int32) {
            return Err(invalid(format!("dtype is {dtype}: must be int64 or int32")));
        }
        if let wit::Padding::Buckets(lengths) = &options.padding
            && !(1..=BUCKETS_MAX).contains(&lengths.len())
        {
            let count = lengths.len();
            return Err(invalid(format!("{count} buckets are given: must be 1 to {BUCKETS_MAX}")));
        }
        let encode = EncodeOptions {
            add_special_tokens: options.add_special_tokens,
            max_length: options.max_length.map(|length| length as usize),
            truncate: options.truncate.map(side_of),
            offsets: options.offsets.map(|unit| match unit {
                wit::OffsetUnit::Characters => OffsetUnit::Characters,
                wit::OffsetUnit::Bytes => OffsetUnit::Bytes,
            }),
        };
        Ok(Self {
            encode,
            padding: options.padding,
            pad_left: options.pad.map_or_else(|| tokenizer.pad_side(), side_of) == Side::Left,
            pad_id: options.pad_id.unwrap_or_else(|| tokenizer.pad_id()).into(),
            pad_type_id: tokenizer.pad_type_id().into(),
            dtype,
        })
    }

    /// The length of the rows, if the longest text has `longest` tokens.
    pub(super) fn length(&self, longest: u32) -> Result<usize, wit::TokenizerError> {
        let length = match &self.padding {
            wit::Padding::Longest => Some(longest),
            wit::Padding::Fixed(length) => (*length >= longest).then_some(*length),
            wit::Padding::Buckets(lengths) => {
                lengths.iter().copied().filter(|length| *length >= longest).min()
            }
        };
        let most = match &self.padding {
            wit::Padding::Buckets(lengths) => lengths.iter().copied().max().unwrap_or(0),
            wit::Padding::Longest => longest,
            wit::Padding::Fixed(length) => *length,
        };
        length.map(|length| length as usize).ok_or_else(|| {
            invalid(format!(
                "a text has {longest} tokens, but padding makes rows of at most {most}: set \
                 max-length to cut it off"
            ))
        })
    }
}

fn side_of(side: wit::Side) -> Side {
    match side {
        wit::Side::Left => Side::Left,
        wit::Side::Right => Side::Right,
    }
}

pub(super) fn invalid(why: String) -> wit::TokenizerError {
    wit::TokenizerError::InvalidArgument(why)
}

/// The error for the guest.
pub(super) fn error_of(error: TextError) -> wit::TokenizerError {
    match error {
        TextError::Malformed(why) => wit::TokenizerError::Malformed(why),
        TextError::TooLarge(why) => wit::TokenizerError::TooLarge(why),
        TextError::InvalidArgument(why) => wit::TokenizerError::InvalidArgument(why),
        // The callers end the guest instead.
        TextError::Stopped(stopped) => wit::TokenizerError::TooLarge(stopped.to_string()),
    }
}

/// The error of a file.
pub(super) fn file_error(asset: &str, error: &TextError) -> wit::TokenizerError {
    wit::TokenizerError::Malformed(format!("asset {asset:?}: {error}"))
}
