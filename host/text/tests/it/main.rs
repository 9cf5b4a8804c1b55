//! Tokenizers give the ids of the Python package, and no file or text takes more than its bounds.

mod hostile_files;
mod hostile_texts;
mod lengths;
mod python;
mod support;
