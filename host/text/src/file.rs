//! Reading a `tokenizer.json`.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::{
    AddedToken, AddedVocabulary, ModelWrapper, PaddingDirection, PaddingParams,
    PostProcessorWrapper, TruncationParams,
};

use crate::decode::{self, DecodeStep};
use crate::error::{TextError, shown};
use crate::expression::Expressions;
use crate::limits::{
    ADDED_BYTE_BYTES, ADDED_BYTES_MAX, ADDED_TOKEN_BYTES_MAX, ADDED_TOKENS_MAX, ENTRY_BYTES,
    FILE_BYTES_MAX, GROWTH_MAX, GROWTH_SLACK, PARTS_BYTES_MAX, QUICK_PLACES_MAX, READ_PART_BYTES,
    READ_TEXT_BYTES,
};
use crate::model::{self, Model};
use crate::normalize::{self, NormalizeStep, Run};
use crate::options::Side;
use crate::postprocess;
use crate::split::{self, SplitStep};
use crate::words::Words;
use crate::work::{Pace, Work};

/// The file as it stands. Python reads it likewise: what it does not know, it leaves out.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow)]
    added_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    normalizer: Option<&'a RawValue>,
    #[serde(borrow)]
    pre_tokenizer: Option<&'a RawValue>,
    #[serde(borrow)]
    post_processor: Option<&'a RawValue>,
    #[serde(borrow)]
    decoder: Option<&'a RawValue>,
    #[serde(borrow)]
    truncation: Option<&'a RawValue>,
    #[serde(borrow)]
    padding: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AddedTokenFile {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// The padding of a file: which token, and on which side.
#[derive(Clone, Copy)]
pub(crate) struct Padding {
    pub(crate) id: u32,
    pub(crate) type_id: u32,
    pub(crate) side: Side,
}

/// What a file has.
pub(crate) struct Parts {
    pub(crate) model: ModelWrapper,
    pub(crate) words: Option<Words>,
    pub(crate) added: AddedVocabulary,
    pub(crate) normalizer: Vec<NormalizeStep>,
    pub(crate) splitter: Vec<SplitStep>,
    pub(crate) post_processor: Option<PostProcessorWrapper>,
    pub(crate) decoder: Vec<DecodeStep>,
    pub(crate) truncation: Option<TruncationParams>,
    pub(crate) padding: Option<Padding>,
    /// The memory that all this takes.
    pub(crate) bytes: usize,
    /// The memory that a text takes for searches with the expressions.
    pub(crate) searching: usize,
    /// It may take long for a short text.
    pub(crate) is_slow: bool,
}

/// Read a file.
pub(crate) fn read(file: &[u8], work: &mut Work<'_>) -> Result<Parts, TextError> {
    if file.len() > FILE_BYTES_MAX {
        let bytes = file.len();
        let why = format!("the file has {bytes} bytes; the limit is {FILE_BYTES_MAX}");
        return Err(TextError::TooLarge(why));
    }
    // Reading notes each bracket that is open, and later each text has at most these bytes.
    (work.reserve)(2 * file.len())?;
    let document: Document<'_> = serde_json::from_slice(file)
        .map_err(|error| TextError::of_json("it is not a tokenizer.json", &error))?;
    let parts = [
        document.normalizer,
        document.pre_tokenizer,
        document.post_processor,
        document.decoder,
        document.truncation,
        document.padding,
    ];
    let part_bytes: usize = parts.iter().flatten().map(|part| part.get().len()).sum();
    if part_bytes > PARTS_BYTES_MAX {
        return Err(TextError::TooLarge(format!(
            "the parts besides model and added_tokens have {part_bytes} bytes; the limit is \
             {PARTS_BYTES_MAX}"
        )));
    }
    let texts = file.iter().filter(|byte| **byte == b'"').count() / 2;
    (work.reserve)(texts * READ_TEXT_BYTES + part_bytes * READ_PART_BYTES)?;
    (work.check)()?;

    let mut expressions = Expressions::new(work);
    let normalizer = normalize::read(document.normalizer, &mut expressions)?;
    let splitter = split::read(document.pre_tokenizer, &mut expressions)?;
    let decoder = decode::read(document.decoder, &mut expressions)?;
    let Expressions { bytes: expression_bytes, searching, places_max, .. } = expressions;
    let post_processor = postprocess::read(document.post_processor)?;
    let truncation = small("truncation", document.truncation)?;
    let padding = small("padding", document.padding)?.map(|padding: PaddingParams| Padding {
        id: padding.pad_id,
        type_id: padding.pad_type_id,
        side: match padding.direction {
            PaddingDirection::Left => Side::Left,
            PaddingDirection::Right => Side::Right,
        },
    });
    (work.check)()?;
    let Model { model, words, bytes: model_bytes, is_slow } = model::read(document.model, work)?;
    (work.check)()?;
    let (added, added_bytes) = read_added(document.added_tokens, &normalizer, &model, work)?;
    let bytes = model_bytes + added_bytes + 4 * part_bytes + expression_bytes;
    Ok(Parts {
        model,
        words,
        added,
        normalizer,
        splitter,
        post_processor,
        decoder,
        truncation,
        padding,
        bytes,
        searching,
        is_slow: is_slow || places_max > QUICK_PLACES_MAX,
    })
}

/// A part of the library's own, if the file has it.
fn small<'a, T: Deserialize<'a>>(
    place: &str,
    part: Option<&'a RawValue>,
) -> Result<Option<T>, TextError> {
    let parsed = part.map(|part| serde_json::from_str(part.get())).transpose();
    parsed.map_err(|error| TextError::of_json(place, &error))
}

/// The added tokens, and the memory that they take.
fn read_added(
    part: Option<&RawValue>,
    normalizer: &[NormalizeStep],
    model: &ModelWrapper,
    work: &mut Work<'_>,
) -> Result<(AddedVocabulary, usize), TextError> {
    let tokens: Vec<AddedTokenFile> = small("added_tokens", part)?.unwrap_or_default();
    let texts: usize = tokens.iter().map(|token| token.content.len()).sum();
    if tokens.len() > ADDED_TOKENS_MAX || texts > ADDED_BYTES_MAX {
        let count = tokens.len();
        return Err(TextError::TooLarge(format!(
            "added_tokens has {count} tokens of {texts} bytes in all; the limits are \
             {ADDED_TOKENS_MAX} and {ADDED_BYTES_MAX}"
        )));
    }
    // An automaton over their bytes, once more while it is built.
    let normalized = match normalizer.is_empty() {
        true => texts,
        false => {
            let changed = tokens.iter().filter(|token| token.normalized);
            let changed: usize = changed.map(|token| token.content.len()).sum();
            texts + (GROWTH_MAX - 1) * changed + GROWTH_SLACK
        }
    };
    let bytes = tokens.len() * ENTRY_BYTES * 2 + (texts + normalized) * ADDED_BYTE_BYTES;
    (work.reserve)(2 * bytes)?;
    let added_token = |token: AddedTokenFile| AddedToken {
        content: token.content,
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: token.normalized,
        special: token.special,
    };
    let tokens: Vec<AddedToken> = tokens.into_iter().map(added_token).collect();
    for token in &tokens {
        check_added(token, &token.content)?;
    }
    let pace = Pace::new(work);
    let run = Run::new(normalizer, &pace, GROWTH_SLACK);
    let mut added = AddedVocabulary::new();
    added
        .add_tokens(tokens, model, Some(&run))
        .map_err(|error| TextError::of("added_tokens", error))?;
    // Those that are looked for in normalized texts are normalized, too.
    for (id, token) in added.get_added_tokens_decoder() {
        check_added(token, &added.simple_id_to_token(*id).unwrap_or_default())?;
    }
    Ok((added, bytes))
}

/// Check a token, which texts have in this form. The library takes the white space beside a token
/// into it: if the token were white space itself, each of them would get all that follow.
fn check_added(token: &AddedToken, form: &str) -> Result<(), TextError> {
    let name = || shown(&token.content);
    if form.len() > ADDED_TOKEN_BYTES_MAX {
        return Err(TextError::TooLarge(format!(
            "added_tokens: {:?} has {} bytes; the limit is {ADDED_TOKEN_BYTES_MAX}",
            name(),
            form.len()
        )));
    }
    if (token.lstrip || token.rstrip) && form.trim() != form {
        return Err(TextError::Malformed(format!(
            "added_tokens: {:?} has lstrip or rstrip, so it must not begin or end with white space",
            name()
        )));
    }
    Ok(())
}
