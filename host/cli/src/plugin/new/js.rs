//! A plugin in JavaScript that fits models: its code, its unit tests and a sample request.

mod unit_tests;
mod words;

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};

use self::words::{dtype, key, quoted};
use super::fit::{Files, Fit, LENGTHS, PluginFit, TOKENIZER};
use super::signature::{Picture, Requests, Texts, sizes};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(plugin: &PluginFit<'_>) -> Result<Files> {
    let code = ("plugin.js", code(plugin));
    plugin.files(code, "test/plugin.test.js", unit_tests::tests, unit_tests::handler_tests)
}

fn code(plugin: &PluginFit<'_>) -> String {
    let mut names = vec!["PluginResponse"];
    names.extend(plugin.is_of_pictures().then_some("Pixels"));
    names.extend(plugin.is_of_tensors().then_some("InvalidInput"));
    let mut pictures = plugin.pictures();
    let is_imagenet =
        pictures.any(|(picture, fit)| picture.is_normalised(fit.model.inputs[0].dtype));
    names.extend(is_imagenet.then_some("IMAGENET"));
    names.extend(plugin.only().is_none().then_some("models"));
    names.extend(plugin.is_of_texts().then_some("Tokenizer"));
    let has_pooled = plugin.models().iter().any(Fit::has_pooled);
    names.extend(has_pooled.then_some("np"));
    names.sort_unstable();
    let (first, models) = plugin.heading();
    let mut code = format!(
        "// {first}\n//\n// {}\n\
         // Code outside of functions runs once, when the plugin is uploaded.\n\
         import {{ {} }} from 'gristmill-plugin';\n\n",
        models.join("\n// "),
        names.join(", ")
    );
    code += &text_constants(plugin);
    match plugin.only() {
        Some(fit) => {
            code += "/** @type {import('gristmill-plugin').Preprocess} */\n\
                     export function preprocess(context, request) {\n";
            code += &with_inputs(fit, "const inputs = ", ";");
            code += match has_pooled {
                // What makes one vector of those of a text's tokens reads the mask.
                true => MASK_AS_STATE,
                false => "  return { inputs };\n",
            };
            let state = if has_pooled { ", state" } else { "" };
            let _ = write!(
                code,
                "}}\n\n/** @type {{import('gristmill-plugin').Postprocess}} */\n\
                 export function postprocess(context, outputs{state}) {{\n"
            );
            code += &with_answer(fit, "return PluginResponse.json(", ");");
            code += "}\n";
        }
        None => {
            code += "/** @type {import('gristmill-plugin').Handle} */\n\
                     export function handle(context, request) {\n";
            code += &handle_lines(plugin);
        }
    }
    if plugin.is_of_tensors() {
        code += TENSOR_AT;
    }
    if plugin.is_of_texts() {
        code += TOKENS_AT;
    }
    if has_pooled {
        code += POOLED;
    }
    code
}

/// The body of `handle`. With several models there is a function for each.
fn handle_lines(plugin: &PluginFit<'_>) -> String {
    if let [fit] = plugin.models() {
        return run_lines(fit, "return PluginResponse.json(", ");") + "}\n";
    }
    let mut lines = "  return PluginResponse.json({\n".to_owned();
    let functions = plugin.functions(function);
    for (function, fit) in &functions {
        let key = key(fit.own_name.unwrap_or_default());
        let _ = writeln!(lines, "    {key}: {function}(request),");
    }
    lines += "  });\n}\n";
    for (function, fit) in functions {
        let _ = write!(
            lines,
            "\nfunction {function}(request) {{\n{}}}\n",
            run_lines(fit, "return ", ";")
        );
    }
    lines
}

/// `runOcrDet` of the words `ocr` and `det`.
fn function(words: &[&str]) -> String {
    let capital = |word: &&str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    format!("run{}", words.iter().map(capital).collect::<String>())
}

/// Lines that run a model, and give its part of the answer.
fn run_lines(fit: &Fit<'_>, before: &str, after: &str) -> String {
    let name = quoted(fit.own_name.unwrap_or_default());
    with_inputs(fit, &format!("const outputs = models.infer({name}, "), ");")
        + &with_answer(fit, before, after)
}

/// Lines that make the model's inputs, with what is to stand before and after them.
fn with_inputs(fit: &Fit<'_>, before: &str, after: &str) -> String {
    if let Requests::Picture(picture) = &fit.requests {
        return picture_lines(fit, picture, before, after);
    }
    let mut lines = match fit.texts() {
        Some(texts) => tokens_line(fit, texts),
        None => String::new(),
    };
    let _ = writeln!(lines, "  {before}{{");
    for input in &fit.model.inputs {
        let _ = writeln!(lines, "    {},", input_line(fit, input));
    }
    lines + &format!("  }}{after}\n")
}

/// Lines that make the answer of `outputs`, with what is to stand before and after it.
fn with_answer(fit: &Fit<'_>, before: &str, after: &str) -> String {
    if fit.has_scores() {
        let output = quoted(&fit.model.outputs[0].name);
        return format!(
            "  // For a model that gives logits, .softmax().topK(5) gives probabilities.\n  \
             const best = outputs.get({output}).topK(5);\n  \
             const top = best.map(({{ index, value }}) => ({{ index, score: value }}));\n  \
             {before}{{ top }}{after}\n"
        );
    }
    let mut lines = match fit.texts().filter(|_| fit.has_pooled()) {
        Some(texts) => {
            let dtype = format!("{:?}", texts.dtype).to_lowercase();
            format!("  const mask = np.frombuffer(state.bytes(), {{ dtype: '{dtype}' }});\n")
        }
        None => String::new(),
    };
    let _ = writeln!(lines, "  {before}{{");
    for output in &fit.model.outputs {
        let (key, name) = (key(&output.name), quoted(&output.name));
        if fit.is_pooled(output) {
            let _ = writeln!(lines, "    {key}: pooled(outputs.get({name}), mask),");
            continue;
        }
        let _ = match fit.is_left_out(output) {
            false => writeln!(lines, "    {key}: outputs.get({name}),"),
            true => writeln!(
                lines,
                "    // Too large for an answer: take out what clients need.\n    \
                 {key}: {{ shape: outputs.get({name}).shape }},"
            ),
        };
    }
    lines + &format!("  }}{after}\n")
}

/// The function that a plugin for tensors has.
const TENSOR_AT: &str = r"
/** The values at a JSON Pointer, '' for the whole body. null stands for any size. */
function tensorAt(request, pointer, dtype, sizes) {
  const tensor = request.jsonTensor(pointer, dtype);
  const found = tensor.shape;
  const fits = sizes.every((size, axis) => size === null || size === found[axis]);
  if (sizes.length !== found.length || !fits) {
    const wanted = sizes.map((size) => size ?? 'any').join(', ');
    throw new InvalidInput(
      `${pointer || 'the body'} has the sizes [${found.join(', ')}], the model takes [${wanted}]`,
    );
  }
  return tensor;
}
";

/// The functions that a plugin for texts has, besides that for tensors.
const TOKENS_AT: &str = r"
/** The tokens of the texts at a JSON Pointer, '' for the whole body. */
function tokensAt(request, pointer, lengths, dtype) {
  const texts = tensorAt(request, pointer, 'string', [null]);
  if (texts.shape[0] === 0) throw new InvalidInput(`${pointer || 'the body'} has no texts`);
  return TOKENIZER.encode(texts, { maxLength: lengths.at(-1), padding: lengths, dtype });
}
";

/// The end of `preprocess` if outputs are pooled.
const MASK_AS_STATE: &str = "  \
    const mask = tokens.attentionMask.data();\n  \
    const state = new Uint8Array(mask.buffer, mask.byteOffset, mask.byteLength);\n  \
    return { inputs, state };\n";

const POOLED: &str = r"
/** A vector for each text: the mean of those of its tokens, with the length 1. */
function pooled(hidden, mask) {
  return np.normalize(np.meanPool(hidden, mask.reshape(hidden.shape.slice(0, 2))));
}
";

/// The line that makes the tokens of texts.
fn tokens_line(fit: &Fit<'_>, texts: &Texts) -> String {
    let lengths = texts.length.map_or("LENGTHS".to_owned(), |length| format!("[{length}]"));
    let (place, dtype) = (quoted(&fit.place), format!("{:?}", texts.dtype).to_lowercase());
    format!("  const tokens = tokensAt(request, {place}, {lengths}, '{dtype}');\n")
}

/// The constants of a plugin for texts.
fn text_constants(plugin: &PluginFit<'_>) -> String {
    if !plugin.is_of_texts() {
        return String::new();
    }
    let mut text = format!(
        "// Of {TOKENIZER} in assets/.\nconst TOKENIZER = new Tokenizer('{TOKENIZER}');\n\n"
    );
    if plugin.has_open_lengths() {
        let _ = write!(
            text,
            "// Rows are filled up to the smallest of these lengths that fits, since rows of one length \
             share\n// batches. Longer texts are cut off. The most that the model takes is in its \
             config.json\n// (max_position_embeddings).\nconst LENGTHS = [{LENGTHS}];\n\n"
        );
    }
    text
}

/// An input's entry in the object of inputs.
fn input_line(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (key(&input.name), dtype(input));
    if fit.texts().is_some() {
        let part = Fit::part_of(input, ["ids", "attentionMask", "typeIds"]);
        return format!("{name}: tokens.{part}");
    }
    if matches!(fit.requests, Requests::Objects) {
        let name_in_rows = quoted(&input.name);
        let place = quoted(&fit.place);
        return format!(
            "{name}: request.jsonTensor({place}, {dtype}, {{ keys: [{name_in_rows}] }})"
        );
    }
    let (pointer, sizes) = (quoted(&fit.pointer(input)), sizes(&input.dims, "null").join(", "));
    format!("{name}: tensorAt(request, {pointer}, {dtype}, [{sizes}])")
}

/// The lines that make the input of a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture, before: &str, after: &str) -> String {
    let (width, height) = (picture.width, picture.height);
    let body = match &*fit.place {
        "" => "request".to_owned(),
        place => format!("request.jsonBody({})", quoted(place)),
    };
    let color = if picture.is_gray { ", { color: 'gray' }" } else { "" };
    let fitted = match fit.has_scores() {
        true => {
            format!("picture.resizeShorter({}).cropCenter({width}, {height})", width.max(height))
        }
        false => format!("picture.letterbox({width}, {height}).pixels"),
    };
    let input = &fit.model.inputs[0];
    let mut options = Vec::new();
    options.extend(picture.has_channels_last.then_some("layout: 'nhwc'"));
    options.extend((input.dtype == Dtype::Uint8).then_some("dtype: 'uint8'"));
    let is_normalised = picture.is_normalised(input.dtype);
    options.extend(is_normalised.then_some("...IMAGENET"));
    let options = match options.is_empty() {
        true => String::new(),
        false => format!("{{ {} }}", options.join(", ")),
    };
    let comment = match is_normalised {
        true => {
            "  // The mean and std of ImageNet, which models of torchvision and timm take. Who \
             trained the\n  // model knows its values; without mean and std toTensor gives 0 to 1.\n"
        }
        false => "",
    };
    format!(
        "  const picture = Pixels.decode({body}{color});\n  \
         const fitted = {fitted};\n{comment}  \
         {before}{{ {}: fitted.toTensor({options}) }}{after}\n",
        key(&input.name)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::fit::of_models;
    use super::super::signature::tensor;
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        of_models(vec![(None, inputs, outputs)], code).unwrap()
    }

    #[test]
    fn inputs_are_found_by_keys_and_pointers() {
        let age = tensor("age", Dtype::Int64, &[None, Some(1)]);
        let city = tensor("a 'city'\\", Dtype::String, &[None, Some(1)]);
        let plugin = made(vec![age.clone(), city], vec![tensor("y", Dtype::Int64, &[None])]);
        let line = r#""a 'city'\\": request.jsonTensor('', 'string', { keys: ["a 'city'\\"] }),"#;
        assert!(plugin.contains(line), "{plugin}");
        let plugin = made(vec![tensor("x/0", Dtype::Int64, &[None]), age.clone()], vec![age]);
        let line = "'x/0': tensorAt(request, '/x~10', 'int64', [null]),";
        assert!(plugin.contains(line), "{plugin}");
    }

    #[test]
    fn pictures_are_made_as_the_model_takes_them() {
        let input = tensor("x", Dtype::Uint8, &[None, None, None, Some(3)]);
        let boxes = tensor("boxes", Dtype::Float32, &[Some(1), Some(84), Some(8400)]);
        let plugin = made(vec![input], vec![boxes]);
        assert!(plugin.contains("picture.letterbox(224, 224).pixels"), "{plugin}");
        assert!(plugin.contains("toTensor({ layout: 'nhwc', dtype: 'uint8' })"), "{plugin}");
        assert!(plugin.contains("'boxes': { shape: outputs.get('boxes').shape }"), "{plugin}");
    }
}
