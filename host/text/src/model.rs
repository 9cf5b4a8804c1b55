//! The model of a file: the vocabulary, and how words become tokens.
//!
//! It is read here and built with the library's builders, because the library's readers believe
//! what they get: a token of a megabyte in Unigram's vocabulary makes a trie that is so deep.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::ModelWrapper;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::wordpiece::WordPiece;

use crate::error::{TextError, shown};
use crate::limits::{
    AFFIX_BYTES_MAX, ENTRY_BYTES, MERGE_BYTES, NODE_BYTES, QUICK_UNIGRAM_MAX, TOKEN_BYTES_MAX,
    UNIGRAM_PREFIXES_MAX, UNIGRAM_TOKEN_BYTES_MAX, WORD_CHARS_MAX,
};
use crate::words::{self, Words};
use crate::work::Work;

/// The model as a file has it.
#[derive(Deserialize)]
struct ModelFile<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: &'a RawValue,
    #[serde(borrow)]
    merges: Option<&'a RawValue>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    dropout: Option<f32>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    unk_id: Option<usize>,
    max_input_chars_per_word: Option<usize>,
}

impl ModelFile<'_> {
    /// The type. Early files do not have it, and the library tells it from the other fields.
    fn kind(&self) -> &str {
        match &self.kind {
            Some(kind) => kind,
            None if self.merges.is_some() => "BPE",
            None if self.vocab.get().starts_with('[') => "Unigram",
            None if self.continuing_subword_prefix.is_some()
                && self.max_input_chars_per_word.is_some() =>
            {
                "WordPiece"
            }
            None => "WordLevel",
        }
    }
}

/// A model, and the memory that it takes.
pub(crate) struct Model {
    pub(crate) model: ModelWrapper,
    /// The words that it keeps.
    pub(crate) words: Option<Words>,
    pub(crate) bytes: usize,
    /// It may take long for a short text.
    pub(crate) is_slow: bool,
}

/// Read the part `model`.
pub(crate) fn read(part: &RawValue, work: &mut Work<'_>) -> Result<Model, TextError> {
    let file: ModelFile<'_> =
        serde_json::from_str(part.get()).map_err(|error| TextError::of_json("model", &error))?;
    let affixes = [
        ("unk_token", &file.unk_token),
        ("continuing_subword_prefix", &file.continuing_subword_prefix),
        ("end_of_word_suffix", &file.end_of_word_suffix),
    ];
    for (name, affix) in affixes {
        let bytes = affix.as_ref().map_or(0, String::len);
        if bytes > AFFIX_BYTES_MAX {
            let why = format!("model.{name} has {bytes} bytes; the limit is {AFFIX_BYTES_MAX}");
            return Err(TextError::TooLarge(why));
        }
    }
    match file.kind() {
        "BPE" => bpe(file),
        "WordPiece" => word_piece(file),
        "WordLevel" => {
            let (vocab, bytes) = vocabulary(file.vocab)?;
            let mut builder = WordLevel::builder().vocab(vocab);
            if let Some(token) = file.unk_token {
                builder = builder.unk_token(token);
            }
            let model = builder.build().map_err(|error| TextError::of("model", error))?;
            Ok(Model { model: model.into(), words: None, bytes, is_slow: false })
        }
        "Unigram" => unigram(&file, work),
        other => Err(TextError::Malformed(format!(
            "model.type is {:?}: must be one of BPE, Unigram, WordLevel, WordPiece",
            shown(other)
        ))),
    }
}

/// Tokens with their ids, and the memory that a model with them takes: it has them both ways.
fn vocabulary(vocab: &RawValue) -> Result<(Vocab, usize), TextError> {
    let vocab: Vocab = serde_json::from_str(vocab.get())
        .map_err(|error| TextError::of_json("model.vocab", &error))?;
    let mut bytes = vocab.len() * ENTRY_BYTES;
    for token in vocab.keys() {
        check_token(token, TOKEN_BYTES_MAX)?;
        bytes += 2 * token.len();
    }
    Ok((vocab, bytes))
}

fn check_token(token: &str, limit: usize) -> Result<(), TextError> {
    if token.len() <= limit {
        return Ok(());
    }
    let (token, bytes) = (shown(token), token.len());
    let why = format!("model.vocab: the token {token:?} has {bytes} bytes; the limit is {limit}");
    Err(TextError::TooLarge(why))
}

fn bpe(file: ModelFile<'_>) -> Result<Model, TextError> {
    let (vocab, mut bytes) = vocabulary(file.vocab)?;
    if file.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err(TextError::Malformed(
            "model.dropout must be null here: it makes other ids each time".into(),
        ));
    }
    // The library takes the text of a token by its id.
    let ids: HashSet<u32> = vocab.values().copied().collect();
    if ids.len() != vocab.len() {
        return Err(TextError::Malformed("model.vocab has the same id for two tokens".into()));
    }
    let Some(merges) = file.merges else {
        return Err(TextError::Malformed("model.merges is missing".into()));
    };
    let merges = read_merges(merges)?;
    bytes += merges.len() * MERGE_BYTES;
    check_merges(&merges, &vocab, file.continuing_subword_prefix.as_deref().unwrap_or_default())?;
    let mut builder = BPE::builder()
        .vocab_and_merges(vocab, merges)
        // The cache belongs to the thread, and outlives the model.
        .cache_capacity(0)
        .fuse_unk(file.fuse_unk.unwrap_or(false))
        .byte_fallback(file.byte_fallback.unwrap_or(false))
        .ignore_merges(file.ignore_merges.unwrap_or(false));
    if let Some(token) = file.unk_token {
        builder = builder.unk_token(token);
    }
    if let Some(prefix) = file.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix);
    }
    if let Some(suffix) = file.end_of_word_suffix {
        builder = builder.end_of_word_suffix(suffix);
    }
    let model = builder.build().map_err(|error| TextError::of("model", error))?;
    bytes += words::BYTES;
    Ok(Model { model: model.into(), words: Some(Words::new()), bytes, is_slow: false })
}

/// The merges: pairs of tokens, or, as older files have them, texts with a space between both.
fn read_merges(merges: &RawValue) -> Result<Merges, TextError> {
    let of_json = |error: serde_json::Error| TextError::of_json("model.merges", &error);
    let text = merges.get();
    if text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('[')) {
        return serde_json::from_str(text).map_err(of_json);
    }
    let lines: Vec<String> = serde_json::from_str(text).map_err(of_json)?;
    let lines = lines.iter().filter(|line| !line.starts_with("#version")).enumerate();
    let pairs = lines.map(|(at, line)| match line.split_once(' ') {
        Some((left, right)) if !right.contains(' ') => Ok((left.to_owned(), right.to_owned())),
        _ => Err(TextError::Malformed(format!(
            "model.merges[{at}] is {:?}: must be two tokens with a space between them",
            shown(line)
        ))),
    });
    pairs.collect()
}

/// The library cuts `prefix` off each second token without looking, and copies both into a buffer
/// for the longest token of the vocabulary.
fn check_merges(merges: &Merges, vocab: &Vocab, prefix: &str) -> Result<(), TextError> {
    let mut merged = String::new();
    for (at, (left, right)) in merges.iter().enumerate() {
        let fault = |why: &str| {
            let (left, right) = (shown(left), shown(right));
            let why = format!("model.merges[{at}], {left:?} and {right:?}: {why}");
            Err(TextError::Malformed(why))
        };
        let Some(rest) = right.strip_prefix(prefix) else {
            return fault("the second does not begin with continuing_subword_prefix");
        };
        merged.clear();
        merged.push_str(left);
        merged.push_str(rest);
        if [left, right, &merged].iter().any(|token| !vocab.contains_key(*token)) {
            return fault("the vocabulary must have both, and what they make");
        }
    }
    Ok(())
}

fn word_piece(file: ModelFile<'_>) -> Result<Model, TextError> {
    let (vocab, bytes) = vocabulary(file.vocab)?;
    let mut builder = WordPiece::builder().vocab(vocab);
    if let Some(most) = file.max_input_chars_per_word {
        if most > WORD_CHARS_MAX {
            return Err(TextError::TooLarge(format!(
                "model.max_input_chars_per_word is {most}; the limit is {WORD_CHARS_MAX}"
            )));
        }
        builder = builder.max_input_chars_per_word(most);
    }
    if let Some(token) = file.unk_token {
        builder = builder.unk_token(token);
    }
    if let Some(prefix) = file.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix);
    }
    let model = builder.build().map_err(|error| TextError::of("model", error))?;
    Ok(Model { model: model.into(), words: None, bytes, is_slow: false })
}

fn unigram(file: &ModelFile<'_>, work: &mut Work<'_>) -> Result<Model, TextError> {
    let vocab: Vec<(String, f64)> = serde_json::from_str(file.vocab.get())
        .map_err(|error| TextError::of_json("model.vocab", &error))?;
    for (token, _) in &vocab {
        check_token(token, UNIGRAM_TOKEN_BYTES_MAX)?;
    }
    let texts: usize = vocab.iter().map(|(token, _)| token.len()).sum();
    let longest = vocab.iter().map(|(token, _)| token.len()).max().unwrap_or(0);
    let Trie { nodes, prefixes } = trie_of(&vocab);
    if prefixes > UNIGRAM_PREFIXES_MAX {
        return Err(TextError::TooLarge(format!(
            "model.vocab has {prefixes} tokens of which each begins with the one before; the limit \
             is {UNIGRAM_PREFIXES_MAX}"
        )));
    }
    let trie = NODE_BYTES * nodes;
    (work.reserve)(trie)?;
    let bytes = vocab.len() * ENTRY_BYTES + 2 * texts + trie;
    let byte_fallback = file.byte_fallback.unwrap_or(false);
    let mut model = Unigram::from(vocab, file.unk_id, byte_fallback)
        .map_err(|error| TextError::of("model", error))?;
    // The calls of all threads would share its lock, and nobody would count its memory.
    model.resize_cache(0);
    let is_slow = prefixes * longest > QUICK_UNIGRAM_MAX;
    Ok(Model { model: model.into(), words: None, bytes, is_slow })
}

/// How large the trie of a vocabulary is.
struct Trie {
    nodes: usize,
    /// The most tokens on one way from its root.
    prefixes: usize,
}

/// The trie of these tokens.
fn trie_of(vocab: &[(String, f64)]) -> Trie {
    let mut tokens: Vec<&str> = vocab.iter().map(|(token, _)| token.as_str()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let (mut last, mut way) = ("", Vec::<&str>::new());
    let mut trie = Trie { nodes: 1, prefixes: 0 };
    for token in tokens {
        let shared = token.bytes().zip(last.bytes()).take_while(|(one, other)| one == other);
        trie.nodes += token.len() - shared.count();
        last = token;
        while way.last().is_some_and(|shorter| !token.starts_with(shorter)) {
            way.pop();
        }
        way.push(token);
        trie.prefixes = trie.prefixes.max(way.len());
    }
    trie
}
