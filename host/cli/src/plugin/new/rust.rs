//! A plugin in Rust that fits models: its code, its unit tests and a sample request.

mod texts;
mod unit_tests;
mod words;

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};

use self::texts::{TOKENS_AT, pooled, pooled_answer, text_constants, tokens_lines};
use self::words::dtype;
use super::fit::{Files, Fit, PluginFit};
use super::signature::{Picture, Requests};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(plugin: &PluginFit<'_>) -> Result<Files> {
    let code = ("src/lib.rs", library(plugin));
    plugin.files(code, "src/tests.rs", unit_tests::tests, unit_tests::handler_tests)
}

fn library(plugin: &PluginFit<'_>) -> String {
    let (first, models) = plugin.heading();
    let mut library = format!("//! {first}\n//!\n");
    for model in models {
        let _ = writeln!(library, "//! {model}");
    }
    library += "\n";
    let has_scores = plugin.models().iter().any(Fit::has_scores);
    if plugin.has_parts() || !has_scores {
        library += "use std::collections::BTreeMap;\n\n";
    }
    library += &picture_imports(plugin);
    if plugin.only().is_none() {
        library += "use gristmill_plugin::models;\n";
    }
    let pooled_texts = plugin.only().filter(|fit| fit.has_pooled()).and_then(Fit::texts);
    if pooled_texts.is_some() {
        library += "use gristmill_plugin::numpy::Array;\n";
    }
    if plugin.is_of_texts() {
        library += "use gristmill_plugin::tokenizer::{self, Encoded, Options, Padding};\n";
    }
    let _ = writeln!(library, "use gristmill_plugin::{{\n    {},\n}};", names(plugin).join(", "));
    if has_scores {
        library += "use serde_json::json;\n";
    }
    library += &text_constants(plugin);
    library += "\nstruct Plugin;\n\n";
    match plugin.only() {
        Some(fit) => library += &processor(fit),
        None => library += &handler(plugin),
    }
    if plugin.is_of_tensors() {
        library += TENSOR_AT;
    }
    if plugin.is_of_texts() {
        library += TOKENS_AT;
    }
    if let Some(texts) = pooled_texts {
        library += &pooled(texts);
    }
    library += "\n#[cfg(test)]\nmod tests;\n";
    library
}

/// What it imports of the SDK.
fn names(plugin: &PluginFit<'_>) -> Vec<&'static str> {
    let mut names = vec!["Context", "Request", "Response"];
    match plugin.only() {
        Some(_) => names.extend(["Failure", "Outputs", "Prepared", "Processor"]),
        None => names.extend(["HandleError", "Handler"]),
    }
    names.extend(plugin.names_dtypes().then_some("Dtype"));
    names.extend(plugin.is_of_tensors().then_some("Tensor"));
    if plugin.only().is_none() {
        let has_tensors = plugin.models().iter().any(|fit| !fit.has_scores());
        let names_failure = plugin.is_of_tensors() || plugin.has_parts() && has_tensors;
        names.extend(names_failure.then_some("Failure"));
    }
    names.sort_unstable();
    names
}

fn processor(fit: &Fit<'_>) -> String {
    let mut text = String::from(
        "impl Processor for Plugin {\n    \
         fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {\n",
    );
    match &fit.requests {
        Requests::Picture(picture) => {
            text += &picture_lines(fit, picture);
            let name = &*fit.model.inputs[0].name;
            let _ = writeln!(text, "        Ok(Prepared::new().input({name:?}, input))");
        }
        Requests::Texts(_) | Requests::Objects | Requests::Tensors => {
            if let Some(texts) = fit.texts() {
                text += &tokens_lines(fit, texts);
            }
            text += "        Ok(Prepared::new()";
            for input in &fit.model.inputs {
                let value = input_value(fit, input);
                let _ = write!(text, "\n            .input({:?}, {value})", &*input.name);
            }
            text += if fit.has_pooled() { "\n            .state(state))\n" } else { ")\n" };
        }
    }
    let state = if fit.has_pooled() { "state" } else { "_state" };
    let _ = write!(
        text,
        "    }}\n\n    fn postprocess(\n        _context: &Context,\n        \
         outputs: Outputs,\n        {state}: Vec<u8>,\n    \
         ) -> Result<Response, Failure> {{\n"
    );
    let (lines, value) = answer(fit);
    text += &lines;
    let _ = writeln!(text, "        Response::json(&{value})");
    text + "    }\n}\n\ngristmill_plugin::export_processor!(Plugin);\n"
}

fn handler(plugin: &PluginFit<'_>) -> String {
    let mut text = String::from(
        "impl Handler for Plugin {\n    \
         fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {\n",
    );
    if plugin.has_parts() {
        text += "        let mut answer = BTreeMap::new();\n";
    }
    for fit in plugin.models() {
        let own_name = fit.own_name.unwrap_or_default();
        if let Requests::Picture(picture) = &fit.requests {
            text += &picture_lines(fit, picture);
        } else if let Some(texts) = fit.texts() {
            text += &tokens_lines(fit, texts);
        } else {
            for (at, input) in fit.model.inputs.iter().enumerate() {
                let _ = writeln!(text, "        let input_{at} = {};", input_value(fit, input));
            }
        }
        let _ = writeln!(text, "        let outputs = models::infer({own_name:?}, &[");
        for (at, input) in fit.model.inputs.iter().enumerate() {
            let value = match fit.requests {
                Requests::Texts(_) => input_value(fit, input),
                Requests::Picture(_) => "input".to_owned(),
                Requests::Objects | Requests::Tensors => format!("input_{at}"),
            };
            let _ = writeln!(text, "            ({:?}, &{value}),", &*input.name);
        }
        text += "        ])?;\n";
        let (lines, value) = answer(fit);
        text += &lines;
        let _ = match (plugin.has_parts(), fit.has_scores()) {
            (false, _) => writeln!(text, "        Ok(Response::json(&{value})?)"),
            (true, true) => writeln!(text, "        answer.insert({own_name:?}, {value});"),
            (true, false) => writeln!(
                text,
                "        let part = serde_json::to_value({value});\n        \
                 let part = part.map_err(|fault| Failure::internal(fault.to_string()))?;\n        \
                 answer.insert({own_name:?}, part);"
            ),
        };
    }
    if plugin.has_parts() {
        text += "        Ok(Response::json(&answer)?)\n";
    }
    text + "    }\n}\n\ngristmill_plugin::export_handler!(Plugin);\n"
}

/// The function that a plugin for tensors has.
const TENSOR_AT: &str = r#"
/// The values at a JSON Pointer, "" for the whole body. None stands for any size.
fn tensor_at(
    request: &Request,
    pointer: &str,
    dtype: Dtype,
    sizes: &[Option<usize>],
) -> Result<Tensor, Failure> {
    let tensor = request.json_tensor(pointer, &[], dtype)?;
    let found = tensor.dims();
    let fits = |(size, found): (&Option<usize>, &usize)| size.is_none_or(|size| size == *found);
    if sizes.len() != found.len() || !sizes.iter().zip(&found).all(fits) {
        let place = if pointer.is_empty() { "the body" } else { pointer };
        let wanted = |size: &Option<usize>| size.map_or("any".into(), |size| size.to_string());
        let wanted = sizes.iter().map(wanted).collect::<Vec<_>>().join(", ");
        let text = format!("{place} has the sizes {found:?}, the model takes [{wanted}]");
        return Err(Failure::invalid_input(text));
    }
    Ok(tensor)
}
"#;

/// The expression of an input.
fn input_value(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (&*input.name, dtype(input));
    if fit.texts().is_some() {
        let part = Fit::part_of(input, ["ids", "attention_mask", "type_ids"]);
        return format!("tokens.{part}");
    }
    if matches!(fit.requests, Requests::Objects) {
        return format!("request.json_rows({:?}, &[{name:?}], {dtype})?", fit.place);
    }
    let size = |size: &Option<usize>| format!("{size:?}");
    let sizes: Vec<_> = input.dims.iter().map(size).collect();
    let pointer = fit.pointer(input);
    format!("tensor_at(request, {pointer:?}, {dtype}, &[{}])?", sizes.join(", "))
}

fn picture_imports(plugin: &PluginFit<'_>) -> String {
    if !plugin.is_of_pictures() {
        return String::new();
    }
    let has = |is_so: fn(&Picture, Dtype) -> bool| {
        plugin.pictures().any(|(picture, fit)| is_so(picture, fit.model.inputs[0].dtype))
    };
    let mut names = vec!["self", "Pixels"];
    names.extend(plugin.models().iter().any(Fit::has_scores).then_some("Filter"));
    names.extend(has(|picture, dtype| !picture.is_normalised(dtype)).then_some("Color"));
    names.extend(has(|picture, _| picture.has_channels_last).then_some("Layout"));
    let has_options =
        |picture: &Picture, dtype: Dtype| picture.has_channels_last || dtype == Dtype::Uint8;
    names.extend(has(has_options).then_some("TensorOptions"));
    names.sort_unstable_by_key(|name| (*name != "self", *name));
    format!("use gristmill_plugin::image::{{{}}};\n", names.join(", "))
}

/// The lines that make `input` of a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let (decoded, color) = match picture.is_gray {
        true => ("image::GRAY", "Color::Gray"),
        false => ("image::RGB", "Color::Rgb"),
    };
    let body = match &*fit.place {
        "" => "request.body()".to_owned(),
        place => format!("request.json_blob({place:?})?"),
    };
    let fitted = match fit.has_scores() {
        true => format!(
            "picture.resize_shorter({}, Filter::Bilinear)?.center_crop({width}, {height})?",
            width.max(height)
        ),
        false => {
            let fill = if picture.is_gray { "[0]" } else { "[0; 3]" };
            format!("image::letterbox(&picture, {width}, {height}, &{fill})?.pixels")
        }
    };
    let input = &fit.model.inputs[0];
    let is_normalised = picture.is_normalised(input.dtype);
    let usual = match is_normalised {
        true => "image::imagenet()".to_owned(),
        false => format!("image::nchw({color})"),
    };
    let mut changed = Vec::new();
    changed.extend(picture.has_channels_last.then_some("layout: Layout::Nhwc"));
    changed.extend((input.dtype == Dtype::Uint8).then_some("dtype: Dtype::Uint8, scale: 1.0"));
    let options = match changed.is_empty() {
        true => format!("&{usual}"),
        false => format!("&TensorOptions {{ {}, ..{usual} }}", changed.join(", ")),
    };
    let comment = match is_normalised {
        true => {
            "        // The mean and std of ImageNet, which models of torchvision and timm take. Who \
             trained\n        // the model knows its values; image::nchw(Color::Rgb) gives 0 to 1.\n"
        }
        false => "",
    };
    format!(
        "        let picture = Pixels::decode(&{body}, {decoded})?;\n        \
         let fitted = {fitted};\n{comment}        \
         let input = fitted.to_tensor({options})?;\n"
    )
}

/// The answer of `outputs`: lines that come before, and the expression.
fn answer(fit: &Fit<'_>) -> (String, String) {
    if fit.has_scores() {
        let lines = format!(
            "        // For a model that gives logits, this gives probabilities:\n        \
             // .softmax().ok_or(Failure::internal(\"no FP32\"))?.top_k(0, 5)\n        \
             let best = outputs.get({:?})?.top_k(0, 5);\n        \
             let top = best.iter().map(|found| json!({{ \"index\": found.index, \"score\": found.value }}));\n",
            &*fit.model.outputs[0].name
        );
        return (lines, "json!({ \"top\": top.collect::<Vec<_>>() })".into());
    }
    if let Some(texts) = fit.texts().filter(|_| fit.has_pooled()) {
        return pooled_answer(fit, texts);
    }
    let has_large = fit.model.outputs.iter().any(|output| fit.is_left_out(output));
    let mut lines = String::new();
    if has_large {
        lines += "        // One is too large for an answer: take out what clients need, in place of shapes.\n";
    }
    let mut value = "BTreeMap::from([\n".to_owned();
    for output in &fit.model.outputs {
        let name = &*output.name;
        let shape = if has_large { ".dims()" } else { "" };
        let _ = writeln!(value, "            ({name:?}, outputs.get({name:?})?{shape}),");
    }
    (lines, value + "        ])")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::fit::of_models;
    use super::super::signature::tensor;
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        of_models(vec![(None, inputs, outputs)], library).unwrap()
    }

    #[test]
    fn inputs_are_found_by_keys_and_pointers() {
        let age = tensor("age", Dtype::Int64, &[None, Some(1)]);
        let city = tensor("a \"city\"", Dtype::String, &[None, Some(1)]);
        let library = made(vec![age.clone(), city], vec![tensor("y", Dtype::Int64, &[None])]);
        let line =
            r#".input("a \"city\"", request.json_rows("", &["a \"city\""], Dtype::String)?)"#;
        assert!(library.contains(line), "{library}");
        let library = made(vec![tensor("x/0", Dtype::Int64, &[None]), age.clone()], vec![age]);
        let line = r#".input("x/0", tensor_at(request, "/x~10", Dtype::Int64, &[None])?)"#;
        assert!(library.contains(line), "{library}");
    }

    #[test]
    fn pictures_are_made_as_the_model_takes_them() {
        let input = tensor("x", Dtype::Uint8, &[None, None, None, Some(3)]);
        let boxes = tensor("boxes", Dtype::Float32, &[Some(1), Some(84), Some(8400)]);
        let library = made(vec![input], vec![boxes]);
        assert!(library.contains("image::letterbox(&picture, 224, 224, &[0; 3])?"), "{library}");
        assert!(
            library.contains("layout: Layout::Nhwc, dtype: Dtype::Uint8, scale: 1.0"),
            "{library}"
        );
        assert!(library.contains(r#"("boxes", outputs.get("boxes")?.dims())"#), "{library}");
    }
}
