//! Reading and running tokenizers without bounds from outside.

use gristmill_text::{EncodeOptions, Encoded, Stopped, TextError, Tokenizer, Work};
use serde_json::Value;

/// Work that may always go on.
pub(crate) fn freely<T>(work: impl FnOnce(&mut Work<'_>) -> T) -> T {
    work(&mut Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut |_| Ok(()) })
}

/// Work that is stopped at its first check.
pub(crate) fn stopped<T>(work: impl FnOnce(&mut Work<'_>) -> T) -> T {
    work(&mut Work {
        check: &|| Err(Stopped),
        search_cost_max: usize::MAX,
        reserve: &mut |_| Ok(()),
    })
}

pub(crate) fn read(file: &Value) -> Result<Tokenizer, TextError> {
    freely(|work| Tokenizer::read(file.to_string().as_bytes(), work))
}

pub(crate) fn encode(
    tokenizer: &Tokenizer,
    text: &str,
    options: &EncodeOptions,
) -> Result<Encoded, TextError> {
    freely(|work| tokenizer.encode(text, None, options, work))
}

/// A fixture.
pub(crate) fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A tokenizer with this part changed: `model.dropout` for example.
pub(crate) fn changed(name: &str, part: &str, value: Value) -> Value {
    let mut file = fixture(name);
    let pointer = format!("/{}", part.replace('.', "/"));
    match file.pointer_mut(&pointer) {
        Some(place) => *place = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            file.pointer_mut(parent).unwrap()[key] = value;
        }
    }
    file
}
