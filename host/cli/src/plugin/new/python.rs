//! A plugin in Python that fits models: its code, its unit tests and a sample request.

mod unit_tests;
mod words;

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};

use self::words::{dtype, quoted};
use super::fit::{Files, Fit, LENGTHS, PluginFit, TOKENIZER};
use super::signature::{Picture, Requests, Texts, sizes};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(plugin: &PluginFit<'_>) -> Result<Files> {
    let code = ("app.py", app(plugin));
    plugin.files(code, "test_app.py", unit_tests::tests, unit_tests::handler_tests)
}

fn app(plugin: &PluginFit<'_>) -> String {
    let mut sdk = vec!["Context", "Request", "Response", "export"];
    match plugin.only() {
        Some(_) => sdk.extend(["Outputs", "Prepared", "Processor"]),
        None => sdk.extend(["Handler", "models"]),
    }
    sdk.extend(plugin.names_dtypes().then_some("Dtype"));
    if plugin.is_of_tensors() {
        sdk.extend(["InvalidInput", "Tensor"]);
    }
    sdk.extend(plugin.is_of_texts().then_some("Tokenizer"));
    sdk.sort_unstable_by_key(|name| (name.starts_with(char::is_lowercase), *name));
    let (first, models) = plugin.heading();
    let mut app = format!(
        "\"\"\"{first}\n\n{}\n\
         Code at the level of the module runs once, when the plugin is uploaded. Import everything \
         here.\n\"\"\"\n\nfrom gristmill_plugin import (\n",
        models.join("\n")
    );
    for name in sdk {
        let _ = writeln!(app, "    {name},");
    }
    app += ")\n";
    let has_pooled = plugin.models().iter().any(Fit::has_pooled);
    if has_pooled {
        app += "from gristmill_plugin import numpy as np\n";
    }
    app += &picture_constants(plugin);
    app += &text_constants(plugin);
    app += "\n\n@export\n";
    match plugin.only() {
        Some(fit) => {
            app += "class Plugin(Processor):\n    \
                    def preprocess(self, context: Context, request: Request) -> Prepared:\n";
            app += &with_inputs(fit, "return Prepared(", ")");
            app += "\n    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:\n";
            app += &with_answer(fit, "return Response.json(", ")");
        }
        None => {
            app += "class Plugin(Handler):\n    \
                    def handle(self, context: Context, request: Request) -> Response:\n";
            app += &handle_lines(plugin);
        }
    }
    if plugin.is_of_tensors() {
        app += TENSOR_AT;
    }
    if plugin.is_of_texts() {
        app += TOKENS_AT;
    }
    if has_pooled {
        app += POOLED;
    }
    app
}

fn handle_lines(plugin: &PluginFit<'_>) -> String {
    let mut lines = String::new();
    if plugin.has_parts() {
        lines += "        answer = {}\n";
    }
    for fit in plugin.models() {
        let name = quoted(fit.own_name.unwrap_or_default());
        lines += &with_inputs(fit, &format!("outputs = models.infer({name}, "), ")");
        lines += &match plugin.has_parts() {
            true => with_answer(fit, &format!("answer[{name}] = "), ""),
            false => with_answer(fit, "return Response.json(", ")"),
        };
    }
    if plugin.has_parts() {
        lines += "        return Response.json(answer)\n";
    }
    lines
}

/// Lines of a method that make the model's inputs, and give them to a call.
fn with_inputs(fit: &Fit<'_>, before: &str, after: &str) -> String {
    if let Requests::Picture(picture) = &fit.requests {
        return picture.with_input(fit, before, after);
    }
    if let Some(texts) = fit.texts() {
        let entry = |input: &TensorInfo| {
            let part = Fit::part_of(input, ["ids", "attention_mask", "type_ids"]);
            format!("{}: tokens.{part}", quoted(&input.name))
        };
        let inputs = fit.model.inputs.iter().map(entry).collect::<Vec<_>>().join(", ");
        // What makes one vector of those of a text's tokens reads the mask.
        let state = if fit.has_pooled() { ", tokens.attention_mask.tobytes()" } else { "" };
        return tokens_line(fit, texts)
            + &format!("        inputs = {{{inputs}}}\n        {before}inputs{state}{after}\n");
    }
    let entry = |input: &TensorInfo| format!("{},", input_line(fit, input));
    dictionary(fit.model.inputs.iter().map(entry), before, after)
}

/// Lines of a method that make the answer of the variable `outputs`.
fn with_answer(fit: &Fit<'_>, before: &str, after: &str) -> String {
    if fit.has_scores() {
        let output = quoted(&fit.model.outputs[0].name);
        return format!(
            "        # For a model that gives logits, .softmax().top_k(5) gives probabilities.\n        \
             best = outputs[{output}].top_k(5)\n        \
             top = [{{\"index\": found.index, \"score\": found.value}} for found in best]\n        \
             {before}{{\"top\": top}}{after}\n"
        );
    }
    let entries = fit.model.outputs.iter().flat_map(|output| {
        let name = quoted(&output.name);
        if fit.is_pooled(output) {
            return vec![format!("{name}: pooled(outputs[{name}], mask),")];
        }
        match fit.is_left_out(output) {
            false => vec![format!("{name}: outputs[{name}],")],
            // An answer has at most 4 MiB.
            true => vec![
                "# Too large for an answer: take out what clients need.".to_owned(),
                format!("{name}: {{\"shape\": list(outputs[{name}].shape)}},"),
            ],
        }
    });
    let mask = match fit.texts().filter(|_| fit.has_pooled()) {
        Some(texts) => {
            let dtype = format!("{:?}", texts.dtype).to_lowercase();
            format!("        mask = np.frombuffer(state, np.{dtype})\n")
        }
        None => String::new(),
    };
    mask + &dictionary(entries, before, after)
}

/// A dictionary of these lines in a method. As the first argument it has lines of its own.
fn dictionary(entries: impl Iterator<Item = String>, before: &str, after: &str) -> String {
    let (indent, open, close) = match before.ends_with('(') {
        true => (
            "                ",
            format!("{before}\n            {{"),
            format!("    }}\n        {after}"),
        ),
        // After another argument, or alone.
        false => ("            ", format!("{before}{{"), format!("}}{after}")),
    };
    let mut lines = format!("        {open}\n");
    for entry in entries {
        let _ = writeln!(lines, "{indent}{entry}");
    }
    lines + &format!("        {close}\n")
}

/// The function that a plugin for tensors has.
const TENSOR_AT: &str = r#"

def tensor_at(request: Request, pointer: str, dtype: Dtype, sizes: list[int | None]) -> Tensor:
    """The values at a JSON Pointer, "" for the whole body. None stands for any size."""
    tensor = request.json_tensor(pointer, dtype)
    fits = [size in (None, found) for size, found in zip(sizes, tensor.shape)]
    if len(sizes) != len(tensor.shape) or not all(fits):
        wanted = ["any" if size is None else size for size in sizes]
        raise InvalidInput(
            f"{pointer or 'the body'} has the sizes {list(tensor.shape)}, the model takes {wanted}"
        )
    return tensor
"#;

/// The functions that a plugin for texts has, besides that for tensors.
const TOKENS_AT: &str = r#"

def tokens_at(request: Request, pointer: str, lengths: tuple[int, ...], dtype: Dtype):
    """The tokens of the texts at a JSON Pointer, "" for the whole body."""
    texts = tensor_at(request, pointer, Dtype.STRING, [None])
    if texts.shape[0] == 0:
        raise InvalidInput(f"{pointer or 'the body'} has no texts")
    return TOKENIZER.encode(texts, max_length=lengths[-1], padding=lengths, dtype=dtype)
"#;

const POOLED: &str = r#"

def pooled(hidden: Tensor, mask: np.ndarray) -> np.ndarray:
    """A vector for each text: the mean of those of its tokens, with the length 1."""
    hidden = np.asarray(hidden)
    return np.normalize(np.mean_pool(hidden, mask.reshape(hidden.shape[:2])))
"#;

/// The line that makes the tokens of texts.
fn tokens_line(fit: &Fit<'_>, texts: &Texts) -> String {
    let lengths = texts.length.map_or("LENGTHS".to_owned(), |length| format!("({length},)"));
    let (place, dtype) = (quoted(&fit.place), format!("{:?}", texts.dtype).to_uppercase());
    format!("        tokens = tokens_at(request, {place}, {lengths}, Dtype.{dtype})\n")
}

/// The constants of a plugin for texts.
fn text_constants(plugin: &PluginFit<'_>) -> String {
    if !plugin.is_of_texts() {
        return String::new();
    }
    let mut text =
        format!("\n# Of {TOKENIZER} in assets/.\nTOKENIZER = Tokenizer({TOKENIZER:?})\n");
    if plugin.has_open_lengths() {
        let _ = write!(
            text,
            "\n# Rows are filled up to the smallest of these lengths that fits, since rows of one length \
             share\n# batches. Longer texts are cut off. The most that the model takes is in its \
             config.json\n# (max_position_embeddings).\nLENGTHS = ({LENGTHS})\n"
        );
    }
    text
}

/// An input's entry in the dictionary of inputs.
fn input_line(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (quoted(&input.name), dtype(input));
    if matches!(fit.requests, Requests::Objects) {
        let place = quoted(&fit.place);
        return format!("{name}: request.json_tensor({place}, {dtype}, keys=[{name}])");
    }
    let (pointer, sizes) = (quoted(&fit.pointer(input)), sizes(&input.dims, "None").join(", "));
    format!("{name}: tensor_at(request, {pointer}, {dtype}, [{sizes}])")
}

/// What a plugin for pictures imports, and its constants.
fn picture_constants(plugin: &PluginFit<'_>) -> String {
    if !plugin.is_of_pictures() {
        return String::new();
    }
    let has = |is_so: fn(&Picture) -> bool| plugin.pictures().any(|(picture, _)| is_so(picture));
    let mut names = vec!["Pixels"];
    names.extend(has(|picture| picture.is_gray).then_some("Color"));
    names.extend(has(|picture| picture.has_channels_last).then_some("Layout"));
    names.sort_unstable();
    let mut text = format!("from gristmill_plugin.image import {}\n", names.join(", "));
    if plugin.pictures().any(|(picture, fit)| picture.is_normalised(fit.model.inputs[0].dtype)) {
        text += "\n# Of ImageNet, which models of torchvision and timm take. Who trained the model knows \
                 its values;\n# without mean and std to_tensor gives 0 to 1.\n\
                 MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]\n";
    }
    text
}

impl Picture {
    fn with_input(&self, fit: &Fit<'_>, before: &str, after: &str) -> String {
        let (width, height) = (self.width, self.height);
        let body = match &*fit.place {
            "" => "request.body".to_owned(),
            place => format!("request.json_blob({})", quoted(place)),
        };
        let color = if self.is_gray { ", Color.GRAY" } else { "" };
        let fitted = match fit.has_scores() {
            true => format!(
                "picture.resize_shorter({}).center_crop({width}, {height})",
                width.max(height)
            ),
            false => format!("picture.letterbox({width}, {height}).pixels"),
        };
        let mut options = Vec::new();
        options.extend(self.has_channels_last.then_some("layout=Layout.NHWC"));
        let dtype = fit.model.inputs[0].dtype;
        options.extend((dtype == Dtype::Uint8).then_some("dtype=Dtype.UINT8"));
        options.extend(self.is_normalised(dtype).then_some("mean=MEAN, std=STD"));
        format!(
            "        picture = Pixels.decode({body}{color})\n        \
             fitted = {fitted}\n        \
             {before}{{{}: fitted.to_tensor({})}}{after}\n",
            quoted(&fit.model.inputs[0].name),
            options.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::{Value, json};

    use super::super::fit::{of_models, of_texts};
    use super::super::signature::tensor;
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> (String, String) {
        let files = of_models(vec![(None, inputs, outputs)], files).unwrap().unwrap();
        let text = |at: usize| String::from_utf8_lossy(&files[at].1).into_owned();
        (text(0), text(2))
    }

    #[test]
    fn columns_are_keys_of_objects() {
        let age = tensor("age", Dtype::Int64, &[None, Some(1)]);
        let city = tensor("a \"city\"", Dtype::String, &[None, Some(1)]);
        let (app, sample) = made(vec![age, city], vec![tensor("y", Dtype::Int64, &[None])]);
        let line = r#""a \"city\"": request.json_tensor("", Dtype.STRING, keys=["a \"city\""]),"#;
        assert!(app.contains(line), "{app}");
        let row = json!({ "age": 1, "a \"city\"": "a text" });
        assert_eq!(sample.parse::<Value>().unwrap(), json!([row, row]));
    }

    #[test]
    fn a_large_input_has_no_sample() {
        let error = |dims: &[Option<usize>], outputs: Vec<TensorInfo>| {
            let inputs = vec![tensor("x", Dtype::Float32, dims)];
            let made = of_models(vec![(None, inputs, outputs)], |_| ());
            made.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let output = || vec![tensor("y", Dtype::Float32, &[None])];
        let large = error(&[Some(usize::MAX), Some(9)], output());
        assert!(large.contains("x has 18446744073709551615 elements"), "{large}");
        let empty = error(&[Some(1 << 40), Some(0)], output());
        assert!(empty.contains("x has 1099511627776 elements"), "{empty}");
        let picture = error(&[None, Some(3), Some(1 << 20), Some(1 << 20)], output());
        assert!(picture.contains("1099511627776 pixels"), "{picture}");
        assert_eq!(error(&[None, Some(3), Some(640), Some(640)], output()), "");
        let nothing = error(&[None], Vec::new());
        assert!(nothing.contains("it has no outputs"), "{nothing}");
    }

    #[test]
    fn several_inputs_are_keys_of_one_object() {
        let ids = tensor("ids/0", Dtype::Int64, &[None, None]);
        let scale = tensor("scale", Dtype::Bool, &[]);
        let (app, sample) = made(vec![ids, scale], vec![tensor("y", Dtype::Float32, &[None])]);
        let line = r#""ids/0": tensor_at(request, "/ids~10", Dtype.INT64, [None, None]),"#;
        assert!(app.contains(line), "{app}");
        let expected = json!({ "ids/0": [[1, 1, 1, 1], [1, 1, 1, 1]], "scale": true });
        assert_eq!(sample.parse::<Value>().unwrap(), expected);
    }

    #[test]
    fn texts_become_tokens_of_the_length_that_the_model_takes() {
        let inputs = ["input_ids", "token_type_ids"]
            .map(|name| tensor(name, Dtype::Int32, &[None, Some(16)]));
        let hidden = tensor("hidden", Dtype::Float32, &[None, None, Some(8)]);
        let app = of_texts(inputs.into(), vec![hidden], app).unwrap();
        assert!(app.contains(r#"tokens_at(request, "", (16,), Dtype.INT32)"#), "{app}");
        assert!(app.contains(r#""token_type_ids": tokens.type_ids}"#), "{app}");
        assert!(app.contains("mask = np.frombuffer(state, np.int32)"), "{app}");
        assert!(!app.contains("LENGTHS"), "{app}");
    }

    #[test]
    fn pictures_are_made_as_the_model_takes_them() {
        let input = tensor("x", Dtype::Uint8, &[None, None, None, Some(3)]);
        let boxes = tensor("boxes", Dtype::Float32, &[Some(1), Some(84), Some(8400)]);
        let (app, _) = made(vec![input], vec![boxes]);
        assert!(app.contains("picture.letterbox(224, 224).pixels"), "{app}");
        assert!(app.contains("to_tensor(layout=Layout.NHWC, dtype=Dtype.UINT8)"), "{app}");
        assert!(app.contains(r#""boxes": {"shape": list(outputs["boxes"].shape)}"#), "{app}");
        let input = tensor("x", Dtype::Float32, &[None, Some(3), Some(32), Some(48)]);
        let (app, _) = made(vec![input], vec![tensor("y", Dtype::Float32, &[None, Some(9)])]);
        assert!(app.contains("picture.resize_shorter(48).center_crop(48, 32)"), "{app}");
        assert!(app.contains("to_tensor(mean=MEAN, std=STD)"), "{app}");
    }
}
