//! Tokens of texts, made by the host as a `tokenizer.json` of Hugging Face's tokenizers says.
//!
//! ```no_run
//! # use gristmill_plugin::tokenizer::{self, Options};
//! # use gristmill_plugin::{Dtype, Failure, Prepared, Request};
//! # fn example(request: &Request) -> Result<Prepared, Failure> {
//! // Neither the texts nor the ids pass through the plugin.
//! let texts = request.json_tensor("/texts", &[], Dtype::String)?;
//! let options = Options { max_length: Some(256), ..tokenizer::options() };
//! let tokens = tokenizer::encode("tokenizer.json", &texts, &options)?;
//! # Ok(
//! Prepared::new()
//!     .input("input_ids", tokens.ids)
//!     .input("attention_mask", tokens.attention_mask)
//! # )
//! # }
//! ```
//!
//! The file is among the assets of the plugin or of its pipeline, under the name that is given
//! here. The host reads it once, at the first call that names it. Texts are at most 4096 in a call,
//! with at most 128 KiB each and 4 MiB in all.
//!
//! `?` gives 422 to the client for texts that are over a limit ([`TokenizerError::TooLarge`]), and
//! 500 for the other errors, with the text in the log.
//!
//! In tests [`testing::tokenizer`](crate::testing::tokenizer) stands in for a file.

use crate::bindings::tokenizer as host;
pub use crate::bindings::tokenizer::{
    Encoded, OffsetUnit, Options, Padding, Side, Texts, TokenizerError,
};
use crate::{Blob, Dtype, Tensor};

/// Options with which rows are as long as the longest text, with special tokens, as int64. Tokens
/// are cut off if the file says so.
pub fn options() -> Options {
    Options {
        max_length: None,
        truncate: None,
        padding: Padding::Longest,
        pad: None,
        pad_id: None,
        add_special_tokens: true,
        dtype: Dtype::Int64,
        offsets: None,
    }
}

/// The tokens of texts: one row for each. Texts are a list, a tensor of strings, or a blob in
/// UTF-8.
///
/// # Errors
/// Why they have none.
pub fn encode<'a>(
    asset: &str,
    texts: impl Into<Texts<'a>>,
    options: &Options,
) -> Result<Encoded, TokenizerError> {
    host::encode(asset, &texts.into(), None, options)
}

/// The tokens of pairs of texts, as a cross-encoder reads them: one row for each pair.
///
/// # Errors
/// Why they have none.
pub fn encode_pairs<'a, 'b>(
    asset: &str,
    texts: impl Into<Texts<'a>>,
    pairs: impl Into<Texts<'b>>,
    options: &Options,
) -> Result<Encoded, TokenizerError> {
    host::encode(asset, &texts.into(), Some(&pairs.into()), options)
}

/// The texts of ids, one for each row of an integer tensor.
///
/// # Errors
/// Why there are none.
pub fn decode(
    asset: &str,
    ids: &Tensor,
    skip_special_tokens: bool,
) -> Result<Vec<String>, TokenizerError> {
    host::decode(asset, ids, skip_special_tokens)
}

/// The id of a token, such as `[MASK]`. None if there is no such token.
///
/// # Errors
/// [`TokenizerError::NoAsset`] or [`TokenizerError::Malformed`].
pub fn token_to_id(asset: &str, token: &str) -> Result<Option<u32>, TokenizerError> {
    host::token_to_id(asset, token)
}

impl<'a> From<&'a Tensor> for Texts<'a> {
    fn from(texts: &'a Tensor) -> Self {
        Self::Tensor(texts)
    }
}

impl<'a> From<&'a Blob> for Texts<'a> {
    fn from(text: &'a Blob) -> Self {
        Self::Blob(text)
    }
}

impl From<&str> for Texts<'_> {
    fn from(text: &str) -> Self {
        Self::List(vec![text.to_owned()])
    }
}

impl<S: AsRef<str>> From<&[S]> for Texts<'_> {
    fn from(texts: &[S]) -> Self {
        Self::List(texts.iter().map(|text| text.as_ref().to_owned()).collect())
    }
}

impl<S: AsRef<str>, const N: usize> From<&[S; N]> for Texts<'_> {
    fn from(texts: &[S; N]) -> Self {
        texts.as_slice().into()
    }
}

impl<S: AsRef<str>> From<&Vec<S>> for Texts<'_> {
    fn from(texts: &Vec<S>) -> Self {
        texts.as_slice().into()
    }
}

impl TokenizerError {
    /// What is wrong, and where.
    pub fn text(&self) -> &str {
        match self {
            Self::NoAsset(text)
            | Self::Malformed(text)
            | Self::TooLarge(text)
            | Self::InvalidArgument(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, testing};

    const WORDS: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"];

    fn ids(tokens: &Encoded) -> Vec<i64> {
        tokens.ids.view::<i64>().unwrap().as_slice().to_vec()
    }

    #[test]
    fn texts_become_rows_of_one_length() {
        let _words = testing::tokenizer("words", &WORDS);
        let tokens = encode("words", &["good bad", "ugly"], &options()).unwrap();
        assert_eq!(tokens.ids.dims(), [2, 4]);
        assert_eq!(ids(&tokens), [2, 4, 5, 3, 2, 1, 3, 0]);
        assert_eq!(tokens.lengths, [4, 3]);
        let mask = tokens.attention_mask.view::<i64>().unwrap();
        assert_eq!(mask.as_slice(), [1, 1, 1, 1, 1, 1, 1, 0]);
        let strings = Tensor::from_strings(&[1], &["bad"]).unwrap();
        let padding = Padding::Buckets(vec![8, 4]);
        let tokens = encode("words", &strings, &Options { padding, ..options() }).unwrap();
        assert_eq!(ids(&tokens), [2, 5, 3, 0]);
        let pairs = encode_pairs("words", "good", "bad", &options()).unwrap();
        assert_eq!(ids(&pairs), [2, 4, 3, 5, 3]);
        assert_eq!(pairs.type_ids.view::<i64>().unwrap().as_slice(), [0, 0, 0, 1, 1]);
        let short = Options { max_length: Some(3), ..options() };
        assert_eq!(ids(&encode("words", "good bad", &short).unwrap()), [2, 4, 3]);
    }

    #[test]
    fn ids_become_texts() {
        let _words = testing::tokenizer("words", &WORDS);
        let ids = Tensor::from_slice(&[2, 3], &[2_i64, 4, 3, 5, 5, 0]).unwrap();
        assert_eq!(decode("words", &ids, true).unwrap(), ["good", "bad bad"]);
        assert_eq!(token_to_id("words", "bad"), Ok(Some(5)));
        assert_eq!(token_to_id("words", "ugly"), Ok(None));
    }

    #[test]
    fn faults_are_those_of_the_client_or_of_the_plugin() {
        let refused = encode("words", "good", &options()).unwrap_err();
        assert!(matches!(&refused, TokenizerError::NoAsset(_)));
        assert_eq!(Failure::from(refused.clone()), Failure::internal(refused.text()));
        let long = TokenizerError::TooLarge("too long".into());
        assert_eq!(Failure::from(long), Failure::Unprocessable("too long".into()));
        let _words = testing::tokenizer("words", &WORDS);
        let fixed = Options { padding: Padding::Fixed(2), ..options() };
        let refused = encode("words", "good", &fixed).unwrap_err();
        assert!(matches!(&refused, TokenizerError::InvalidArgument(text) if text.contains("3")));
    }
}
