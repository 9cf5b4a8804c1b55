//! What a plugin in Rust for texts has: their tokens, and vectors of texts.

use std::fmt::Write as _;

use gristmill_core::Dtype;

use crate::plugin::new::fit::{Fit, LENGTHS, PluginFit, TOKENIZER};
use crate::plugin::new::signature::Texts;

/// The functions that a plugin for texts has, besides that for tensors.
pub(super) const TOKENS_AT: &str = r#"
/// The tokens of the texts at a JSON Pointer, "" for the whole body.
fn tokens_at(
    request: &Request,
    pointer: &str,
    lengths: &[u32],
    dtype: Dtype,
) -> Result<Encoded, Failure> {
    let texts = tensor_at(request, pointer, Dtype::String, &[None])?;
    if texts.dims() == [0] {
        let place = if pointer.is_empty() { "the body" } else { pointer };
        return Err(Failure::invalid_input(format!("{place} has no texts")));
    }
    let (max_length, padding) = (lengths.last().copied(), Padding::Buckets(lengths.to_vec()));
    let options = Options { max_length, padding, dtype, ..tokenizer::options() };
    Ok(tokenizer::encode(TOKENIZER, &texts, &options)?)
}
"#;

const POOLED: &str = r"
/// A vector for each text: the mean of those of its tokens, with the length 1.
fn pooled(hidden: &Tensor, mask: &[{{type}}]) -> Result<Tensor, Failure> {
    let mask = Array::from_slice(&hidden.dims()[..2], mask)?;
    Array::from(hidden).mean_pool(mask).normalize(-1).into_tensor()
}
";

/// The function that a plugin has whose outputs are pooled.
pub(super) fn pooled(texts: &Texts) -> String {
    POOLED.replace("{{type}}", element_of(texts))
}

/// The type of the tokens' numbers.
fn element_of(texts: &Texts) -> &'static str {
    if texts.dtype == Dtype::Int32 { "i32" } else { "i64" }
}

/// The lines that make `tokens` of texts, and the state of which outputs are pooled.
pub(super) fn tokens_lines(fit: &Fit<'_>, texts: &Texts) -> String {
    let lengths = texts.length.map_or("&LENGTHS".to_owned(), |length| format!("&[{length}]"));
    let (place, dtype) = (&fit.place, texts.dtype);
    let mut lines = format!(
        "        let tokens = tokens_at(request, {place:?}, {lengths}, Dtype::{dtype:?})?;\n"
    );
    if fit.has_pooled() {
        let _ = write!(
            lines,
            "        let mask = tokens.attention_mask.view::<{}>()?;\n        \
             let state = serde_json::to_vec(mask.as_slice())?;\n",
            element_of(texts)
        );
    }
    lines
}

/// The constants of a plugin for texts.
pub(super) fn text_constants(plugin: &PluginFit<'_>) -> String {
    if !plugin.is_of_texts() {
        return String::new();
    }
    let mut text = format!("\n/// In assets/.\nconst TOKENIZER: &str = {TOKENIZER:?};\n");
    if plugin.has_open_lengths() {
        let count = LENGTHS.split(',').count();
        let _ = write!(
            text,
            "/// Rows are filled up to the smallest of these lengths that fits, since rows of one length \
             share\n/// batches. Longer texts are cut off. The most that the model takes is in its \
             config.json\n/// (max_position_embeddings).\n\
             const LENGTHS: [u32; {count}] = [{LENGTHS}];\n"
        );
    }
    text
}

/// The same if an output is pooled. Others with a vector for each token are left out.
pub(super) fn pooled_answer(fit: &Fit<'_>, texts: &Texts) -> (String, String) {
    let mut lines = format!(
        "        let mask: Vec<{}> = serde_json::from_slice(&state)?;\n",
        element_of(texts)
    );
    let mut value = "BTreeMap::from([\n".to_owned();
    for (at, output) in fit.model.outputs.iter().enumerate() {
        let name = &*output.name;
        let entry = if fit.is_pooled(output) {
            let made = format!("pooled(outputs.get({name:?})?, &mask)?");
            let _ = writeln!(lines, "        let vectors_{at} = {made};");
            format!("&vectors_{at}")
        } else if fit.is_left_out(output) {
            continue;
        } else {
            format!("outputs.get({name:?})?")
        };
        let _ = writeln!(value, "            ({name:?}, {entry}),");
    }
    (lines, value + "        ])")
}
