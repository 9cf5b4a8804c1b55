//! The unit tests of a plugin in Rust that fits models.

use std::fmt::Write as _;

use gristmill_core::{Dtype, TensorInfo};

use super::words::dtype;
use crate::plugin::new::fit::{Fit, PluginFit};
use crate::plugin::new::signature::{element, tested_dims};

/// Tests of both calls around a model.
pub(super) fn tests(plugin: &PluginFit<'_>, fit: &Fit<'_>) -> String {
    let is_picture = plugin.is_of_pictures();
    let sample = if is_picture { "sample.png" } else { "sample.json" };
    let mut tests = format!(
        "use gristmill_plugin::{{Dtype, Tensor, testing}};\n\nuse super::*;\n\n\
         fn preprocess(body: &[u8]) -> Result<Prepared, Failure> {{\n    \
         {}let request = testing::request().body(body).build();\n    \
         Plugin::preprocess(&testing::context().build(), &request)\n}}\n\n\
         #[test]\nfn the_sample_becomes_the_models_inputs() {{\n    \
         let prepared = preprocess(include_bytes!(\"../requests/{sample}\")).unwrap();\n",
        tokenizer(plugin)
    );
    for input in &fit.model.inputs {
        let (name, dtype, sizes) = (&*input.name, dtype(input), fit.input_dims(input));
        let _ = writeln!(
            tests,
            "    let input = prepared.get({name:?}).unwrap();\n    \
             assert_eq!(input.dtype(), {dtype});\n    assert_eq!(input.dims(), {});",
            if sizes.is_empty() { "[0_usize; 0]".to_owned() } else { format!("{sizes:?}") }
        );
    }
    tests += "}\n";
    if !is_picture {
        tests += "\n#[test]\nfn any_other_body_is_refused() {\n    \
                  for body in [\"\", \"[\", \"null\"] {\n        \
                  let failure = preprocess(body.as_bytes()).unwrap_err();\n        \
                  assert!(matches!(failure, Failure::InvalidInput(_)), \"{body}: {failure:?}\");\n    \
                  }\n}\n";
    }
    // Unit tests have no host, which alone works on arrays: `gristmill plugin test` does.
    if fit.has_pooled() {
        return tests.replacen("Dtype, Tensor, testing", "Dtype, testing", 1);
    }
    tests += "\n#[test]\nfn outputs_become_the_answer() {\n    let outputs = testing::outputs([\n";
    for output in &fit.model.outputs {
        let _ = writeln!(tests, "        {},", tested_output(output));
    }
    tests += "    ]);\n    let context = testing::context().build();\n    \
              let response = Plugin::postprocess(&context, outputs, Vec::new()).unwrap();\n    \
              let answer: serde_json::Value = serde_json::from_slice(&response.body).unwrap();\n";
    for key in plugin.answer_keys() {
        let _ = writeln!(tests, "    assert!(answer.get({key:?}).is_some(), \"{{answer}}\");");
    }
    tests += "}\n";
    tests
}

/// The pair of an output in an array of tests.
fn tested_output(output: &TensorInfo) -> String {
    let sizes = tested_dims(output);
    let count: usize = sizes.iter().product();
    let made = match output.dtype {
        Dtype::String => format!("Tensor::from_strings(&{sizes:?}, &[\"a text\"; {count}])"),
        dtype => {
            let (kind, cast) = element_of(dtype);
            let cast = match cast {
                true => format!(".and_then(|tensor| tensor.cast(Dtype::{dtype:?}))"),
                false => String::new(),
            };
            let value = element(dtype);
            match kind {
                "bool" => format!("Tensor::from_slice(&{sizes:?}, &[{value}; {count}])"),
                kind => format!("Tensor::from_slice(&{sizes:?}, &[{value}_{kind}; {count}]){cast}"),
            }
        }
    };
    format!("({:?}, {made}.unwrap())", &*output.name)
}

/// The line that gives tests a tokenizer, which splits texts at white space.
fn tokenizer(plugin: &PluginFit<'_>) -> &'static str {
    match plugin.is_of_texts() {
        true => {
            "let _words = testing::tokenizer(\"tokenizer.json\", &[\"[PAD]\", \"[UNK]\", \"text\"]);\n    "
        }
        false => "",
    }
}

/// Tests of a handler, in which functions stand in for its models.
pub(super) fn handler_tests(plugin: &PluginFit<'_>) -> String {
    let is_only_a_picture = plugin.is_of_pictures() && !plugin.has_parts();
    let sample = if is_only_a_picture { "sample.png" } else { "sample.json" };
    let failure = if is_only_a_picture { "" } else { "Failure, " };
    let mut tests = format!(
        "use gristmill_plugin::{{Dtype, {failure}Tensor, testing}};\n\nuse super::*;\n\n\
         fn handle(body: &[u8]) -> Result<Response, HandleError> {{\n    \
         {}let request = testing::request().body(body).build();\n    \
         Plugin::handle(&testing::context().build(), &request)\n}}\n\n\
         #[test]\nfn the_sample_runs_each_model() {{\n    let _models = [\n",
        tokenizer(plugin)
    );
    for fit in plugin.models() {
        let _ = writeln!(
            tests,
            "        testing::model({:?}, |inputs| {{\n            \
             let found = inputs.iter().map(|(name, input)| (*name, input.dtype(), input.dims()));\n            \
             let found: Vec<_> = found.collect();\n            \
             assert_eq!(found, [",
            fit.own_name.unwrap_or_default()
        );
        for input in &fit.model.inputs {
            let (name, dtype, sizes) = (&*input.name, dtype(input), fit.input_dims(input));
            let _ = writeln!(tests, "                ({name:?}, {dtype}, vec!{sizes:?}),");
        }
        tests += "            ]);\n            Ok(testing::outputs([\n";
        for output in &fit.model.outputs {
            let _ = writeln!(tests, "                {},", tested_output(output));
        }
        tests += "            ]))\n        }),\n";
    }
    let _ = write!(
        tests,
        "    ];\n    let response = handle(include_bytes!(\"../requests/{sample}\")).unwrap();\n    \
         let answer: serde_json::Value = serde_json::from_slice(&response.body).unwrap();\n"
    );
    for key in plugin.answer_keys() {
        let _ = writeln!(tests, "    assert!(answer.get({key:?}).is_some(), \"{{answer}}\");");
    }
    tests += "}\n";
    if !is_only_a_picture {
        tests += "\n#[test]\nfn any_other_body_is_refused() {\n    \
                  for body in [\"\", \"[\", \"null\"] {\n        \
                  let error = handle(body.as_bytes()).unwrap_err();\n        \
                  let is_refused = matches!(error, HandleError::Failure(Failure::InvalidInput(_)));\n        \
                  assert!(is_refused, \"{body}: {error:?}\");\n    }\n}\n";
    }
    tests
}

/// The type of Rust in which a test gives elements, and whether they have to be cast.
fn element_of(dtype: Dtype) -> (&'static str, bool) {
    match dtype {
        Dtype::Bool | Dtype::String => ("bool", false),
        Dtype::Uint8 => ("u8", false),
        Dtype::Uint16 => ("u16", false),
        Dtype::Uint32 => ("u32", false),
        Dtype::Uint64 => ("u64", false),
        Dtype::Int8 => ("i8", false),
        Dtype::Int16 => ("i16", false),
        Dtype::Int32 => ("i32", false),
        Dtype::Int64 => ("i64", false),
        Dtype::Float16 | Dtype::Bfloat16 => ("f32", true),
        Dtype::Float32 => ("f32", false),
        Dtype::Float64 => ("f64", false),
    }
}
