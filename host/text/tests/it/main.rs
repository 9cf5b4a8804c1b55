//! Tokenizers give the ids of the Python package, and no file or text takes more than its bounds.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod hostile_files;
mod hostile_texts;
mod lengths;
mod python;
mod support;
