//! The expressions of a file: regular ones, or literal texts.
//!
//! Regular expressions run on automata: the search for one match takes time in proportion to the
//! text and to the places of the expression. Nothing can stop a search, so what it may cost is
//! checked before it. Look-around, back-references and atomic groups are refused: the library runs
//! them by going back, and nothing bounds how often. One look-around is known, the end of the
//! expressions of GPT-2, Llama 3 and Qwen ([`SPACES`]).

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use regex_automata::meta::{Cache, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::iter::Searcher;
use regex_automata::{Input, Match};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};
use serde::Deserialize;
use tokenizers::Offsets;
use tokenizers::tokenizer::pattern::Pattern;

use crate::error::{TextError, shown};
use crate::limits::{
    COMPILING_BYTES, EXPRESSION_BYTES_MAX, EXPRESSION_PLACES_MAX, EXPRESSION_SIZE_MAX,
    EXPRESSIONS_MAX, LAZY_AUTOMATON_BYTES, SEARCH_COST_MAX, VISITED_BYTES,
};
use crate::work::{Pace, Work};

/// White space, without its last character if a word follows.
const SPACES: &str = r"\s+(?!\S)|\s+";

/// The caches of an expression that stay for the next searches.
const CACHES_KEPT: usize = 2;

/// An expression as a file has it.
#[derive(Deserialize)]
pub(crate) enum Written {
    String(String),
    Regex(String),
}

/// A compiled expression.
pub(crate) enum Expression {
    Literal(String),
    Regex(Box<Compiled>),
}

/// A compiled regular expression.
pub(crate) struct Compiled {
    regex: Regex,
    /// Where it stands in the file.
    part: String,
    /// What [`places`] says of it.
    places: usize,
    /// Which of its patterns stands for [`SPACES`], if it ends with them.
    spaces: Option<usize>,
    caches: Mutex<Vec<Cache>>,
}

/// The regular expressions of a file that is being read.
pub(crate) struct Expressions<'a, 'w> {
    work: &'a mut Work<'w>,
    count: usize,
    /// The memory that they take.
    pub(crate) bytes: usize,
    /// The memory that one text takes besides, for searches with all of them.
    pub(crate) searching: usize,
    /// The most places of one of them.
    pub(crate) places_max: usize,
}

impl Written {
    /// The compiled form. `part` names where it stands.
    pub(crate) fn compile(
        self,
        part: &str,
        expressions: &mut Expressions<'_, '_>,
    ) -> Result<Expression, TextError> {
        let (Self::String(text) | Self::Regex(text)) = &self;
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(TextError::TooLarge(format!(
                "{part}.pattern has {} bytes; the limit is {EXPRESSION_BYTES_MAX}",
                text.len()
            )));
        }
        match self {
            Self::String(text) if text.is_empty() => {
                Err(TextError::Malformed(format!("{part}.pattern is an empty text")))
            }
            Self::String(text) => Ok(Expression::Literal(text)),
            Self::Regex(pattern) => {
                let compiled = expressions.compile(part, &pattern)?;
                Ok(Expression::Regex(Box::new(compiled)))
            }
        }
    }
}

impl<'a, 'w> Expressions<'a, 'w> {
    pub(crate) fn new(work: &'a mut Work<'w>) -> Self {
        Self { work, count: 0, bytes: 0, searching: 0, places_max: 0 }
    }

    fn compile(&mut self, part: &str, pattern: &str) -> Result<Compiled, TextError> {
        if self.count == EXPRESSIONS_MAX {
            return Err(TextError::TooLarge(format!(
                "{part}.pattern: the limit is {EXPRESSIONS_MAX} regular expressions in a file"
            )));
        }
        self.count += 1;
        (self.work.check)()?;
        (self.work.reserve)(COMPILING_BYTES)?;
        let refused = |why: &str| {
            let pattern = shown(pattern);
            TextError::Malformed(format!("{part}.pattern {pattern:?}: {}", shown(why)))
        };
        let (before, has_spaces) = match pattern.strip_suffix(SPACES) {
            Some("") => (None, true),
            Some(before) if before.ends_with('|') => (Some(&before[..before.len() - 1]), true),
            _ => (Some(pattern), false),
        };
        // The first of two patterns that match at the same place is taken, as with `|`.
        let sources = before.into_iter().chain(has_spaces.then_some(r"\s+"));
        let mut parsed: Vec<Hir> = Vec::new();
        if has_flag_m(pattern) {
            return Err(refused(
                "the flag `m` is not supported: write `[\\s\\S]` for any character",
            ));
        }
        // `^` and `$` match at each line, as in Oniguruma, with which Python's package searches.
        // A parser reads one pattern.
        let parser = || ParserBuilder::new().multi_line(true).build();
        for source in sources {
            parsed.push(parser().parse(source).map_err(|error| refused(&fault(&error)))?);
        }
        let mut count = 0_usize;
        for hir in &parsed {
            count = count.saturating_add(places(hir).map_err(refused)?);
        }
        if count > EXPRESSION_PLACES_MAX {
            return Err(refused(&format!(
                "with its repeats it has {count} characters, classes and alternatives; the limit \
                 is {EXPRESSION_PLACES_MAX}"
            )));
        }
        let config = Regex::config()
            .nfa_size_limit(Some(EXPRESSION_SIZE_MAX))
            .hybrid_cache_capacity(LAZY_AUTOMATON_BYTES)
            .onepass(false)
            .which_captures(WhichCaptures::Implicit);
        let built = Regex::builder().configure(config).build_many_from_hir(&parsed[..]);
        let regex = built.map_err(|error| match error.size_limit() {
            Some(limit) => refused(&format!("it compiles to more than {limit} bytes")),
            None => refused(&error.to_string()),
        })?;
        // There are two automata, because the second one looks for where a match begins.
        let cache = regex.create_cache();
        let searching = cache.memory_usage() + 2 * LAZY_AUTOMATON_BYTES + VISITED_BYTES;
        let bytes = regex.memory_usage() + CACHES_KEPT * searching;
        (self.work.reserve)(bytes)?;
        self.bytes += bytes;
        self.searching += searching;
        self.places_max = self.places_max.max(count);
        let spaces = has_spaces.then(|| parsed.len() - 1);
        let caches = Mutex::new(vec![cache]);
        Ok(Compiled { regex, part: part.to_owned(), places: count, spaces, caches })
    }
}

/// Whether flags as `(?im)` or `(?-m:` have `m`. In Oniguruma it lets a dot match line breaks.
fn has_flag_m(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        let is_flag = |character: char| character.is_ascii_alphabetic() || character == '-';
        let after = rest.trim_start_matches(is_flag);
        let flags = &rest[..rest.len() - after.len()];
        flags.contains('m') && after.starts_with([':', ')'])
    })
}

/// What is wrong with an expression, in one line.
fn fault(error: &regex_syntax::Error) -> String {
    let fault = match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    };
    match fault.starts_with("look-around") {
        true => format!("{fault}, except `{SPACES}` at the end, after `|`"),
        false => fault,
    }
}

/// The places in an expression at which a search can be at the same time: what each byte of a text
/// costs at most.
fn places(hir: &Hir) -> Result<usize, &'static str> {
    Ok(match hir.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Capture(capture) => places(&capture.sub)?,
        HirKind::Repetition(repetition) => {
            // Elsewhere `x++` takes all it can and gives nothing back.
            if matches!(repetition.sub.kind(), HirKind::Repetition(_)) {
                return Err("a repeat of a repeat, as `x++` or `(?:x+)?`, is not supported");
            }
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            places(&repetition.sub)?.saturating_mul(times as usize)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let mut all = parts.len();
            for part in parts {
                all = all.saturating_add(places(part)?);
            }
            all
        }
    })
}

impl Expression {
    /// Where it is found in `text`.
    pub(crate) fn find(&self, text: &str, pace: &Pace<'_>) -> Result<Vec<Range<usize>>, TextError> {
        match self {
            Self::Literal(literal) => {
                let mut found = Vec::new();
                for (start, literal) in text.match_indices(literal.as_str()) {
                    pace.ask()?;
                    found.push(start..start + literal.len());
                }
                Ok(found)
            }
            Self::Regex(compiled) => compiled.find(text, pace),
        }
    }
}

impl Compiled {
    fn find(&self, text: &str, pace: &Pace<'_>) -> Result<Vec<Range<usize>>, TextError> {
        let cost = self.places.saturating_mul(text.len());
        if cost > SEARCH_COST_MAX {
            let Self { part, places, .. } = self;
            return Err(TextError::TooLarge(format!(
                "{part}.pattern has {places} characters, classes and alternatives, and would \
                 search a text of {} bytes: the limit is {SEARCH_COST_MAX} for their product; \
                 send shorter texts, or use a simpler pattern",
                text.len()
            )));
        }
        pace.before_search(cost)?;
        let kept = self.caches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut cache = kept.unwrap_or_else(|| self.regex.create_cache());
        let mut found = Vec::new();
        let mut searcher = Searcher::new(Input::new(text));
        while let Some(next) = searcher.advance(|input| Ok(self.search(&mut cache, input, text))) {
            pace.ask()?;
            found.push(next.range());
        }
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        if caches.len() < CACHES_KEPT {
            caches.push(cache);
        }
        Ok(found)
    }

    fn search(&self, cache: &mut Cache, input: &Input<'_>, text: &str) -> Option<Match> {
        let found = self.regex.search_with(cache, input)?;
        // The search has taken all white space, so a word follows if anything does.
        if self.spaces == Some(found.pattern().as_usize())
            && found.end() < text.len()
            && let Some((last, _)) = text[found.range()].char_indices().next_back()
            && last > 0
        {
            return Some(Match::new(found.pattern(), found.start()..found.start() + last));
        }
        Some(found)
    }
}

/// Ranges that were found in a text, as the library asks for them: with those between them.
pub(crate) struct Found<'a> {
    pub(crate) ranges: &'a [Range<usize>],
    /// Those between are the matches.
    pub(crate) invert: bool,
}

impl Pattern for Found<'_> {
    fn find_matches(&self, inside: &str) -> tokenizers::Result<Vec<(Offsets, bool)>> {
        if inside.is_empty() {
            return Ok(vec![((0, 0), self.invert)]);
        }
        let mut all = Vec::with_capacity(2 * self.ranges.len() + 1);
        let mut end = 0;
        for range in self.ranges {
            if end != range.start {
                all.push(((end, range.start), self.invert));
            }
            all.push(((range.start, range.end), !self.invert));
            end = range.end;
        }
        if end != inside.len() {
            all.push(((end, inside.len()), self.invert));
        }
        Ok(all)
    }
}
