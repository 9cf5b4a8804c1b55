//! Bounds on a file and on a text. Files of models in use keep far from them.
//!
//! They bound what one step can cost, because the library cannot be stopped within a step:
//!
//! - a search with an expression: at most [`BACKTRACKS_MAX`] steps back, each of which may read the
//!   text to its end;
//! - a word of Unigram: at most [`UNIGRAM_TOKEN_BYTES_MAX`] look-ups for each byte;
//! - a word of WordPiece: at most the square of [`WORD_CHARS_MAX`] look-ups;
//! - a word of BPE: a heap of as many entries as it has bytes.

/// Maximum bytes of a `tokenizer.json`. That of Gemma 3, one of the largest, has 33 MB.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Maximum bytes of one text.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// A text's normalized form has at most so many times its bytes, and [`GROWTH_SLACK`] more.
pub(crate) const GROWTH_MAX: usize = 4;
pub(crate) const GROWTH_SLACK: usize = 4 << 10;

/// The memory that normalizing takes for each byte of the result: the byte itself, its alignment,
/// and both again while a step makes the next form.
pub(crate) const NORMALIZING_BYTES: usize = 64;

/// The memory that a byte of normalized text takes until its ids are there: it may be a word, a
/// token and a text of their own, each with its allocation.
pub(crate) const TOKENIZING_BYTES: usize = 512;

/// Maximum bytes of the file's parts other than the vocabulary and the added tokens.
pub(crate) const PARTS_BYTES_MAX: usize = 2 << 20;

/// Maximum steps of a part, those of sequences within it included.
pub(crate) const STEPS_MAX: usize = 32;

/// Maximum bytes of an expression, and of all of a file.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 2 << 10;
pub(crate) const EXPRESSIONS_BYTES_MAX: usize = 8 << 10;

/// Maximum bytes of a compiled expression, and of each part of it.
pub(crate) const EXPRESSION_SIZE_MAX: usize = 4 << 20;

/// Maximum steps back of one search. It is also the library's number.
pub(crate) const BACKTRACKS_MAX: usize = 1_000_000;

/// Maximum bytes of a text that a step inserts.
pub(crate) const INSERTED_BYTES_MAX: usize = 256;

/// Maximum bytes of what a precompiled map of characters makes of one of them.
pub(crate) const MAPPED_BYTES_MAX: usize = 64;

/// Maximum bytes of a token of the vocabulary.
pub(crate) const TOKEN_BYTES_MAX: usize = 1 << 10;
pub(crate) const UNIGRAM_TOKEN_BYTES_MAX: usize = 256;

/// Maximum bytes of the token for unknown texts, and of what a model adds before or after words.
pub(crate) const AFFIX_BYTES_MAX: usize = 64;

/// Maximum characters of a word that WordPiece takes apart; longer ones are unknown.
pub(crate) const WORD_CHARS_MAX: usize = 1000;

/// Maximum added tokens, and bytes of all of them.
pub(crate) const ADDED_TOKENS_MAX: usize = 16 << 10;
pub(crate) const ADDED_BYTES_MAX: usize = 256 << 10;

/// Maximum pieces of a template, and special tokens of all its pieces.
pub(crate) const TEMPLATE_PIECES_MAX: usize = 64;

/// Maximum ids of a text that is decoded, and bytes of the result.
pub(crate) const DECODED_IDS_MAX: usize = 256 << 10;
pub(crate) const DECODED_BYTES_MAX: usize = 4 << 20;

/// The memory of an entry of a vocabulary besides its bytes, of a merge, and of a node of Unigram's
/// trie.
pub(crate) const ENTRY_BYTES: usize = 192;
pub(crate) const MERGE_BYTES: usize = 48;
pub(crate) const NODE_BYTES: usize = 384;

/// The memory of a text in a file while it is read, besides its bytes.
pub(crate) const READ_TEXT_BYTES: usize = 200;

/// The memory that reading a byte of the small parts takes.
pub(crate) const READ_PART_BYTES: usize = 40;

/// The memory of a compiled expression for each of its bytes: `\w` compiles to about 30 KB.
pub(crate) const EXPRESSION_BYTE_BYTES: usize = 16 << 10;
