//! A plugin in JavaScript that fits a model: its code, its unit tests and a sample request.

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};
use serde_json::Value;

use super::signature::{Files, Fit, Picture, Requests, element, is_large, sizes, tested_dims};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(fit: &Fit<'_>) -> Result<Files> {
    Ok(vec![
        ("plugin.js", plugin(fit).into_bytes()),
        ("test/plugin.test.js", tests(fit).into_bytes()),
        fit.sample()?,
    ])
}

/// A text of JavaScript.
fn quoted(text: &str) -> String {
    let text = Value::from(text).to_string();
    match text.contains(['\'', '\\']) {
        true => text,
        false => format!("'{}'", &text[1..text.len() - 1]),
    }
}

/// A text as the key of an object.
fn key(text: &str) -> String {
    match text {
        // Otherwise it would be the object's prototype.
        "__proto__" => "['__proto__']".into(),
        text => quoted(text),
    }
}

/// The element type, as the SDK names it.
fn dtype(tensor: &TensorInfo) -> String {
    quoted(&format!("{:?}", tensor.dtype).to_lowercase())
}

fn plugin(fit: &Fit<'_>) -> String {
    let names = match &fit.requests {
        Requests::Picture(picture) => {
            let is_imagenet = picture.is_normalised(fit.model.inputs[0].dtype);
            if is_imagenet { "IMAGENET, Pixels, PluginResponse" } else { "Pixels, PluginResponse" }
        }
        Requests::Objects => "PluginResponse",
        Requests::Tensors => "InvalidInput, PluginResponse",
    };
    let [first, second] = fit.heading();
    let mut plugin = format!(
        "// {first}\n//\n// {second}\n\
         // Code outside of functions runs once, when the plugin is uploaded.\n\
         import {{ {names} }} from 'gristmill-plugin';\n\n\
         /** @type {{import('gristmill-plugin').Preprocess}} */\n\
         export function preprocess(context, request) {{\n"
    );
    match &fit.requests {
        Requests::Picture(picture) => plugin += &picture_lines(fit, picture),
        Requests::Objects | Requests::Tensors => {
            plugin += "  return {\n    inputs: {\n";
            for input in &fit.model.inputs {
                let _ = writeln!(plugin, "      {},", input_line(fit, input));
            }
            plugin += "    },\n  };\n";
        }
    }
    plugin += "}\n\n/** @type {import('gristmill-plugin').Postprocess} */\n\
               export function postprocess(context, outputs) {\n";
    if fit.has_scores() {
        let output = quoted(&fit.model.outputs[0].name);
        let _ = write!(
            plugin,
            "  // For a model that gives logits, .softmax().topK(5) gives probabilities.\n  \
             const best = outputs.get({output}).topK(5);\n  \
             const top = best.map(({{ index, value }}) => ({{ index, score: value }}));\n  \
             return PluginResponse.json({{ top }});\n"
        );
    } else {
        plugin += "  return PluginResponse.json({\n";
        for output in &fit.model.outputs {
            let (key, name) = (key(&output.name), quoted(&output.name));
            let _ = match is_large(output) {
                false => writeln!(plugin, "    {key}: outputs.get({name}),"),
                true => writeln!(
                    plugin,
                    "    // Too large for an answer: take out what clients need.\n    \
                     {key}: {{ shape: outputs.get({name}).shape }},"
                ),
            };
        }
        plugin += "  });\n";
    }
    plugin += "}\n";
    if matches!(fit.requests, Requests::Tensors) {
        plugin += TENSOR_AT;
    }
    plugin
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

/// An input's entry in the object that preprocess makes.
fn input_line(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (key(&input.name), dtype(input));
    if matches!(fit.requests, Requests::Objects) {
        let name_in_rows = quoted(&input.name);
        return format!("{name}: request.jsonTensor('', {dtype}, {{ keys: [{name_in_rows}] }})");
    }
    let (pointer, sizes) = (quoted(&fit.pointer(input)), sizes(&input.dims, "null").join(", "));
    format!("{name}: tensorAt(request, {pointer}, {dtype}, [{sizes}])")
}

/// The lines of preprocess for a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
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
        "  const picture = Pixels.decode(request{color});\n  \
         const fitted = {fitted};\n{comment}  \
         return {{ inputs: {{ {}: fitted.toTensor({options}) }} }};\n",
        key(&input.name)
    )
}

fn tests(fit: &Fit<'_>) -> String {
    let is_picture = fit.is_of_pictures();
    let sample = if is_picture { "sample.png" } else { "sample.json" };
    let mut tests = String::from(
        "import assert from 'node:assert/strict';\nimport { readFile } from 'node:fs/promises';\n\
         import { test } from 'node:test';\nimport { Tensor } from 'gristmill-plugin';\n\
         import { TestHost } from 'gristmill-plugin/testing';\n\
         import * as plugin from '../plugin.js';\n\nconst host = new TestHost();\n\n",
    );
    let options = match is_picture {
        true => {
            tests += "const hasPng = await import('pngjs').then(\n  () => true,\n  () => false,\n);\n\
                      const skip = !hasPng && 'it needs `npm install --save-dev pngjs`';\n\n";
            "{ skip }, "
        }
        false => "",
    };
    let _ = write!(
        tests,
        "test('the sample becomes the inputs of the model', {options}async () => {{\n  \
         const body = await readFile(new URL('../requests/{sample}', import.meta.url));\n  \
         const {{ inputs }} = await host.preprocess(plugin, {{ body }});\n"
    );
    for input in &fit.model.inputs {
        let (name, dtype, sizes) = (quoted(&input.name), dtype(input), fit.input_dims(input));
        let _ = writeln!(
            tests,
            "  assert.equal(inputs[{name}].dtype, {dtype});\n  \
             assert.deepEqual(inputs[{name}].shape, {sizes:?});"
        );
    }
    tests += "});\n";
    if !is_picture {
        tests += "\ntest('any other body is refused', async () => {\n  \
                  for (const body of ['', '[', 'null']) {\n    \
                  await assert.rejects(host.preprocess(plugin, { body }), { status: 400 });\n  \
                  }\n});\n";
    }
    tests += "\ntest('the outputs become the answer', async () => {\n  \
              const answer = await host.postprocess(plugin, {\n";
    for output in &fit.model.outputs {
        let sizes = tested_dims(output);
        let count: usize = sizes.iter().product();
        let value = match element(output.dtype) {
            Value::String(text) => quoted(&text),
            value => value.to_string(),
        };
        let (name, dtype) = (key(&output.name), dtype(output));
        let _ = writeln!(
            tests,
            "    {name}: Tensor.from(Array({count}).fill({value}), {sizes:?}, {dtype}),"
        );
    }
    let keys: Vec<_> = fit.answer_keys().into_iter().map(quoted).collect();
    let _ = writeln!(
        tests,
        "  }});\n  assert.deepEqual(Object.keys(answer.json()).sort(), [{}].sort());\n}});",
        keys.join(", ")
    );
    tests
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::signature::{Signature, tensor};
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        let model = Signature { inputs, outputs };
        plugin(&Fit::new("a", "m.onnx", &model).unwrap())
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
