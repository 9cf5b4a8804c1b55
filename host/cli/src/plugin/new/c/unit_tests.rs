//! The unit tests of a plugin in C that fits models.

use std::fmt::Write as _;

use serde_json::Value;

use super::words::{dtype, quoted, shape};
use crate::plugin::new::fit::{Fit, PluginFit};
use crate::plugin::new::signature::tested_dims;

/// Tests of both calls around a model.
pub(super) fn tests(plugin: &PluginFit<'_>, fit: &Fit<'_>) -> String {
    let mut tests = format!(
        "// Tests of {}. They run natively, on the SDK's reference host: no server is needed.\n\
         #include <gristmill_host.h>\n#include <stdio.h>\n#include <string.h>\n",
        plugin.name
    );
    let mut names = Vec::new();
    if !plugin.is_of_pictures() {
        tests += "\nstatic gm_host_prepared sent(gm_bytes body) {\n    \
                  gm_host_request request = {.body = body, .content_type = \"application/json\"};\n    \
                  return gm_host_preprocess(&request);\n}\n\n\
                  static void the_sample_becomes_the_models_inputs(void) {\n    \
                  gm_host_prepared prepared = sent(gm_host_file(\"requests/sample.json\"));\n    \
                  assert(prepared.status == GM_OK);\n";
        let count = fit.model.inputs.len();
        let _ = writeln!(tests, "    assert(prepared.inputs_count == {count});");
        tests += &asserts(fit, "prepared.inputs");
        tests += "}\n\nstatic void any_other_body_is_refused(void) {\n    \
                  assert(sent(GM_HOST_TEXT(\"\")).status == GM_INVALID_INPUT);\n    \
                  assert(sent(GM_HOST_TEXT(\"[\")).status == GM_INVALID_INPUT);\n    \
                  assert(sent(GM_HOST_TEXT(\"null\")).status == GM_INVALID_INPUT);\n}\n";
        names = vec!["the_sample_becomes_the_models_inputs", "any_other_body_is_refused"];
    }
    names.push("the_outputs_become_the_answer");
    let _ = write!(
        tests,
        "\nstatic void the_outputs_become_the_answer(void) {{\n    \
         static const uint8_t zeros[1 << 20];\n    gm_host_tensor outputs[] = {{\n{}    }};\n    \
         gm_host_response response =\n        \
         gm_host_postprocess(NULL, outputs, {}, GM_HOST_TEXT(\"\"));\n    \
         assert(response.status == GM_OK);\n{}}}\n",
        outputs(fit),
        fit.model.outputs.len(),
        keys(plugin)
    );
    main(plugin, tokenizer(plugin), &names, tests)
}

/// Tests of a handler, in which functions stand in for its models.
pub(super) fn handler_tests(plugin: &PluginFit<'_>) -> String {
    let mut tests = format!(
        "// Tests of {}. They run natively, on the SDK's reference host: no server is needed.\n\
         #include <gristmill_host.h>\n#include <stdio.h>\n#include <string.h>\n\n\
         static const uint8_t zeros[1 << 20];\n",
        plugin.name
    );
    let mut models = tokenizer(plugin).to_owned();
    for (function, fit) in plugin.functions(|words| words.join("_")) {
        let own_name = quoted(fit.own_name.unwrap_or_default());
        let _ = writeln!(models, "    gm_host_add_model({own_name}, model_{function});");
        let _ = writeln!(
            tests,
            "\nstatic const gm_host_tensor outputs_of_{function}[] = {{\n{}}};\n\n\
             // Stands in for the model.\n\
             static gm_host_ran model_{function}(const gm_host_tensor *inputs, size_t count) {{\n    \
             assert(count == {});\n{}    \
             return (gm_host_ran){{.outputs = outputs_of_{function}, .outputs_count = {}}};\n}}",
            outputs(fit),
            fit.model.inputs.len(),
            asserts(fit, "inputs"),
            fit.model.outputs.len()
        );
    }
    let is_picture = plugin.is_of_pictures();
    let is_only_a_picture = is_picture && !plugin.has_parts();
    let sample = if is_only_a_picture { "sample.png" } else { "sample.json" };
    let (begin, end) = match is_picture {
        true => ("#if __has_include(<stb/stb_image.h>) // which decodes pictures\n", "#endif\n"),
        false => ("", ""),
    };
    let _ = write!(
        tests,
        "\nstatic gm_host_response sent(gm_bytes body) {{\n    \
         gm_host_request request = {{.body = body, .content_type = \"application/json\"}};\n    \
         return gm_host_handle(&request);\n}}\n\n\
         static void the_sample_runs_each_model(void) {{\n{begin}    \
         gm_host_response response = sent(gm_host_file(\"requests/{sample}\"));\n    \
         assert(response.status == GM_OK);\n{}{end}}}\n",
        keys(plugin)
    );
    let refused = if is_only_a_picture { "!= GM_OK" } else { "== GM_INVALID_INPUT" };
    tests += "\nstatic void any_other_body_is_refused(void) {\n";
    for body in ["", "[", "null"] {
        let body = quoted(body);
        let _ = writeln!(tests, "    assert(sent(GM_HOST_TEXT({body})).status {refused});");
    }
    tests += "}\n";
    let names = ["the_sample_runs_each_model", "any_other_body_is_refused"];
    main(plugin, &models, &names, tests)
}

/// The lines that give tests a tokenizer, which splits texts at white space.
fn tokenizer(plugin: &PluginFit<'_>) -> &'static str {
    match plugin.is_of_texts() {
        true => {
            "    static const char *const words[] = {\"[PAD]\", \"[UNK]\", \"text\"};\n    \
             gm_host_tokenizer(\"tokenizer.json\", words, 3);\n"
        }
        false => "",
    }
}

/// The test's function `main`, after `tests`.
fn main(plugin: &PluginFit<'_>, begin: &str, names: &[&str], mut tests: String) -> String {
    let _ = write!(tests, "\nint main(void) {{\n{begin}");
    for name in names {
        let _ = writeln!(tests, "    {name}();");
    }
    let _ = write!(tests, "    gm_host_reset();\n    puts(\"{}: passed\");\n}}\n", plugin.name);
    tests
}

/// Lines that check the inputs of the model in the array `found`.
fn asserts(fit: &Fit<'_>, found: &str) -> String {
    let mut lines = String::new();
    for (at, input) in fit.model.inputs.iter().enumerate() {
        let _ = writeln!(
            lines,
            "    assert(strcmp({found}[{at}].name, {}) == 0);\n    \
             assert({found}[{at}].dtype == {});",
            quoted(&input.name),
            dtype(input.dtype)
        );
        for (axis, size) in fit.input_dims(input).into_iter().enumerate() {
            let _ = writeln!(lines, "    assert({found}[{at}].shape.dims[{axis}] == {size});");
        }
    }
    lines
}

/// The model's outputs as elements of an array.
fn outputs(fit: &Fit<'_>) -> String {
    let mut lines = String::new();
    for output in &fit.model.outputs {
        let dims = tested_dims(output);
        let elements: usize = dims.iter().product();
        // A text without letters has its length, which is 0, in four bytes.
        let bytes = elements * output.dtype.size_bytes().unwrap_or(4);
        let _ = writeln!(
            lines,
            "    {{{}, {}, {}, {{zeros, {bytes}}}}},",
            quoted(&output.name),
            dtype(output.dtype),
            shape(&dims.into_iter().map(Some).collect::<Vec<_>>())
        );
    }
    lines
}

/// Lines that check that the answer `response` has its keys.
fn keys(plugin: &PluginFit<'_>) -> String {
    let mut lines = String::new();
    for key in plugin.answer_keys() {
        let key = quoted(&format!("{}:", Value::from(key)));
        let _ = writeln!(lines, "    assert(strstr((const char *)response.body.data, {key}));");
    }
    lines
}
