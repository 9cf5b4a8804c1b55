//! A tokenizer: encoding and decoding with what a file has.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use tokenizers::{
    Encoding, Model, NormalizedString, OffsetReferential, OffsetType, PostProcessor,
    TruncationDirection, TruncationStrategy,
};

use crate::decode::{decode, within};
use crate::error::TextError;
use crate::file::{self, Parts};
use crate::guard::guarded;
use crate::limits::{
    DECODED_ID_BYTES, DECODED_IDS_MAX, GROWTH_MAX, GROWTH_SLACK, NORMALIZING_BYTES, TEXT_BYTES_MAX,
    TOKENIZING_BYTES, WORD_BYTES_MAX,
};
use crate::normalize::Run;
use crate::options::{EncodeOptions, Encoded, OffsetUnit, Side};
use crate::work::{Pace, Work};

/// A tokenizer that was read from a file.
pub struct Tokenizer {
    parts: Parts,
    /// It took long for a short text, or its file may make it so.
    is_slow: AtomicBool,
}

/// How many tokens are kept, and which.
#[derive(Clone, Copy)]
struct Truncation {
    max_length: usize,
    direction: TruncationDirection,
    strategy: TruncationStrategy,
}

/// One call of [`Tokenizer::encode`].
struct Job<'a> {
    options: &'a EncodeOptions,
    truncation: Option<Truncation>,
    pace: Pace<'a>,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tokenizer").field("bytes", &self.parts.bytes).finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Read the bytes of a `tokenizer.json`. Takes up to a second for 10 MB.
    ///
    /// # Errors
    /// [`TextError::Malformed`] or [`TextError::TooLarge`], which name the part that is wrong;
    /// [`TextError::Stopped`] if `work` refuses to go on.
    pub fn read(file: &[u8], work: &mut Work<'_>) -> Result<Self, TextError> {
        let parts = guarded("this file", || file::read(file, work))?;
        let is_slow = AtomicBool::new(parts.is_slow);
        Ok(Self { parts, is_slow })
    }

    /// The memory that it takes, in bytes: an estimate.
    pub fn bytes(&self) -> usize {
        self.parts.bytes
    }

    /// Whether a short text may take long: its file is of that kind, or
    /// [`set_slow`](Self::set_slow) was called.
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// It took long for a short text, and may do so again.
    pub fn set_slow(&self) {
        self.is_slow.store(true, Ordering::Relaxed);
    }

    /// The id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.parts.added.token_to_id(token, &self.parts.model)
    }

    /// The id that pads: of the file's `padding`, or of a token that is usually there, or 0.
    pub fn pad_id(&self) -> u32 {
        let usual = || ["[PAD]", "<pad>"].iter().find_map(|token| self.token_to_id(token));
        self.parts.padding.map(|padding| padding.id).or_else(usual).unwrap_or(0)
    }

    /// The type id of padding.
    pub fn pad_type_id(&self) -> u32 {
        self.parts.padding.map_or(0, |padding| padding.type_id)
    }

    /// The side that is padded.
    pub fn pad_side(&self) -> Side {
        self.parts.padding.map_or(Side::Right, |padding| padding.side)
    }

    /// Encode a text, or a pair of texts.
    ///
    /// # Errors
    /// [`TextError::TooLarge`] if a text or a word of it is over a limit, or grows over it;
    /// [`TextError::InvalidArgument`] if `options` do not fit the file; [`TextError::Malformed`] if
    /// the file cannot encode it; [`TextError::Stopped`] if `work` refuses to go on.
    pub fn encode(
        &self,
        text: &str,
        pair: Option<&str>,
        options: &EncodeOptions,
        work: &mut Work<'_>,
    ) -> Result<Encoded, TextError> {
        guarded("this text", || {
            let truncation = self.truncation(options);
            let job = Job { options, truncation, pace: Pace::new(work) };
            let first = self.sequence(text, 0, &job, work)?;
            let second = match pair {
                Some(pair) => Some(self.sequence(pair, 1, &job, work)?),
                None => None,
            };
            let (first, second) = self.truncated(first, second, &job)?;
            let encoding = self.post_processed(first, second, options.add_special_tokens)?;
            Ok(encoded(&encoding, options.offsets.is_some()))
        })
    }

    /// The text of these ids. Ids without a token are left out.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn decode(
        &self,
        ids: &[u32],
        skip_special_tokens: bool,
        work: &mut Work<'_>,
    ) -> Result<String, TextError> {
        if ids.len() > DECODED_IDS_MAX {
            let why = format!("{} ids are given; the limit is {DECODED_IDS_MAX}", ids.len());
            return Err(TextError::TooLarge(why));
        }
        guarded("these ids", || {
            let pace = Pace::new(work);
            (work.reserve)(ids.len() * DECODED_ID_BYTES + self.parts.searching)?;
            let (mut tokens, mut bytes) = (Vec::with_capacity(ids.len()), 0);
            for id in ids {
                pace.ask()?;
                let added = self.parts.added.simple_id_to_token(*id);
                let Some(token) = added.or_else(|| self.parts.model.id_to_token(*id)) else {
                    continue;
                };
                if skip_special_tokens && self.parts.added.is_special_token(&token) {
                    continue;
                }
                (work.reserve)(token.len())?;
                bytes += token.len();
                within(bytes)?;
                tokens.push(token);
            }
            decode(&self.parts.decoder, tokens, &pace, work)
        })
    }

    /// What `options` and the file say of the length.
    fn truncation(&self, options: &EncodeOptions) -> Option<Truncation> {
        let file = self.parts.truncation.as_ref();
        let max_length = options.max_length.or(file.map(|file| file.max_length))?;
        let direction = match options.truncate {
            Some(Side::Left) => TruncationDirection::Left,
            Some(Side::Right) => TruncationDirection::Right,
            None => file.map(|file| file.direction).unwrap_or_default(),
        };
        let strategy = file.map(|file| file.strategy).unwrap_or_default();
        Some(Truncation { max_length, direction, strategy })
    }

    /// The tokens of one text, without special tokens.
    fn sequence(
        &self,
        text: &str,
        type_id: u32,
        job: &Job<'_>,
        work: &mut Work<'_>,
    ) -> Result<Encoding, TextError> {
        let Job { options, truncation, pace } = job;
        if text.len() > TEXT_BYTES_MAX {
            let why = format!("a text has {} bytes; the limit is {TEXT_BYTES_MAX}", text.len());
            return Err(TextError::TooLarge(why));
        }
        let normalizing = (GROWTH_MAX * text.len() + GROWTH_SLACK) * NORMALIZING_BYTES;
        (work.reserve)(normalizing + self.parts.searching)?;
        let run = Run::new(&self.parts.normalizer, pace, GROWTH_SLACK);
        let mut words = self.parts.added.extract_and_normalize(Some(&run), text);
        run.end()?;
        let lengths = words.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let bytes: usize = lengths.iter().map(|(part, ..)| part.len()).sum();
        (work.reserve)(bytes * TOKENIZING_BYTES)?;
        for step in &self.parts.splitter {
            step.run(&mut words, pace, work)?;
        }
        let tokens = |word: &NormalizedString| {
            pace.ask()?;
            let (word, bytes) = (word.get(), word.get().len());
            if bytes > WORD_BYTES_MAX {
                let why = format!("a word has {bytes} bytes; the limit is {WORD_BYTES_MAX}");
                return Err(TextError::TooLarge(why).into());
            }
            let tokenize = || self.parts.model.tokenize(word);
            match &self.parts.words {
                Some(words) => words.tokens(word, tokenize),
                None => tokenize(),
            }
        };
        // Words become tokens one by one, so those that would be cut off need not.
        let tokenized = match *truncation {
            Some(Truncation { max_length, direction, strategy })
                if strategy != TruncationStrategy::OnlySecond || type_id != 0 =>
            {
                words.tokenize_with_limit(tokens, max_length, direction)
            }
            _ => words.tokenize(tokens),
        };
        let unit = match options.offsets {
            None => OffsetType::None,
            Some(OffsetUnit::Characters) => OffsetType::Char,
            Some(OffsetUnit::Bytes) => OffsetType::Byte,
        };
        let encoding = tokenized.and_then(|()| words.into_encoding(None, type_id, unit));
        let mut encoding = encoding.map_err(|error| TextError::of("model", error))?;
        // Without offsets the library forgets it.
        encoding.set_type_ids(vec![type_id; encoding.len()]);
        Ok(encoding)
    }

    /// The tokens that are kept. The library keeps all others, too, as parts of the same length
    /// that overflow, and makes all pairs of them.
    fn truncated(
        &self,
        first: Encoding,
        second: Option<Encoding>,
        job: &Job<'_>,
    ) -> Result<(Encoding, Option<Encoding>), TextError> {
        let Some(Truncation { max_length, direction, strategy }) = job.truncation else {
            return Ok((first, second));
        };
        let added = match &self.parts.post_processor {
            Some(processor) if job.options.add_special_tokens => {
                processor.added_tokens(second.is_some())
            }
            _ => 0,
        };
        let Some(room) = max_length.checked_sub(added) else {
            return Err(TextError::InvalidArgument(format!(
                "max-length is {max_length}, but the tokenizer adds {added} special tokens"
            )));
        };
        let second_length = second.as_ref().map(Encoding::len);
        let (keep_first, keep_second) = kept(first.len(), second_length, room, strategy)?;
        let first = cut(first, keep_first, direction);
        Ok((first, second.map(|second| cut(second, keep_second, direction))))
    }

    fn post_processed(
        &self,
        first: Encoding,
        second: Option<Encoding>,
        add_special_tokens: bool,
    ) -> Result<Encoding, TextError> {
        let processed = match &self.parts.post_processor {
            Some(processor) => processor.process(first, second, add_special_tokens),
            None => Ok(Encoding::merge(std::iter::once(first).chain(second), false)),
        };
        processed.map_err(|error| TextError::of("post_processor", error))
    }
}

/// How many tokens are kept of texts with so many, if `room` tokens are kept in all; as the library
/// decides it.
fn kept(
    first: usize,
    second: Option<usize>,
    room: usize,
    strategy: TruncationStrategy,
) -> Result<(usize, usize), TextError> {
    let all = first + second.unwrap_or(0);
    if all <= room {
        return Ok((first, second.unwrap_or(0)));
    }
    if room == 0 {
        return Ok((0, 0));
    }
    let over = all - room;
    let too_short = |length: usize| {
        let why = format!(
            "{over} tokens are too many, but the file truncates only one text of each pair, which \
             has {length}"
        );
        Err(TextError::InvalidArgument(why))
    };
    match (strategy, second) {
        (TruncationStrategy::OnlyFirst, _) if first <= over => too_short(first),
        (TruncationStrategy::OnlyFirst, _) => Ok((first - over, second.unwrap_or(0))),
        (TruncationStrategy::OnlySecond, None) => too_short(0),
        (TruncationStrategy::OnlySecond, Some(second)) if second <= over => too_short(second),
        (TruncationStrategy::OnlySecond, Some(second)) => Ok((first, second - over)),
        (TruncationStrategy::LongestFirst, None) => Ok((room, 0)),
        (TruncationStrategy::LongestFirst, Some(second)) => {
            let shorter = first.min(second);
            let longer = if shorter > room { shorter } else { shorter.max(room - shorter) };
            let (shorter, longer) = match shorter + longer > room {
                true => (room / 2, room / 2 + room % 2),
                false => (shorter, longer),
            };
            Ok(if first > second { (longer, shorter) } else { (shorter, longer) })
        }
    }
}

/// The first or the last `keep` tokens.
fn cut(encoding: Encoding, keep: usize, direction: TruncationDirection) -> Encoding {
    let length = encoding.len();
    if keep >= length {
        return encoding;
    }
    let range = match direction {
        TruncationDirection::Left => length - keep..length,
        TruncationDirection::Right => 0..keep,
    };
    Encoding::new(
        encoding.get_ids()[range.clone()].to_vec(),
        encoding.get_type_ids()[range.clone()].to_vec(),
        encoding.get_tokens()[range.clone()].to_vec(),
        encoding.get_word_ids()[range.clone()].to_vec(),
        encoding.get_offsets()[range.clone()].to_vec(),
        encoding.get_special_tokens_mask()[range.clone()].to_vec(),
        encoding.get_attention_mask()[range].to_vec(),
        Vec::new(),
        Default::default(),
    )
}

fn encoded(encoding: &Encoding, with_offsets: bool) -> Encoded {
    let offset = |(start, end): &(usize, usize)| (*start as u32, *end as u32);
    Encoded {
        ids: encoding.get_ids().to_vec(),
        type_ids: encoding.get_type_ids().to_vec(),
        offsets: match with_offsets {
            true => encoding.get_offsets().iter().map(offset).collect(),
            false => Vec::new(),
        },
    }
}
