//! A plugin in Rust that fits a model: its code, its unit tests and a sample request.

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};

use super::signature::{Files, Fit, Picture, Requests, element, is_large, tested_dims};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(fit: &Fit<'_>) -> Result<Files> {
    Ok(vec![
        ("src/lib.rs", library(fit).into_bytes()),
        ("src/tests.rs", tests(fit).into_bytes()),
        fit.sample()?,
    ])
}

fn dtype(tensor: &TensorInfo) -> String {
    format!("Dtype::{:?}", tensor.dtype)
}

fn library(fit: &Fit<'_>) -> String {
    let mut names =
        vec!["Context", "Failure", "Outputs", "Prepared", "Processor", "Request", "Response"];
    match &fit.requests {
        Requests::Picture(_) => {}
        Requests::Objects => names.push("Dtype"),
        Requests::Tensors => names.extend(["Dtype", "Tensor"]),
    }
    if let Requests::Picture(_) = fit.requests
        && fit.model.inputs[0].dtype == Dtype::Uint8
    {
        names.push("Dtype");
    }
    names.sort_unstable();
    let [first, second] = fit.heading();
    let mut library = format!("//! {first}\n//!\n//! {second}\n\n");
    if !fit.has_scores() {
        library += "use std::collections::BTreeMap;\n\n";
    }
    if let Requests::Picture(picture) = &fit.requests {
        library += &picture_imports(fit, picture);
    }
    let _ = writeln!(library, "use gristmill_plugin::{{\n    {},\n}};", names.join(", "));
    if fit.has_scores() {
        library += "use serde_json::json;\n";
    }
    library += "\nstruct Plugin;\n\nimpl Processor for Plugin {\n    \
                fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {\n";
    match &fit.requests {
        Requests::Picture(picture) => library += &picture_lines(fit, picture),
        Requests::Objects | Requests::Tensors => {
            library += "        Ok(Prepared::new()";
            for input in &fit.model.inputs {
                let _ = write!(library, "\n            {}", input_line(fit, input));
            }
            library += ")\n";
        }
    }
    library += "    }\n\n    fn postprocess(\n        _context: &Context,\n        \
                outputs: Outputs,\n        _state: Vec<u8>,\n    \
                ) -> Result<Response, Failure> {\n";
    library += &postprocess_lines(fit);
    library += "    }\n}\n\ngristmill_plugin::export_processor!(Plugin);\n";
    if matches!(fit.requests, Requests::Tensors) {
        library += TENSOR_AT;
    }
    library += "\n#[cfg(test)]\nmod tests;\n";
    library
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

/// The call that adds an input.
fn input_line(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (&*input.name, dtype(input));
    if matches!(fit.requests, Requests::Objects) {
        return format!(".input({name:?}, request.json_rows(\"\", &[{name:?}], {dtype})?)");
    }
    let size = |size: &Option<usize>| format!("{size:?}");
    let sizes: Vec<_> = input.dims.iter().map(size).collect();
    let pointer = fit.pointer(input);
    format!(".input({name:?}, tensor_at(request, {pointer:?}, {dtype}, &[{}])?)", sizes.join(", "))
}

fn picture_imports(fit: &Fit<'_>, picture: &Picture) -> String {
    let mut names = vec!["self", "Pixels"];
    names.extend(fit.has_scores().then_some("Filter"));
    let dtype = fit.model.inputs[0].dtype;
    names.extend((!picture.is_normalised(dtype)).then_some("Color"));
    names.extend(picture.has_channels_last.then_some("Layout"));
    let has_options = picture.has_channels_last || dtype == Dtype::Uint8;
    names.extend(has_options.then_some("TensorOptions"));
    names.sort_unstable_by_key(|name| (*name != "self", *name));
    format!("use gristmill_plugin::image::{{{}}};\n", names.join(", "))
}

/// The lines of preprocess for a picture.
fn picture_lines(fit: &Fit<'_>, picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let (decoded, color) = match picture.is_gray {
        true => ("image::GRAY", "Color::Gray"),
        false => ("image::RGB", "Color::Rgb"),
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
        "        let picture = Pixels::decode(&request.body(), {decoded})?;\n        \
         let fitted = {fitted};\n{comment}        \
         let input = fitted.to_tensor({options})?;\n        \
         Ok(Prepared::new().input({:?}, input))\n",
        &*input.name
    )
}

fn postprocess_lines(fit: &Fit<'_>) -> String {
    if fit.has_scores() {
        return format!(
            "        // For a model that gives logits, .softmax()?.top_k(0, 5) gives probabilities.\n        \
             let best = outputs.get({:?})?.top_k(0, 5);\n        \
             let top = best.iter().map(|found| json!({{ \"index\": found.index, \"score\": found.value }}));\n        \
             Response::json(&json!({{ \"top\": top.collect::<Vec<_>>() }}))\n",
            &*fit.model.outputs[0].name
        );
    }
    let has_large = fit.model.outputs.iter().any(is_large);
    let mut lines = String::new();
    if has_large {
        lines += "        // One is too large for an answer: take out what clients need, in place of shapes.\n";
    }
    lines += "        Response::json(&BTreeMap::from([\n";
    for output in &fit.model.outputs {
        let name = &*output.name;
        let shape = if has_large { ".dims()" } else { "" };
        let _ = writeln!(lines, "            ({name:?}, outputs.get({name:?})?{shape}),");
    }
    lines += "        ]))\n";
    lines
}

fn tests(fit: &Fit<'_>) -> String {
    let is_picture = fit.is_of_pictures();
    let sample = if is_picture { "sample.png" } else { "sample.json" };
    let mut tests = format!(
        "use gristmill_plugin::{{Dtype, Tensor, testing}};\n\nuse super::*;\n\n\
         fn preprocess(body: &[u8]) -> Result<Prepared, Failure> {{\n    \
         let request = testing::request().body(body).build();\n    \
         Plugin::preprocess(&testing::context().build(), &request)\n}}\n\n\
         #[test]\nfn the_sample_becomes_the_models_inputs() {{\n    \
         let prepared = preprocess(include_bytes!(\"../requests/{sample}\")).unwrap();\n"
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
    tests += "\n#[test]\nfn outputs_become_the_answer() {\n    let outputs = testing::outputs([\n";
    for output in &fit.model.outputs {
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
                    kind => {
                        format!("Tensor::from_slice(&{sizes:?}, &[{value}_{kind}; {count}]){cast}")
                    }
                }
            }
        };
        let _ = writeln!(tests, "        ({:?}, {made}.unwrap()),", &*output.name);
    }
    tests += "    ]);\n    let context = testing::context().build();\n    \
              let response = Plugin::postprocess(&context, outputs, Vec::new()).unwrap();\n    \
              let answer: serde_json::Value = serde_json::from_slice(&response.body).unwrap();\n";
    for key in fit.answer_keys() {
        let _ = writeln!(tests, "    assert!(answer.get({key:?}).is_some(), \"{{answer}}\");");
    }
    tests += "}\n";
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::signature::{Signature, tensor};
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> String {
        let model = Signature { inputs, outputs };
        library(&Fit::new("a", "m.onnx", &model).unwrap())
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
