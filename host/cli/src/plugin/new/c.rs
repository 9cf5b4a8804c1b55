//! A plugin in C that fits models: its code, its unit tests and a sample request.

mod unit_tests;
mod words;

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::Dtype;

use self::words::{dtype, quoted, shape};
use super::fit::{Files, Fit, LENGTHS, PluginFit};
use super::signature::{Picture, Requests, Texts};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(plugin: &PluginFit<'_>) -> Result<Files> {
    let code = ("plugin.c", code(plugin));
    plugin.files(code, "plugin_test.c", unit_tests::tests, unit_tests::handler_tests)
}

fn code(plugin: &PluginFit<'_>) -> String {
    let (first, models) = plugin.heading();
    let models = models.join("\n// ");
    let mut code = format!("// {first}\n//\n// {models}\n#include <gristmill_plugin.h>\n");
    if plugin.is_of_texts() {
        code += "#include <gristmill_text.h>\n";
    }
    if plugin.is_of_tensors() {
        code += TENSOR_AT;
    }
    if plugin.is_of_texts() {
        code += TOKENS_AT;
    }
    match plugin.only() {
        Some(fit) => code += &processor(fit),
        None => code += &handler(plugin),
    }
    code
}

fn processor(fit: &Fit<'_>) -> String {
    let mut code = String::from(
        "\ngm_status gm_preprocess(const gm_context *context, const gm_request *request,\n                        \
         gm_prepared *prepared) {\n    (void)context;\n",
    );
    code += &input_lines(fit);
    for (at, input) in fit.model.inputs.iter().enumerate() {
        let name = quoted(&input.name);
        let _ = writeln!(code, "    GM_TRY(gm_prepared_input(prepared, {name}, input_{at}));");
    }
    code += "    return GM_OK;\n}\n\n\
             gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,\n                         \
             gm_response *response) {\n    (void)context, (void)state;\n    \
             gm_json_writer json = GM_JSON_WRITER, *answer = &json;\n";
    code += &answer_lines(fit);
    code + "    gm_response_json(response, answer);\n    return GM_OK;\n}\n"
}

fn handler(plugin: &PluginFit<'_>) -> String {
    let (mut code, mut calls) = (String::new(), String::new());
    for (function, fit) in plugin.functions(|words| format!("run_{}", words.join("_"))) {
        let own_name = quoted(fit.own_name.unwrap_or_default());
        let _ = write!(
            code,
            "\n// Runs the model, and writes its outputs.\n\
             static gm_status {function}(const gm_request *request, gm_json_writer *answer) {{\n{}    \
             const gm_outputs *outputs;\n    GM_TRY(GM_INFER({own_name}, &outputs",
            input_lines(fit)
        );
        for (at, input) in fit.model.inputs.iter().enumerate() {
            let _ = write!(code, ",\n                    {{{}, input_{at}}}", quoted(&input.name));
        }
        let _ = write!(code, "));\n{}    return GM_OK;\n}}\n", answer_lines(fit));
        if plugin.has_parts() {
            let _ = writeln!(calls, "    gm_json_key(&answer, {own_name});");
        }
        let _ = writeln!(calls, "    GM_TRY({function}(request, &answer));");
    }
    let (begin, end) = match plugin.has_parts() {
        true => ("    gm_json_begin_object(&answer);\n", "    gm_json_end_object(&answer);\n"),
        false => ("", ""),
    };
    let _ = write!(
        code,
        "\ngm_status gm_handle(const gm_context *context, const gm_request *request,\n                    \
         gm_response *response) {{\n    (void)context;\n    \
         gm_json_writer answer = GM_JSON_WRITER;\n{begin}{calls}{end}    \
         gm_response_json(response, &answer);\n    return GM_OK;\n}}\n"
    );
    code
}

/// Lines that make the tensors `input_0` and on.
fn input_lines(fit: &Fit<'_>) -> String {
    let count = fit.model.inputs.len();
    let names: Vec<_> = (0..count).map(|at| format!("*input_{at}")).collect();
    let mut lines = format!("    gm_tensor {};\n", names.join(", "));
    if let Requests::Picture(picture) = &fit.requests {
        return lines + &picture_lines(fit, picture);
    }
    if let Some(texts) = fit.texts() {
        return lines + &tokens_lines(fit, texts);
    }
    for (at, input) in fit.model.inputs.iter().enumerate() {
        let (name, dtype) = (quoted(&input.name), dtype(input.dtype));
        let _ = match fit.requests {
            Requests::Objects => writeln!(
                lines,
                "    GM_TRY(gm_request_json_rows(request, {}, (const char *[]){{{name}}}, 1, {dtype},\n                                \
                 &input_{at}));",
                quoted(&fit.place)
            ),
            _ => writeln!(
                lines,
                "    GM_TRY(tensor_at(request, {}, {dtype},\n                     {}, &input_{at}));",
                quoted(&fit.pointer(input)),
                shape(&input.dims)
            ),
        };
    }
    lines
}

/// The function that a plugin for tensors has.
const TENSOR_AT: &str = r#"
// The values at a JSON Pointer, "" for the whole body. GM_ANY stands for any size.
static gm_status tensor_at(const gm_request *request, const char *pointer, gm_dtype dtype,
                           gm_shape wanted, gm_tensor **out) {
    GM_TRY(gm_request_json_tensor(request, pointer, dtype, out));
    gm_shape found = gm_tensor_shape(*out);
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
    return GM_OK;
}
"#;

/// The function that a plugin for texts has, besides that for tensors.
const TOKENS_AT: &str = r#"
// The tokens of the texts at a JSON Pointer, "" for the whole body, by tokenizer.json in assets/.
// Rows are filled up to the smallest of the lengths that fits, since rows of one length share
// batches. Longer texts are cut off.
static gm_status tokens_at(const gm_request *request, const char *pointer, const uint32_t *lengths,
                           size_t count, bool is_int32, gm_encoded *out) {
    gm_tensor *strings;
    GM_TRY(tensor_at(request, pointer, GM_STRING, GM_SHAPE(GM_ANY), &strings));
    if (gm_tensor_shape(strings).dims[0] == 0)
        return gm_invalid_input("%s has no texts", *pointer ? pointer : "the body");
    gm_texts texts = {.tensor = strings};
    gm_encode_options options = {.max_length = lengths[count - 1],
                                 .lengths = lengths,
                                 .lengths_count = count,
                                 .is_int32 = is_int32};
    return gm_encode("tokenizer.json", &texts, NULL, &options, out);
}
"#;

/// The lines that make the inputs of texts.
fn tokens_lines(fit: &Fit<'_>, texts: &Texts) -> String {
    let lengths = texts.length.map_or(LENGTHS.to_owned(), |length| length.to_string());
    let count = lengths.split(',').count();
    let (place, is_int32) = (quoted(&fit.place), texts.dtype == Dtype::Int32);
    let mut lines = String::new();
    if texts.length.is_none() {
        lines += "    // The most that the model takes is in its config.json (max_position_embeddings).\n";
    }
    let _ = write!(
        lines,
        "    static const uint32_t lengths[] = {{{lengths}}};\n    gm_encoded tokens;\n    \
         GM_TRY(tokens_at(request, {place}, lengths, {count}, {is_int32}, &tokens));\n"
    );
    for (at, input) in fit.model.inputs.iter().enumerate() {
        let part = Fit::part_of(input, ["ids", "attention_mask", "type_ids"]);
        let _ = writeln!(lines, "    input_{at} = tokens.{part};");
    }
    lines
}

/// The lines that make `input_0` of a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let color = if picture.is_gray { "GM_GRAY" } else { "GM_RGB" };
    let (blob, body) = match &*fit.place {
        "" => (String::new(), "gm_request_file(request)"),
        place => {
            let place = quoted(place);
            let read = format!("    GM_TRY(gm_request_json_blob(request, {place}, &body));\n");
            (format!("    const gm_blob *body;\n{read}"), "body")
        }
    };
    let mut lines = format!(
        "    gm_pixels *picture, *fitted;\n{blob}    \
         GM_TRY(gm_pixels_decode({body}, {color}, &picture));\n"
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
    lines += "    GM_TRY(gm_pixels_to_tensor(fitted, options, &input_0));\n";
    lines
}

/// Lines that write the answer of `outputs`.
fn answer_lines(fit: &Fit<'_>) -> String {
    let mut lines = String::new();
    if fit.has_scores() {
        let _ = writeln!(
            lines,
            "    gm_tensor *scores;\n    \
             GM_TRY(gm_outputs_get(outputs, {}, &scores));\n    \
             // For logits, gm_tensor_softmax before this gives probabilities.\n    \
             gm_scores best = gm_tensor_top_k(scores, 0, 5);\n\n    \
             gm_json_begin_object(answer);\n    \
             gm_json_key(answer, \"top\");\n    gm_json_begin_array(answer);\n    \
             for (size_t at = 0; at < best.count; at++) {{\n        \
             gm_json_begin_object(answer);\n        \
             gm_json_key(answer, \"index\");\n        \
             gm_json_put_integer(answer, best.items[at].index);\n        \
             gm_json_key(answer, \"score\");\n        \
             gm_json_put_float(answer, best.items[at].value);\n        \
             gm_json_end_object(answer);\n    }}\n    gm_json_end_array(answer);\n    \
             gm_json_end_object(answer);",
            quoted(&fit.model.outputs[0].name)
        );
        return lines;
    }
    lines += "    gm_tensor *output;\n    \
              gm_json_begin_object(answer);\n";
    for output in &fit.model.outputs {
        let name = quoted(&output.name);
        let _ = writeln!(
            lines,
            "    GM_TRY(gm_outputs_get(outputs, {name}, &output));\n    gm_json_key(answer, {name});"
        );
        lines += match fit.is_left_out(output) {
            false => "    GM_TRY(gm_json_put_tensor(answer, output));\n",
            true => {
                "    // Too large for an answer: take out what clients need, in place of its shape.\n    \
                 gm_json_begin_array(answer);\n    \
                 for (size_t axis = 0; axis < gm_tensor_shape(output).rank; axis++)\n        \
                 gm_json_put_integer(answer, gm_tensor_shape(output).dims[axis]);\n    \
                 gm_json_end_array(answer);\n"
            }
        };
    }
    lines += "    gm_json_end_object(answer);\n";
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use gristmill_core::TensorInfo;

    use super::super::fit::of_models;
    use super::super::signature::tensor;
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        of_models(vec![(None, inputs, outputs)], code).unwrap()
    }

    #[test]
    fn inputs_are_found_by_keys_and_pointers() {
        let age = tensor("age", Dtype::Int64, &[None, Some(1)]);
        let city = tensor("a \"city\" é??", Dtype::String, &[None, Some(1)]);
        let plugin = made(vec![age.clone(), city], vec![tensor("y", Dtype::Int64, &[None])]);
        let key = r#"(const char *[]){"a \"city\" \303\251\?\?"}, 1, GM_STRING,"#;
        assert!(plugin.contains(key), "{plugin}");
        let plugin = made(vec![tensor("x/0", Dtype::Int64, &[None]), age.clone()], vec![age]);
        let line = r#"tensor_at(request, "/x~10", GM_INT64,"#;
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
