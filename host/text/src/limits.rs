//! Bounds on a file and on a text. Files of models in use keep far from them.
//!
//! They bound what one step can cost, because the library cannot be stopped within a step:
//!
//! - a search with an expression: its places for each byte of the text, and usually one; at most
//!   [`SEARCH_COST_MAX`];
//! - a word of Unigram: [`UNIGRAM_TOKEN_BYTES_MAX`] nodes and [`UNIGRAM_PREFIXES_MAX`] look-ups for
//!   each of its bytes, at most [`WORD_BYTES_MAX`];
//! - a word of WordPiece: half of the square of [`WORD_CHARS_MAX`] look-ups;
//! - a word of BPE: a heap of at most [`WORD_BYTES_MAX`] entries, so that many times their
//!   logarithm.

/// Maximum bytes of a `tokenizer.json`. That of Gemma 3, one of the largest, has 33 MB.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Maximum bytes of one text. What encoding a pair of such texts takes fits into 256 MiB, which the
/// host has for a call by default.
pub const TEXT_BYTES_MAX: usize = 128 << 10;

/// A text's normalized form has at most so many times its bytes, and [`GROWTH_SLACK`] more.
pub(crate) const GROWTH_MAX: usize = 4;
pub(crate) const GROWTH_SLACK: usize = 4 << 10;

/// The memory that normalizing takes for each byte that the result may have: the byte itself, its
/// alignment, and both three times while a step makes the next form, which may be cut again.
pub(crate) const NORMALIZING_BYTES: usize = 96;

/// The memory that a byte of normalized text takes until its ids are there: it may be a word, a
/// token and a text of their own, each with its allocation.
pub(crate) const TOKENIZING_BYTES: usize = 512;

/// Maximum bytes of the file's parts other than the vocabulary and the added tokens.
pub(crate) const PARTS_BYTES_MAX: usize = 2 << 20;

/// Maximum steps of a part, those of sequences within it included.
pub(crate) const STEPS_MAX: usize = 32;

/// Maximum bytes of an expression, and regular expressions of a file.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 2 << 10;
pub(crate) const EXPRESSIONS_MAX: usize = 8;

/// Maximum characters, classes and alternatives of an expression; those of repeats as often as they
/// are repeated. That of GPT-4o has about a hundred.
pub(crate) const EXPRESSION_PLACES_MAX: usize = 256;

/// Maximum places of an expression times the bytes of a text that it searches: a part of a second.
pub(crate) const SEARCH_COST_MAX: usize = 32 << 20;

/// A file with an expression of more places is slow from the begin. So is one with a Unigram where
/// the tokens that one begins with, times the bytes of the longest one, are more: SentencePiece
/// makes tokens of at most 16 characters.
pub(crate) const QUICK_PLACES_MAX: usize = 128;
pub(crate) const QUICK_UNIGRAM_MAX: usize = 16 * 64;

/// Maximum bytes of a compiled expression, once for each direction. A class as `\p{L}` has about
/// 30 KB.
pub(crate) const EXPRESSION_SIZE_MAX: usize = 2 << 20;

/// The memory that compiling an expression takes.
pub(crate) const COMPILING_BYTES: usize = 8 << 20;

/// Maximum bytes of the automaton that a search makes as it goes, for each direction, and of what a
/// search without it notes.
pub(crate) const LAZY_AUTOMATON_BYTES: usize = 1 << 20;
pub(crate) const VISITED_BYTES: usize = 512 << 10;

/// Maximum bytes of a text that a step inserts.
pub(crate) const INSERTED_BYTES_MAX: usize = 256;

/// Maximum bytes of what a precompiled map of characters makes of one of them.
pub(crate) const MAPPED_BYTES_MAX: usize = 64;

/// Maximum bytes of a token of the vocabulary.
pub(crate) const TOKEN_BYTES_MAX: usize = 1 << 10;
pub(crate) const UNIGRAM_TOKEN_BYTES_MAX: usize = 128;

/// Maximum tokens of Unigram's vocabulary that one of them begins with. SentencePiece makes tokens
/// of at most 16 characters.
pub(crate) const UNIGRAM_PREFIXES_MAX: usize = 32;

/// Maximum bytes of a word: a text that grows as far as it may. `Metaspace` makes three bytes of a
/// space, and without a splitter the whole text is a word.
pub(crate) const WORD_BYTES_MAX: usize = GROWTH_MAX * TEXT_BYTES_MAX + GROWTH_SLACK;

/// The words of a BPE that are kept with their tokens, the maximum bytes of one, and those of one
/// with its tokens.
pub(crate) const KEPT_WORDS: usize = 1 << 10;
pub(crate) const KEPT_WORD_BYTES_MAX: usize = 32;
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 10;

/// Maximum bytes of the token for unknown texts, and of what a model adds before or after words.
pub(crate) const AFFIX_BYTES_MAX: usize = 64;

/// Maximum characters of a word that WordPiece takes apart; longer ones are unknown. In use is 100.
pub(crate) const WORD_CHARS_MAX: usize = 200;

/// Maximum bytes of an added token, also normalized; added tokens, and bytes of all of them. Models
/// of speech and of images have up to 64 Ki.
pub(crate) const ADDED_TOKEN_BYTES_MAX: usize = 1 << 10;
pub(crate) const ADDED_TOKENS_MAX: usize = 128 << 10;
pub(crate) const ADDED_BYTES_MAX: usize = 2 << 20;

/// Maximum pieces of a template, and special tokens of all its pieces.
pub(crate) const TEMPLATE_PIECES_MAX: usize = 64;

/// Maximum ids of a text that is decoded, and bytes of the result.
pub(crate) const DECODED_IDS_MAX: usize = 256 << 10;
pub(crate) const DECODED_BYTES_MAX: usize = 4 << 20;

/// The memory that a byte of tokens takes while a step makes other texts of them.
pub(crate) const DECODING_BYTES: usize = 40;

/// The memory of an id that is decoded: a text and its place.
pub(crate) const DECODED_ID_BYTES: usize = 64;

/// The memory of an entry of a vocabulary besides its bytes, of a merge, and of a node of Unigram's
/// trie.
pub(crate) const ENTRY_BYTES: usize = 192;
pub(crate) const MERGE_BYTES: usize = 48;
pub(crate) const NODE_BYTES: usize = 384;

/// The memory of a text in a file while it is read, besides its bytes.
pub(crate) const READ_TEXT_BYTES: usize = 200;

/// The memory that reading a byte of the small parts takes.
pub(crate) const READ_PART_BYTES: usize = 96;

/// The memory of a byte of an added token in the automaton that finds them, and while it is built.
pub(crate) const ADDED_BYTE_BYTES: usize = 128;
