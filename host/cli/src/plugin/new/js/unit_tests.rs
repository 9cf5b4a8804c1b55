//! The unit tests of a plugin in JavaScript that fits models.

use std::fmt::Write as _;

use gristmill_core::TensorInfo;
use serde_json::Value;

use super::words::{dtype, key, quoted};
use crate::plugin::new::fit::{Fit, PluginFit};
use crate::plugin::new::signature::{element, tested_dims};

/// Tests of both calls around a model.
pub(super) fn tests(plugin: &PluginFit<'_>, fit: &Fit<'_>) -> String {
    let is_picture = plugin.is_of_pictures();
    let sample = if is_picture { "sample.png" } else { "sample.json" };
    let mut tests = imports(plugin);
    tests += "const host = new TestHost();\n";
    tests += tokenizer(plugin);
    tests += "\n";
    let options = skip(plugin);
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
        tests += &any_other_body_is_refused("preprocess");
    }
    // Unit tests have no host, which alone works on arrays: `gristmill plugin test` does.
    if fit.has_pooled() {
        return tests.replacen("import { Tensor } from 'gristmill-plugin';\n", "", 1);
    }
    tests += "\ntest('the outputs become the answer', async () => {\n  \
              const answer = await host.postprocess(plugin, {\n";
    for output in &fit.model.outputs {
        let _ = writeln!(tests, "    {},", tested_output(output));
    }
    let _ = writeln!(tests, "  }});\n  {}\n}});", assert_keys(plugin));
    tests
}

fn imports(plugin: &PluginFit<'_>) -> String {
    let mut imports = String::from(
        "import assert from 'node:assert/strict';\nimport { readFile } from 'node:fs/promises';\n\
         import { test } from 'node:test';\nimport { Tensor } from 'gristmill-plugin';\n\
         import { TestHost } from 'gristmill-plugin/testing';\n\
         import * as plugin from '../plugin.js';\n\n",
    );
    if plugin.is_of_pictures() {
        imports += "const hasPng = await import('pngjs').then(\n  () => true,\n  () => false,\n);\n\
                    const skip = !hasPng && 'it needs `npm install --save-dev pngjs`';\n\n";
    }
    imports
}

/// The options of a test that decodes the sample.
fn skip(plugin: &PluginFit<'_>) -> &'static str {
    if plugin.is_of_pictures() { "{ skip }, " } else { "" }
}

/// The entry of an output in an object of tests.
fn tested_output(output: &TensorInfo) -> String {
    let sizes = tested_dims(output);
    let count: usize = sizes.iter().product();
    let value = match element(output.dtype) {
        Value::String(text) => quoted(&text),
        value => value.to_string(),
    };
    let (name, dtype) = (key(&output.name), dtype(output));
    format!("{name}: Tensor.from(Array({count}).fill({value}), {sizes:?}, {dtype})")
}

fn assert_keys(plugin: &PluginFit<'_>) -> String {
    let keys: Vec<_> = plugin.answer_keys().into_iter().map(quoted).collect();
    format!("assert.deepEqual(Object.keys(answer.json()).sort(), [{}].sort());", keys.join(", "))
}

/// The line that gives tests a tokenizer, which splits texts at white space.
fn tokenizer(plugin: &PluginFit<'_>) -> &'static str {
    match plugin.is_of_texts() {
        true => "host.tokenizer('tokenizer.json', ['[PAD]', '[UNK]', 'text']);\n",
        false => "",
    }
}

/// Tests of a handler, in which functions stand in for its models.
pub(super) fn handler_tests(plugin: &PluginFit<'_>) -> String {
    let is_only_a_picture = plugin.is_of_pictures() && !plugin.has_parts();
    let sample = if is_only_a_picture { "sample.png" } else { "sample.json" };
    let mut tests = imports(plugin);
    tests += "// The inputs that each model gets for the sample.\nconst INPUTS = {\n";
    for fit in plugin.models() {
        let _ = writeln!(tests, "  {}: {{", key(fit.own_name.unwrap_or_default()));
        for input in &fit.model.inputs {
            let (name, dtype, sizes) = (key(&input.name), dtype(input), fit.input_dims(input));
            let _ = writeln!(tests, "    {name}: [{dtype}, {sizes:?}],");
        }
        tests += "  },\n";
    }
    tests += "};\n\nconst OUTPUTS = {\n";
    for fit in plugin.models() {
        let _ = writeln!(tests, "  {}: () => ({{", key(fit.own_name.unwrap_or_default()));
        for output in &fit.model.outputs {
            let _ = writeln!(tests, "    {},", tested_output(output));
        }
        tests += "  }),\n";
    }
    let _ = write!(
        tests,
        "}};\n\nconst host = new TestHost();\n{}\
         for (const [name, outputs] of Object.entries(OUTPUTS)) {{\n  \
         host.model(name, (inputs) => {{\n    \
         const found = Object.entries(inputs).map(([key, {{ dtype, shape }}]) => [key, [dtype, shape]]);\n    \
         assert.deepEqual(Object.fromEntries(found), INPUTS[name]);\n    \
         return outputs();\n  }});\n}}\n\n\
         test('the sample runs each model', {}async () => {{\n  \
         const body = await readFile(new URL('../requests/{sample}', import.meta.url));\n  \
         const answer = await host.handle(plugin, {{ body }});\n  {}\n}});\n",
        tokenizer(plugin),
        skip(plugin),
        assert_keys(plugin)
    );
    if !is_only_a_picture {
        tests += &any_other_body_is_refused("handle");
    }
    tests
}

fn any_other_body_is_refused(call: &str) -> String {
    format!(
        "\ntest('any other body is refused', async () => {{\n  \
         for (const body of ['', '[', 'null']) {{\n    \
         await assert.rejects(host.{call}(plugin, {{ body }}), {{ status: 400 }});\n  }}\n}});\n"
    )
}
