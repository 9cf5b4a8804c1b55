//! A plugin in C that fits a model: its code, its unit tests and a sample request.

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::Dtype;
use serde_json::Value;

use super::signature::{Files, Fit, Picture, Requests, is_large, sizes, tested_dims};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(fit: &Fit<'_>) -> Result<Files> {
    Ok(vec![
        ("plugin.c", plugin(fit).into_bytes()),
        ("plugin_test.c", tests(fit).into_bytes()),
        fit.sample()?,
    ])
}

/// A text of C, in UTF-8.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                let _ = write!(quoted, "\\{}", char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted + "\""
}

fn dtype(dtype: Dtype) -> String {
    format!("GM_{}", format!("{dtype:?}").to_uppercase())
}

/// A shape; none for a size is any.
fn shape(dims: &[Option<usize>]) -> String {
    match dims.is_empty() {
        // An array of C has an element at least.
        true => "(gm_shape){NULL, 0}".into(),
        false => format!("GM_SHAPE({})", sizes(dims, "GM_ANY").join(", ")),
    }
}

fn plugin(fit: &Fit<'_>) -> String {
    let [first, second] = fit.heading();
    let mut plugin = format!("// {first}\n//\n// {second}\n#include <gristmill_plugin.h>\n");
    if matches!(fit.requests, Requests::Tensors) {
        plugin += GIVE_TENSOR;
    }
    plugin += "\ngm_status gm_preprocess(const gm_context *context, const gm_request *request,\n                        \
               gm_prepared *prepared) {\n    (void)context;\n";
    match &fit.requests {
        Requests::Picture(picture) => plugin += &picture_lines(fit, picture),
        Requests::Objects => {
            plugin += "    gm_tensor *input;\n";
            for input in &fit.model.inputs {
                let (name, dtype) = (quoted(&input.name), dtype(input.dtype));
                let _ = writeln!(
                    plugin,
                    "    GM_TRY(gm_request_json_rows(request, \"\", (const char *[]){{{name}}}, 1, {dtype},\n                                \
                     &input));\n    GM_TRY(gm_prepared_input(prepared, {name}, input));"
                );
            }
            plugin += "    return GM_OK;\n";
        }
        Requests::Tensors => {
            for input in &fit.model.inputs {
                let (name, pointer) = (quoted(&input.name), quoted(&fit.pointer(input)));
                let _ = writeln!(
                    plugin,
                    "    GM_TRY(give_tensor(prepared, {name}, request, {pointer}, {},\n                       {}));",
                    dtype(input.dtype),
                    shape(&input.dims)
                );
            }
            plugin += "    return GM_OK;\n";
        }
    }
    plugin += "}\n\ngm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,\n                         \
               gm_response *response) {\n    (void)context, (void)state;\n";
    plugin += &postprocess_lines(fit);
    plugin += "    gm_response_json(response, &answer);\n    return GM_OK;\n}\n";
    plugin
}

/// The function that a plugin for tensors has.
const GIVE_TENSOR: &str = r#"
// Gives the model its input: the values at a JSON Pointer, "" for the whole body. GM_ANY stands for
// any size.
static gm_status give_tensor(gm_prepared *prepared, const char *name, const gm_request *request,
                             const char *pointer, gm_dtype dtype, gm_shape wanted) {
    gm_tensor *tensor;
    GM_TRY(gm_request_json_tensor(request, pointer, dtype, &tensor));
    gm_shape found = gm_tensor_shape(tensor);
    bool fits = found.rank == wanted.rank;
    const char *has = "", *takes = "";
    for (size_t axis = 0; axis < found.rank; axis++)
        has = gm_format("%s%s%u", has, axis ? ", " : "", (unsigned)found.dims[axis]);
    for (size_t axis = 0; axis < wanted.rank; axis++) {
        bool is_any = wanted.dims[axis] == GM_ANY;
        const char *size = is_any ? "any" : gm_format("%u", (unsigned)wanted.dims[axis]);
        takes = gm_format("%s%s%s", takes, axis ? ", " : "", size);
        if (fits && !is_any) fits = wanted.dims[axis] == found.dims[axis];
    }
    if (!fits)
        return gm_invalid_input("%s has the sizes [%s], the model takes [%s]",
                                *pointer ? pointer : "the body", has, takes);
    return gm_prepared_input(prepared, name, tensor);
}
"#;

/// The lines of preprocess for a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let color = if picture.is_gray { "GM_GRAY" } else { "GM_RGB" };
    let mut lines = format!(
        "    gm_pixels *picture, *fitted;\n    gm_tensor *input;\n    \
         GM_TRY(gm_pixels_decode(gm_request_file(request), {color}, &picture));\n"
    );
    lines += &match fit.has_scores() {
        true => format!(
            "    GM_TRY(gm_pixels_resize_shorter(picture, {}, GM_BILINEAR, &picture));\n    \
             GM_TRY(gm_pixels_center_crop(picture, {width}, {height}, &fitted));\n",
            width.max(height)
        ),
        false => format!(
            "    GM_TRY(gm_pixels_letterbox(picture, {width}, {height}, GM_BILINEAR, NULL, &fitted, NULL));\n"
        ),
    };
    let input = &fit.model.inputs[0];
    let usual = match picture.is_normalised(input.dtype) {
        true => {
            lines += "    // The mean and std of ImageNet, which models of torchvision and timm take. Who trained\n";
            lines += "    // the model knows its values; GM_NCHW_0_TO_1(GM_RGB) gives 0 to 1.\n";
            "GM_NCHW_IMAGENET".to_owned()
        }
        false => format!("GM_NCHW_0_TO_1({color})"),
    };
    let _ = writeln!(lines, "    gm_tensor_options options = {usual};");
    if picture.has_channels_last {
        lines += "    options.layout = GM_NHWC;\n";
    }
    if input.dtype == Dtype::Uint8 {
        lines += "    options.dtype = GM_UINT8, options.scale = 1;\n";
    }
    let _ = writeln!(
        lines,
        "    GM_TRY(gm_pixels_to_tensor(fitted, options, &input));\n    \
         return gm_prepared_input(prepared, {}, input);",
        quoted(&input.name)
    );
    lines
}

/// The lines of postprocess that write the answer.
fn postprocess_lines(fit: &Fit<'_>) -> String {
    let mut lines = String::new();
    if fit.has_scores() {
        let _ = writeln!(
            lines,
            "    gm_tensor *scores;\n    \
             GM_TRY(gm_outputs_get(outputs, {}, &scores));\n    \
             // For logits, gm_tensor_softmax before this gives probabilities.\n    \
             gm_scores best = gm_tensor_top_k(scores, 0, 5);\n\n    \
             gm_json_writer answer = GM_JSON_WRITER;\n    gm_json_begin_object(&answer);\n    \
             gm_json_key(&answer, \"top\");\n    gm_json_begin_array(&answer);\n    \
             for (size_t at = 0; at < best.count; at++) {{\n        \
             gm_json_begin_object(&answer);\n        \
             gm_json_key(&answer, \"index\");\n        \
             gm_json_put_integer(&answer, best.items[at].index);\n        \
             gm_json_key(&answer, \"score\");\n        \
             gm_json_put_float(&answer, best.items[at].value);\n        \
             gm_json_end_object(&answer);\n    }}\n    gm_json_end_array(&answer);\n    \
             gm_json_end_object(&answer);",
            quoted(&fit.model.outputs[0].name)
        );
        return lines;
    }
    lines += "    gm_tensor *output;\n    gm_json_writer answer = GM_JSON_WRITER;\n    \
              gm_json_begin_object(&answer);\n";
    for output in &fit.model.outputs {
        let name = quoted(&output.name);
        let _ = writeln!(
            lines,
            "    GM_TRY(gm_outputs_get(outputs, {name}, &output));\n    gm_json_key(&answer, {name});"
        );
        lines += match is_large(output) {
            false => "    GM_TRY(gm_json_put_tensor(&answer, output));\n",
            true => {
                "    // Too large for an answer: take out what clients need, in place of its shape.\n    \
                 gm_json_begin_array(&answer);\n    \
                 for (size_t axis = 0; axis < gm_tensor_shape(output).rank; axis++)\n        \
                 gm_json_put_integer(&answer, gm_tensor_shape(output).dims[axis]);\n    \
                 gm_json_end_array(&answer);\n"
            }
        };
    }
    lines += "    gm_json_end_object(&answer);\n";
    lines
}

fn tests(fit: &Fit<'_>) -> String {
    let mut tests = format!(
        "// Tests of {}. They run natively, on the SDK's reference host: no server is needed.\n\
         #include <gristmill_host.h>\n#include <stdio.h>\n#include <string.h>\n",
        fit.name
    );
    let mut names = Vec::new();
    if !fit.is_of_pictures() {
        tests += "\nstatic gm_host_prepared sent(gm_bytes body) {\n    \
                  gm_host_request request = {.body = body, .content_type = \"application/json\"};\n    \
                  return gm_host_preprocess(&request);\n}\n\n\
                  static void the_sample_becomes_the_models_inputs(void) {\n    \
                  gm_host_prepared prepared = sent(gm_host_file(\"requests/sample.json\"));\n    \
                  assert(prepared.status == GM_OK);\n";
        let count = fit.model.inputs.len();
        let _ = writeln!(tests, "    assert(prepared.inputs_count == {count});");
        for (at, input) in fit.model.inputs.iter().enumerate() {
            let _ = writeln!(
                tests,
                "    assert(strcmp(prepared.inputs[{at}].name, {}) == 0);\n    \
                 assert(prepared.inputs[{at}].dtype == {});",
                quoted(&input.name),
                dtype(input.dtype)
            );
            for (axis, size) in fit.input_dims(input).into_iter().enumerate() {
                let _ = writeln!(
                    tests,
                    "    assert(prepared.inputs[{at}].shape.dims[{axis}] == {size});"
                );
            }
        }
        tests += "}\n\nstatic void any_other_body_is_refused(void) {\n    \
                  assert(sent(GM_HOST_TEXT(\"\")).status == GM_INVALID_INPUT);\n    \
                  assert(sent(GM_HOST_TEXT(\"[\")).status == GM_INVALID_INPUT);\n    \
                  assert(sent(GM_HOST_TEXT(\"null\")).status == GM_INVALID_INPUT);\n}\n";
        names = vec!["the_sample_becomes_the_models_inputs", "any_other_body_is_refused"];
    }
    names.push("the_outputs_become_the_answer");
    tests += "\nstatic void the_outputs_become_the_answer(void) {\n    \
              static const uint8_t zeros[1 << 20];\n    gm_host_tensor outputs[] = {\n";
    for output in &fit.model.outputs {
        let dims = tested_dims(output);
        let elements: usize = dims.iter().product();
        // A text without letters has its length, which is 0, in four bytes.
        let bytes = elements * output.dtype.size_bytes().unwrap_or(4);
        let _ = writeln!(
            tests,
            "        {{{}, {}, {}, {{zeros, {bytes}}}}},",
            quoted(&output.name),
            dtype(output.dtype),
            shape(&dims.into_iter().map(Some).collect::<Vec<_>>())
        );
    }
    let _ = writeln!(
        tests,
        "    }};\n    gm_host_response response =\n        \
         gm_host_postprocess(NULL, outputs, {}, GM_HOST_TEXT(\"\"));\n    \
         assert(response.status == GM_OK);",
        fit.model.outputs.len()
    );
    for key in fit.answer_keys() {
        let key = quoted(&format!("{}:", Value::from(key)));
        let _ = writeln!(tests, "    assert(strstr((const char *)response.body.data, {key}));");
    }
    tests += "}\n\nint main(void) {\n";
    for name in names {
        let _ = writeln!(tests, "    {name}();");
    }
    let _ = write!(tests, "    gm_host_reset();\n    puts(\"{}: passed\");\n}}\n", fit.name);
    tests
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use gristmill_core::TensorInfo;

    use super::super::signature::{Signature, tensor};
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        let model = Signature { inputs, outputs };
        plugin(&Fit::new("a", "m.onnx", &model).unwrap())
    }

    #[test]
    fn inputs_are_found_by_keys_and_pointers() {
        let age = tensor("age", Dtype::Int64, &[None, Some(1)]);
        let city = tensor("a \"city\" é??", Dtype::String, &[None, Some(1)]);
        let plugin = made(vec![age.clone(), city], vec![tensor("y", Dtype::Int64, &[None])]);
        let key = r#"(const char *[]){"a \"city\" \303\251\?\?"}, 1, GM_STRING,"#;
        assert!(plugin.contains(key), "{plugin}");
        let plugin = made(vec![tensor("x/0", Dtype::Int64, &[None]), age.clone()], vec![age]);
        let line = r#"give_tensor(prepared, "x/0", request, "/x~10", GM_INT64,"#;
        assert!(plugin.contains(line) && plugin.contains("GM_SHAPE(GM_ANY)"), "{plugin}");
    }

    #[test]
    fn pictures_are_made_as_the_model_takes_them() {
        let input = tensor("x", Dtype::Uint8, &[None, None, None, Some(3)]);
        let boxes = tensor("boxes", Dtype::Float32, &[Some(1), Some(84), Some(8400)]);
        let plugin = made(vec![input], vec![boxes]);
        assert!(plugin.contains("gm_pixels_letterbox(picture, 224, 224,"), "{plugin}");
        assert!(plugin.contains("options.layout = GM_NHWC;"), "{plugin}");
        assert!(plugin.contains("options.dtype = GM_UINT8, options.scale = 1;"), "{plugin}");
    }
}
