//! A plugin in Python that fits a model: its code, its unit tests and a sample request.

use std::fmt::Write as _;

use anyhow::Result;
use gristmill_core::{Dtype, TensorInfo};
use serde_json::Value;

use super::signature::{
    Files, Fit, Picture, Requests, Signature, element, is_large, sizes, tested_dims,
};

/// The files that replace those of the template.
///
/// # Errors
/// The sample cannot be written.
pub(super) fn files(fit: &Fit<'_>) -> Result<Files> {
    Ok(vec![
        ("app.py", app(fit).into_bytes()),
        ("test_app.py", tests(fit).into_bytes()),
        fit.sample()?,
    ])
}

/// A text of Python.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The element type, as Python's SDK names it.
fn dtype(tensor: &TensorInfo) -> String {
    format!("Dtype.{}", format!("{:?}", tensor.dtype).to_uppercase())
}

fn app(fit: &Fit<'_>) -> String {
    let Fit { model, requests, .. } = fit;
    let mut sdk = vec!["Context", "Outputs", "Prepared", "Processor", "Request", "Response"];
    sdk.push("export");
    match requests {
        Requests::Picture(Picture { .. }) if model.inputs[0].dtype == Dtype::Uint8 => {
            sdk.push("Dtype");
        }
        Requests::Picture(_) => {}
        Requests::Objects => sdk.push("Dtype"),
        Requests::Tensors => sdk.extend(["Dtype", "InvalidInput", "Tensor"]),
    }
    sdk.sort_unstable_by_key(|name| (name.starts_with('e'), *name));
    let [first, second] = fit.heading();
    let mut app = format!(
        "\"\"\"{first}\n\n{second}\n\
         Code at the level of the module runs once, when the plugin is uploaded. Import everything \
         here.\n\"\"\"\n\nfrom gristmill_plugin import (\n",
    );
    for name in sdk {
        let _ = writeln!(app, "    {name},");
    }
    app += ")\n";
    if let Requests::Picture(picture) = requests {
        app += &picture.constants(model);
    }
    app += "\n\n@export\nclass Plugin(Processor):\n    \
            def preprocess(self, context: Context, request: Request) -> Prepared:\n";
    match requests {
        Requests::Picture(picture) => app += &picture.preprocess(model, fit.has_scores()),
        Requests::Objects | Requests::Tensors => {
            app += "        return Prepared(\n            {\n";
            for input in &model.inputs {
                let _ = writeln!(app, "                {},", input_line(fit, input));
            }
            app += "            }\n        )\n";
        }
    }
    app += "\n    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:\n";
    if fit.has_scores() {
        let output = quoted(&model.outputs[0].name);
        let _ = write!(
            app,
            "        # For a model that gives logits, .softmax().top_k(5) gives probabilities.\n        \
             best = outputs[{output}].top_k(5)\n        \
             top = [{{\"index\": found.index, \"score\": found.value}} for found in best]\n        \
             return Response.json({{\"top\": top}})\n"
        );
    } else {
        app += "        return Response.json(\n            {\n";
        for output in &model.outputs {
            let name = quoted(&output.name);
            let _ = match is_large(output) {
                false => writeln!(app, "                {name}: outputs[{name}],"),
                // An answer has at most 4 MiB.
                true => writeln!(
                    app,
                    "                # Too large for an answer: take out what clients need.\n                \
                     {name}: {{\"shape\": list(outputs[{name}].shape)}},"
                ),
            };
        }
        app += "            }\n        )\n";
    }
    if matches!(requests, Requests::Tensors) {
        app += TENSOR_AT;
    }
    app
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

/// An input's entry in the dictionary that preprocess makes.
fn input_line(fit: &Fit<'_>, input: &TensorInfo) -> String {
    let (name, dtype) = (quoted(&input.name), dtype(input));
    if matches!(fit.requests, Requests::Objects) {
        return format!("{name}: request.json_tensor(\"\", {dtype}, keys=[{name}])");
    }
    let (pointer, sizes) = (quoted(&fit.pointer(input)), sizes(&input.dims, "None").join(", "));
    format!("{name}: tensor_at(request, {pointer}, {dtype}, [{sizes}])")
}

impl Picture {
    fn constants(&self, model: &Signature) -> String {
        let mut names = vec!["Pixels"];
        names.extend(self.is_gray.then_some("Color"));
        names.extend(self.has_channels_last.then_some("Layout"));
        names.sort_unstable();
        let mut text = format!("from gristmill_plugin.image import {}\n", names.join(", "));
        if self.is_normalised(model.inputs[0].dtype) {
            text += "\n# Of ImageNet, which models of torchvision and timm take. Who trained the model knows \
                     its values;\n# without mean and std to_tensor gives 0 to 1.\n\
                     MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]\n";
        }
        text
    }

    fn preprocess(&self, model: &Signature, is_classifier: bool) -> String {
        let (width, height) = (self.width, self.height);
        let color = if self.is_gray { ", Color.GRAY" } else { "" };
        let fitted = match is_classifier {
            true => format!(
                "picture.resize_shorter({}).center_crop({width}, {height})",
                width.max(height)
            ),
            false => format!("picture.letterbox({width}, {height}).pixels"),
        };
        let mut options = Vec::new();
        options.extend(self.has_channels_last.then_some("layout=Layout.NHWC"));
        let dtype = model.inputs[0].dtype;
        options.extend((dtype == Dtype::Uint8).then_some("dtype=Dtype.UINT8"));
        options.extend(self.is_normalised(dtype).then_some("mean=MEAN, std=STD"));
        format!(
            "        picture = Pixels.decode(request.body{color})\n        \
             fitted = {fitted}\n        \
             return Prepared({{{}: fitted.to_tensor({})}})\n",
            quoted(&model.inputs[0].name),
            options.join(", ")
        )
    }
}

fn tests(fit: &Fit<'_>) -> String {
    let (model, is_picture) = (fit.model, fit.is_of_pictures());
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
        "\nSAMPLE = Path(__file__).parent / \"requests/{sample}\"\n\n\n\
         def preprocess(body: bytes):\n    \
         return Plugin().preprocess(testing.context(), testing.request(body))\n\n\n\
         def test_the_sample_becomes_the_models_inputs():\n"
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
        tests += "\n\n@pytest.mark.parametrize(\"body\", [b\"\", b\"[\", b\"null\"])\n\
                  def test_any_other_body_is_refused(body):\n    \
                  with pytest.raises(InvalidInput):\n        preprocess(body)\n";
    }
    tests += "\n\ndef test_outputs_become_the_answer():\n    outputs = Outputs(\n        {\n";
    for output in &model.outputs {
        let sizes = tested_dims(output);
        let count: usize = sizes.iter().product();
        let value = match element(output.dtype) {
            Value::Bool(_) => "True".to_owned(),
            value => value.to_string(),
        };
        let (name, dtype) = (quoted(&output.name), dtype(output));
        let _ = writeln!(
            tests,
            "            {name}: Tensor.from_values({sizes:?}, {dtype}, [{value}] * {count}),"
        );
    }
    tests += "        }\n    )\n    \
              response = Plugin().postprocess(testing.context(), outputs, b\"\")\n    ";
    let keys: Vec<_> = fit.answer_keys().into_iter().map(quoted).collect();
    let _ = writeln!(tests, "assert list(json.loads(response.body)) == [{}]", keys.join(", "));
    tests
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::super::signature::tensor;
    use super::*;

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> (String, String) {
        let model = Signature { inputs, outputs };
        let files = files(&Fit::new("a", "m.onnx", &model).unwrap()).unwrap();
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
            let model = Signature { inputs: vec![tensor("x", Dtype::Float32, dims)], outputs };
            Fit::new("a", "m", &model).err().map(|error| error.to_string()).unwrap_or_default()
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
