//! What a model takes and gives, what requests follow from it, and a sample of them.

use anyhow::{Context, Result, ensure};
use gristmill_core::{Dtype, TensorInfo};
use serde_json::{Value, json};

/// The rows of a sample request.
const ROWS: usize = 2;

/// The size of other open dimensions in samples.
const OPEN: usize = 4;

/// The side of the picture if the model takes any.
const SIDE: usize = 224;

/// An output with more elements is not written into the answer: its shape is.
const ELEMENTS_MAX: usize = 20_000;

/// A sample has at most this many elements in each input.
const SAMPLE_MAX: usize = 1 << 20;

/// The largest picture of a sample.
const PIXELS_MAX: usize = 16 << 20;

/// What a model takes and gives.
pub(super) struct Signature {
    pub(super) inputs: Vec<TensorInfo>,
    pub(super) outputs: Vec<TensorInfo>,
}

impl Signature {
    /// Read a model's inputs and outputs from its entry in the status. None if the model is not on
    /// the server or does not serve.
    pub(super) fn of_status(model: &Value) -> Option<Self> {
        let tensor = |tensor: &Value| {
            // -1 is a dimension that may differ.
            let dim = |dim: &Value| Some(usize::try_from(dim.as_i64()?).ok());
            Some(TensorInfo {
                name: tensor["name"].as_str()?.into(),
                dtype: Dtype::named(tensor["datatype"].as_str()?)?,
                dims: tensor["shape"].as_array()?.iter().map(dim).collect::<Option<_>>()?,
            })
        };
        let tensors =
            |key: &str| model[key].as_array()?.iter().map(tensor).collect::<Option<Vec<_>>>();
        Some(Self { inputs: tensors("inputs")?, outputs: tensors("outputs")? })
    }

    /// Its tensors with names, types and shapes, for a comment.
    pub(super) fn text(&self) -> String {
        let one = |tensor: &TensorInfo| {
            let sizes = sizes(&tensor.dims, "-1").join(",");
            format!("{} {} [{sizes}]", shown(&tensor.name), tensor.dtype)
        };
        let all = |tensors: &[TensorInfo]| tensors.iter().map(one).collect::<Vec<_>>().join(", ");
        format!("{} -> {}", all(&self.inputs), all(&self.outputs))
    }

    /// Check that a plugin and a sample request can be made for it.
    ///
    /// # Errors
    /// It takes or gives nothing, or an input is too large for a sample.
    pub(super) fn check(&self, requests: &Requests) -> Result<()> {
        for (what, tensors) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            ensure!(!tensors.is_empty(), "--model: it has no {what}: leave --model out");
        }
        if let Requests::Picture(picture) = requests {
            let pixels = picture.width.saturating_mul(picture.height);
            ensure!(
                (1..=PIXELS_MAX).contains(&pixels),
                "--model: its pictures have {pixels} pixels, a sample has 1 to {PIXELS_MAX}: leave \
                 --model out"
            );
            return Ok(());
        }
        for input in &self.inputs {
            let elements = elements(input);
            ensure!(
                elements <= SAMPLE_MAX,
                "--model: {} has {elements} elements, too many for a sample request (at most \
                 {SAMPLE_MAX}): leave --model out",
                input.name
            );
        }
        Ok(())
    }
}

/// Sizes as texts, with `open` for one that may differ.
pub(super) fn sizes(dims: &[Option<usize>], open: &str) -> Vec<String> {
    dims.iter().map(|size| size.map_or(open.to_owned(), |size| size.to_string())).collect()
}

/// A text that can stand in a comment of any language.
pub(super) fn shown(text: &str) -> String {
    text.escape_debug().to_string().replace(['\\', '"', '*'], "_")
}

/// The sizes of an output in a test. Large ones are tested with few elements.
pub(super) fn tested_dims(output: &TensorInfo) -> Vec<usize> {
    match is_large(output) {
        true => vec![1; output.dims.len()],
        false => dims(output),
    }
}

/// The inputs of models of texts, as exporters name them. The first one makes a model one of texts.
const TOKENS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

/// The tokens in a row of the sample, if the model takes any number: the first of the plugin's
/// lengths.
const TOKENS_OPEN: usize = 32;

/// What the requests are.
pub(super) enum Requests {
    /// Texts, of which the host makes the tokens that are the model's inputs.
    Texts(Texts),
    /// A picture, which becomes the only input.
    Picture(Picture),
    /// A list of objects, with a key for each input: inputs that are columns of a table.
    Objects,
    /// Tensors: the whole body if there is one input, otherwise an object with a key for each.
    Tensors,
}

/// The tokens of texts as the model takes them.
pub(super) struct Texts {
    pub(super) dtype: Dtype,
    /// The tokens in a row. None if the model takes any number.
    pub(super) length: Option<usize>,
}

/// A picture as the model takes it.
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_gray: bool,
    pub(super) has_channels_last: bool,
}

impl Requests {
    /// What they are, for people.
    pub(super) fn text(&self) -> &'static str {
        match self {
            Self::Texts(_) => "a list of texts in",
            Self::Picture(_) => "a picture in",
            Self::Objects => "a list of objects in, a row each",
            Self::Tensors => "JSON in",
        }
    }

    /// `has_tokenizer`: whether the plugin gets the file by which texts become tokens.
    pub(super) fn of(model: &Signature, has_tokenizer: bool) -> Self {
        if let Some(texts) = Texts::of(model).filter(|_| has_tokenizer) {
            return Self::Texts(texts);
        }
        if let [input] = &model.inputs[..] {
            return Picture::of(input).map_or(Self::Tensors, Self::Picture);
        }
        let is_column = |input: &TensorInfo| input.dims[..] == [None, Some(1)];
        match !model.inputs.is_empty() && model.inputs.iter().all(is_column) {
            true => Self::Objects,
            false => Self::Tensors,
        }
    }

    /// A sample request, if it is JSON.
    pub(super) fn sample(&self, model: &Signature) -> Value {
        let named = |value: fn(&TensorInfo) -> Value| -> Value {
            let pair = |input: &TensorInfo| (input.name.to_string(), value(input));
            Value::Object(model.inputs.iter().map(pair).collect())
        };
        match (self, &model.inputs[..]) {
            (Self::Texts(_), _) => json!(["a text", "another text"]),
            (Self::Objects, _) => Value::Array(vec![named(|input| element(input.dtype)); ROWS]),
            (_, [input]) => filled(input),
            _ => named(filled),
        }
    }
}

impl Texts {
    /// The tokens that a model takes: `[n, tokens]` for each of its inputs, all of one type and one
    /// length.
    pub(super) fn of(model: &Signature) -> Option<Self> {
        let first = model.inputs.iter().find(|input| &*input.name == TOKENS[0])?;
        let (dtype, &[None, length]) = (first.dtype, &first.dims[..]) else { return None };
        let fits = |input: &TensorInfo| {
            TOKENS.contains(&&*input.name)
                && input.dtype == dtype
                && input.dims[..] == [None, length]
        };
        let is_known = [Dtype::Int64, Dtype::Int32].contains(&dtype);
        (is_known && model.inputs.iter().all(fits)).then_some(Self { dtype, length })
    }

    /// The sizes of each input for the sample.
    pub(super) fn dims(&self) -> [usize; 2] {
        [ROWS, self.length.unwrap_or(TOKENS_OPEN)]
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

    /// Whether the plugin begins with the mean and std of ImageNet.
    pub(super) fn is_normalised(&self, dtype: Dtype) -> bool {
        !self.is_gray && dtype == Dtype::Float32
    }

    /// A picture of this size, from black to white, as PNG.
    pub(super) fn sample(&self) -> Result<Vec<u8>> {
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

    pub(super) fn dims(&self) -> [usize; 4] {
        let channels = if self.is_gray { 1 } else { 3 };
        match self.has_channels_last {
            false => [1, channels, self.height, self.width],
            true => [1, self.height, self.width, channels],
        }
    }
}

/// The sizes of a tensor in a sample.
pub(super) fn dims(tensor: &TensorInfo) -> Vec<usize> {
    let size =
        |(axis, size): (usize, &Option<usize>)| size.unwrap_or(if axis == 0 { ROWS } else { OPEN });
    tensor.dims.iter().enumerate().map(size).collect()
}

/// An element of a sample.
pub(super) fn element(dtype: Dtype) -> Value {
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

/// Whether an output is too large for an answer, which has at most 4 MiB.
pub(super) fn is_large(output: &TensorInfo) -> bool {
    elements(output) > ELEMENTS_MAX
}

/// The elements that a sample of a tensor has at most. A size of 0 does not make it small.
fn elements(tensor: &TensorInfo) -> usize {
    dims(tensor).into_iter().fold(1, |product, size| product.saturating_mul(size.max(1)))
}

/// A tensor, for tests.
#[cfg(test)]
pub(super) fn tensor(name: &str, dtype: Dtype, dims: &[Option<usize>]) -> TensorInfo {
    TensorInfo { name: name.into(), dtype, dims: dims.to_vec() }
}
