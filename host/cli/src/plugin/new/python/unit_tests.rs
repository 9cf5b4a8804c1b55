//! The unit tests of a plugin in Python that fits models.

use std::fmt::Write as _;

use gristmill_core::TensorInfo;
use serde_json::Value;

use super::words::{dtype, quoted};
use crate::plugin::new::fit::{Fit, PluginFit};
use crate::plugin::new::signature::{element, tested_dims};

/// Tests of both calls around a model.
pub(super) fn tests(plugin: &PluginFit<'_>, fit: &Fit<'_>) -> String {
    let (model, is_picture) = (fit.model, plugin.is_of_pictures());
    let sample = if is_picture { "sample.png" } else { "sample.json" };
    let mut tests =
        String::from("from pathlib import Path\n\nimport pytest\nfrom app import Plugin\n\n");
    tests += match is_picture {
        true => "from gristmill_plugin import Dtype, Outputs, Tensor, json, testing\n",
        false => {
            "from gristmill_plugin import Dtype, InvalidInput, Outputs, Tensor, json, testing\n"
        }
    };
    let _ = write!(
        tests,
        "\nSAMPLE = Path(__file__).parent / \"requests/{sample}\"\n{}\n\n\
         def preprocess(body: bytes):\n    \
         return Plugin().preprocess(testing.context(), testing.request(body))\n\n\n\
         def test_the_sample_becomes_the_models_inputs():\n",
        tokenizer(plugin)
    );
    if is_picture {
        tests +=
            "    pytest.importorskip(\"PIL\", reason=\"the SDK decodes pictures with Pillow\")\n";
    }
    tests += "    inputs = preprocess(SAMPLE.read_bytes()).inputs\n";
    for input in &model.inputs {
        let sizes = fit.input_dims(input);
        let (name, dtype) = (quoted(&input.name), dtype(input));
        let _ = writeln!(
            tests,
            "    assert inputs[{name}].dtype == {dtype}\n    \
             assert list(inputs[{name}].shape) == {sizes:?}"
        );
    }
    if !is_picture {
        tests += BODY_IS_REFUSED;
        tests += "        preprocess(body)\n";
    }
    // Unit tests have no host, which alone works on arrays: `gristmill plugin test` does.
    if fit.has_pooled() {
        let of_outputs = "Dtype, InvalidInput, Outputs, Tensor, json, testing";
        return tests.replacen(of_outputs, "Dtype, InvalidInput, testing", 1);
    }
    tests += "\n\ndef test_outputs_become_the_answer():\n    outputs = Outputs(\n        {\n";
    for output in &model.outputs {
        let _ = writeln!(tests, "            {},", tested_output(output));
    }
    tests += "        }\n    )\n    \
              response = Plugin().postprocess(testing.context(), outputs, b\"\")\n    ";
    tests += &assert_keys(plugin);
    tests
}

/// The entry of an output in a dictionary of tests.
fn tested_output(output: &TensorInfo) -> String {
    let sizes = tested_dims(output);
    let count: usize = sizes.iter().product();
    let value = match element(output.dtype) {
        Value::Bool(_) => "True".to_owned(),
        value => value.to_string(),
    };
    let (name, dtype) = (quoted(&output.name), dtype(output));
    format!("{name}: Tensor.from_values({sizes:?}, {dtype}, [{value}] * {count})")
}

fn assert_keys(plugin: &PluginFit<'_>) -> String {
    let keys: Vec<_> = plugin.answer_keys().into_iter().map(quoted).collect();
    format!("assert list(json.loads(response.body)) == [{}]\n", keys.join(", "))
}

/// What gives tests the tokenizer. Those are skipped where its package is missing.
fn tokenizer(plugin: &PluginFit<'_>) -> &'static str {
    match plugin.is_of_texts() {
        true => TOKENIZER,
        false => "",
    }
}

const TOKENIZER: &str = "\n\n@pytest.fixture(autouse=True)\n\
    def tokenizer():\n    \
    pytest.importorskip(\"tokenizers\", reason=\"it makes the tokens in unit tests\")\n    \
    with testing.tokenizer(\"tokenizer.json\", Path(__file__).parent / \"assets/tokenizer.json\"):\n        \
    yield\n";

/// Tests of a handler, in which functions stand in for its models.
pub(super) fn handler_tests(plugin: &PluginFit<'_>) -> String {
    let is_picture = plugin.is_of_pictures();
    let (sample, failure) = match (is_picture, plugin.has_parts()) {
        (true, false) => ("sample.png", ""),
        _ => ("sample.json", "InvalidInput, "),
    };
    let mut tests = format!(
        "from contextlib import ExitStack\nfrom pathlib import Path\n\n\
         import pytest\nfrom app import Plugin\n\n\
         from gristmill_plugin import Dtype, {failure}Tensor, json, testing\n\n\
         SAMPLE = Path(__file__).parent / \"requests/{sample}\"\n\n\
         # The inputs that each model gets for the sample.\nINPUTS = {{\n"
    );
    for fit in plugin.models() {
        let _ = writeln!(tests, "    {}: {{", quoted(fit.own_name.unwrap_or_default()));
        for input in &fit.model.inputs {
            let (name, dtype, sizes) = (quoted(&input.name), dtype(input), fit.input_dims(input));
            let _ = writeln!(tests, "        {name}: ({dtype}, {sizes:?}),");
        }
        tests += "    },\n";
    }
    tests += "}\n\n\ndef outputs_of(name):\n    return {\n";
    for fit in plugin.models() {
        let _ = writeln!(tests, "        {}: {{", quoted(fit.own_name.unwrap_or_default()));
        for output in &fit.model.outputs {
            let _ = writeln!(tests, "            {},", tested_output(output));
        }
        tests += "        },\n";
    }
    tests += "    }[name]\n";
    tests += tokenizer(plugin);
    tests += "\n\n\
              def stand_in(name):\n    \
              def run(inputs):\n        \
              found = {key: (input.dtype, list(input.shape)) for key, input in inputs.items()}\n        \
              assert found == INPUTS[name]\n        \
              return outputs_of(name)\n\n    \
              return testing.model(name, run)\n\n\n\
              def handle(body: bytes):\n    \
              return Plugin().handle(testing.context(), testing.request(body))\n\n\n\
              def test_the_sample_runs_each_model():\n";
    if is_picture {
        tests +=
            "    pytest.importorskip(\"PIL\", reason=\"the SDK decodes pictures with Pillow\")\n";
    }
    tests += "    with ExitStack() as models:\n        \
              for name in INPUTS:\n            \
              models.enter_context(stand_in(name))\n        \
              response = handle(SAMPLE.read_bytes())\n    ";
    tests += &assert_keys(plugin);
    if !failure.is_empty() {
        tests += BODY_IS_REFUSED;
        tests += "        handle(body)\n";
    }
    tests
}

/// The test that begins so calls the plugin with `body` in its last line.
const BODY_IS_REFUSED: &str = "\n\n@pytest.mark.parametrize(\"body\", [b\"\", b\"[\", b\"null\"])\n\
    def test_any_other_body_is_refused(body):\n    with pytest.raises(InvalidInput):\n";
