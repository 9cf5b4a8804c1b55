//! A plugin in Python that fits a model: its code, its unit tests and a sample request, from the
//! model's inputs and outputs.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use gristmill_core::{Dtype, ModelInfo, TensorInfo};
use serde_json::{Value, json};

/// The rows of a sample request.
const ROWS: usize = 2;

/// The size of other open dimensions in samples.
const OPEN: usize = 4;

/// The side of the picture if the model takes any.
const SIDE: usize = 224;

/// An output with more elements is not written into the answer: its shape is.
const ELEMENTS_MAX: usize = 20_000;

/// The files that replace those of the template: their paths and contents.
pub(super) struct Files(pub(super) Vec<(&'static str, Vec<u8>)>);

/// What the requests are.
enum Requests {
    /// A picture, which becomes the only input.
    Picture(Picture),
    /// A list of objects, with a key for each input: inputs that are columns of a table.
    Objects,
    /// Tensors: the whole body if there is one input, otherwise an object with a key for each.
    Tensors,
}

/// A picture as the model takes it.
struct Picture {
    width: usize,
    height: usize,
    is_gray: bool,
    has_channels_last: bool,
}

/// The files of a plugin `name` for the model in `file`.
///
/// # Errors
/// The sample cannot be encoded.
pub(super) fn files(name: &str, file: &str, info: &ModelInfo) -> Result<Files> {
    let requests = Requests::of(info);
    let mut files = vec![
        ("app.py", app(name, file, info, &requests).into_bytes()),
        ("test_app.py", tests(info, &requests).into_bytes()),
    ];
    files.push(match &requests {
        Requests::Picture(picture) => ("requests/sample.png", picture.sample()?),
        Requests::Objects | Requests::Tensors => {
            let sample = requests.sample(info);
            ("requests/sample.json", format!("{sample}\n").into_bytes())
        }
    });
    Ok(Files(files))
}

impl Requests {
    fn of(info: &ModelInfo) -> Self {
        if let [input] = &info.inputs[..] {
            return Picture::of(input).map_or(Self::Tensors, Self::Picture);
        }
        let is_column = |input: &TensorInfo| input.dims[..] == [None, Some(1)];
        match !info.inputs.is_empty() && info.inputs.iter().all(is_column) {
            true => Self::Objects,
            false => Self::Tensors,
        }
    }

    /// A sample request, if it is JSON.
    fn sample(&self, info: &ModelInfo) -> Value {
        let named = |value: fn(&TensorInfo) -> Value| -> Value {
            let pair = |input: &TensorInfo| (input.name.to_string(), value(input));
            Value::Object(info.inputs.iter().map(pair).collect())
        };
        match (self, &info.inputs[..]) {
            (Self::Objects, _) => Value::Array(vec![named(|input| element(input.dtype)); ROWS]),
            (_, [input]) => filled(input),
            _ => named(filled),
        }
    }
}

impl Picture {
    /// The picture that an input takes: `[n, c, h, w]` or `[n, h, w, c]` of floats or bytes, with
    /// one channel or three.
    fn of(input: &TensorInfo) -> Option<Self> {
        let [rows, dims @ ..] = &input.dims[..] else { return None };
        let [first, middle, last] = *dims else { return None };
        let is_channels = |size| size == Some(1) || size == Some(3);
        let has_channels_last = !is_channels(first);
        let (channels, height, width) = match has_channels_last {
            false => (first, middle, last),
            true => (last, first, middle),
        };
        let fits = matches!(rows, None | Some(1))
            && is_channels(channels)
            && [Dtype::Float32, Dtype::Uint8].contains(&input.dtype);
        fits.then(|| Self {
            width: width.unwrap_or(SIDE),
            height: height.unwrap_or(SIDE),
            is_gray: channels == Some(1),
            has_channels_last,
        })
    }

    /// A picture of this size, from black to white, as PNG.
    fn sample(&self) -> Result<Vec<u8>> {
        let (mut file, width, height) = (Vec::new(), self.width, self.height);
        let sizes = (u32::try_from(width)?, u32::try_from(height)?);
        let mut encoder = png::Encoder::new(&mut file, sizes.0, sizes.1);
        encoder.set_color(png::ColorType::Grayscale);
        let shade = |at: usize| u8::try_from(at % width * 255 / width).unwrap_or_default();
        let pixels: Vec<u8> = (0..width * height).map(shade).collect();
        let mut writer = encoder.write_header().context("cannot write the sample")?;
        writer.write_image_data(&pixels).context("cannot write the sample")?;
        writer.finish().context("cannot write the sample")?;
        Ok(file)
    }

    fn dims(&self) -> [usize; 4] {
        let channels = if self.is_gray { 1 } else { 3 };
        match self.has_channels_last {
            false => [1, channels, self.height, self.width],
            true => [1, self.height, self.width, channels],
        }
    }
}

/// The sizes of a tensor in a sample.
fn dims(tensor: &TensorInfo) -> Vec<usize> {
    let size =
        |(axis, size): (usize, &Option<usize>)| size.unwrap_or(if axis == 0 { ROWS } else { OPEN });
    tensor.dims.iter().enumerate().map(size).collect()
}

/// An element of a sample.
fn element(dtype: Dtype) -> Value {
    match dtype {
        Dtype::Bool => json!(true),
        Dtype::String => json!("a text"),
        Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32 | Dtype::Float64 => json!(0.5),
        _ => json!(1),
    }
}

/// A tensor of equal elements.
fn filled(tensor: &TensorInfo) -> Value {
    let nested = |inner: Value, size: &usize| Value::Array(vec![inner; *size]);
    dims(tensor).iter().rev().fold(element(tensor.dtype), nested)
}

/// A text of Python.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The element type, as Python's SDK names it.
fn dtype(tensor: &TensorInfo) -> String {
    format!("Dtype.{}", format!("{:?}", tensor.dtype).to_uppercase())
}

fn signature(info: &ModelInfo) -> String {
    let one = |tensor: &TensorInfo| {
        let size = |size: &Option<usize>| size.map_or("-1".into(), |size| size.to_string());
        let sizes: Vec<_> = tensor.dims.iter().map(size).collect();
        let name = tensor.name.escape_debug().to_string().replace('\\', "/");
        format!("{name} {} [{}]", tensor.dtype, sizes.join(","))
    };
    let all = |tensors: &[TensorInfo]| tensors.iter().map(one).collect::<Vec<_>>().join(", ");
    format!("{} -> {}", all(&info.inputs), all(&info.outputs)).replace('"', "'")
}

/// Whether the answer is the best classes of a picture.
fn has_scores(requests: &Requests, info: &ModelInfo) -> bool {
    let is_scores = |output: &TensorInfo| output.dtype == Dtype::Float32 && output.dims.len() == 2;
    matches!((requests, &info.outputs[..]), (Requests::Picture(_), [one]) if is_scores(one))
}

fn is_large(output: &TensorInfo) -> bool {
    let elements = |product: usize, size: &Option<usize>| product.saturating_mul(size.unwrap_or(1));
    output.dims.iter().fold(1, elements) > ELEMENTS_MAX
}

fn app(name: &str, file: &str, info: &ModelInfo, requests: &Requests) -> String {
    let mut sdk = vec!["Context", "Outputs", "Prepared", "Processor", "Request", "Response"];
    sdk.push("export");
    match requests {
        Requests::Picture(Picture { .. }) if info.inputs[0].dtype == Dtype::Uint8 => {
            sdk.push("Dtype");
        }
        Requests::Picture(_) => {}
        Requests::Objects => sdk.push("Dtype"),
        Requests::Tensors => sdk.extend(["Dtype", "InvalidInput", "Tensor"]),
    }
    sdk.sort_unstable_by_key(|name| (name.starts_with('e'), *name));
    let what = match requests {
        Requests::Picture(_) => "a picture in",
        Requests::Objects => "a list of objects in, a row each",
        Requests::Tensors => "JSON in",
    };
    let mut app = format!(
        "\"\"\"{name}: {what}, the outputs of the model {} as JSON out.\n\n\
         The model: {}\n\
         Code at the level of the module runs once, when the plugin is uploaded. Import everything \
         here.\n\"\"\"\n\nfrom gristmill_plugin import (\n",
        file.replace(['\\', '"'], "_"),
        signature(info),
    );
    for name in sdk {
        let _ = writeln!(app, "    {name},");
    }
    app += ")\n";
    if let Requests::Picture(picture) = requests {
        app += &picture.constants(info);
    }
    app += "\n\n@export\nclass Plugin(Processor):\n    \
            def preprocess(self, context: Context, request: Request) -> Prepared:\n";
    match requests {
        Requests::Picture(picture) => app += &picture.preprocess(info, has_scores(requests, info)),
        Requests::Objects | Requests::Tensors => {
            app += "        return Prepared(\n            {\n";
            for input in &info.inputs {
                let _ = writeln!(app, "                {},", input_line(info, requests, input));
            }
            app += "            }\n        )\n";
        }
    }
    app += "\n    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:\n";
    if has_scores(requests, info) {
        let output = quoted(&info.outputs[0].name);
        let _ = write!(
            app,
            "        # For a model that gives logits, .softmax().top_k(5) gives probabilities.\n        \
             best = outputs[{output}].top_k(5)\n        \
             top = [{{\"index\": found.index, \"score\": found.value}} for found in best]\n        \
             return Response.json({{\"top\": top}})\n"
        );
    } else {
        app += "        return Response.json(\n            {\n";
        for output in &info.outputs {
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
fn input_line(info: &ModelInfo, requests: &Requests, input: &TensorInfo) -> String {
    let (name, dtype) = (quoted(&input.name), dtype(input));
    if matches!(requests, Requests::Objects) {
        return format!("{name}: request.json_tensor(\"\", {dtype}, keys=[{name}])");
    }
    let pointer = match info.inputs.len() {
        1 => String::new(),
        _ => format!("/{}", input.name.replace('~', "~0").replace('/', "~1")),
    };
    let size = |size: &Option<usize>| size.map_or("None".into(), |size| size.to_string());
    let sizes: Vec<_> = input.dims.iter().map(size).collect();
    format!("{name}: tensor_at(request, {}, {dtype}, [{}])", quoted(&pointer), sizes.join(", "))
}

impl Picture {
    fn constants(&self, info: &ModelInfo) -> String {
        let mut names = vec!["Pixels"];
        names.extend(self.is_gray.then_some("Color"));
        names.extend(self.has_channels_last.then_some("Layout"));
        names.sort_unstable();
        let mut text = format!("from gristmill_plugin.image import {}\n", names.join(", "));
        if !self.is_gray && info.inputs[0].dtype == Dtype::Float32 {
            text += "\n# Of ImageNet, which models of torchvision and timm take. Who trained the model knows \
                     its values;\n# without mean and std to_tensor gives 0 to 1.\n\
                     MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]\n";
        }
        text
    }

    fn preprocess(&self, info: &ModelInfo, is_classifier: bool) -> String {
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
        match (info.inputs[0].dtype, self.is_gray) {
            (Dtype::Uint8, _) => options.push("dtype=Dtype.UINT8"),
            (_, false) => options.push("mean=MEAN, std=STD"),
            (_, true) => {}
        }
        format!(
            "        picture = Pixels.decode(request.body{color})\n        \
             fitted = {fitted}\n        \
             return Prepared({{{}: fitted.to_tensor({})}})\n",
            quoted(&info.inputs[0].name),
            options.join(", ")
        )
    }
}

fn tests(info: &ModelInfo, requests: &Requests) -> String {
    let is_picture = matches!(requests, Requests::Picture(_));
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
    for input in &info.inputs {
        let sizes = match requests {
            Requests::Picture(picture) => picture.dims().to_vec(),
            Requests::Objects | Requests::Tensors => dims(input),
        };
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
    for output in &info.outputs {
        // Large outputs are tested with few elements.
        let sizes = match is_large(output) {
            true => vec![1; output.dims.len()],
            false => dims(output),
        };
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
    let keys: Vec<_> = match has_scores(requests, info) {
        true => vec!["\"top\"".to_owned()],
        false => info.outputs.iter().map(|output| quoted(&output.name)).collect(),
    };
    let _ = writeln!(tests, "assert list(json.loads(response.body)) == [{}]", keys.join(", "));
    tests
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn tensor(name: &str, dtype: Dtype, dims: &[Option<usize>]) -> TensorInfo {
        TensorInfo { name: name.into(), dtype, dims: dims.to_vec() }
    }

    fn made(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> (String, String) {
        let (optional, equal_dims) = (Vec::new(), Vec::new());
        let backend = "onnxruntime";
        let info =
            ModelInfo { backend, inputs, outputs, forms_batches: true, optional, equal_dims };
        let Files(files) = files("a", "m.onnx", &info).unwrap();
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
