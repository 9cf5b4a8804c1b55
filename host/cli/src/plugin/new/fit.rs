//! What a plugin that is made for models does with each of them.

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::{Dtype, Name, TensorInfo};
use serde_json::Value;

use super::signature::{Picture, Requests, Signature, Texts, dims, is_large, shown};

/// A plugin that is written for models: a handler, or one with both calls around its only model.
pub(super) struct PluginFit<'a> {
    /// The plugin's name.
    pub(super) name: &'a str,
    models: Vec<Fit<'a>>,
    /// The file by which texts become tokens.
    tokenizer: Option<&'a [u8]>,
}

/// What a plugin does for one of its models.
pub(super) struct Fit<'a> {
    /// The name that a handler's code has for the model. None if the plugin is not a handler.
    pub(super) own_name: Option<&'a str>,
    /// What comments call the model.
    called: String,
    pub(super) model: &'a Signature,
    pub(super) requests: Requests,
    /// Where its inputs are in the request, as a JSON Pointer: "" for the whole body.
    pub(super) place: String,
}

/// What the heading says of a model of tokens without its tokenizer.
const TOKENS: &str = "For texts: its tokenizer.json with `gristmill plugin new --tokenizer FILE`, or \
                      by hand as sdk/guides/text.md";

/// Where the plugin has the file that makes tokens of texts, and its name among the assets.
const TOKENIZER_FILE: &str = "assets/tokenizer.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";

/// The lengths to which rows of tokens are filled up, if the model takes any. Longer texts are cut
/// off.
pub(super) const LENGTHS: &str = "32, 64, 128, 256";

/// Files of a plugin's folder: their paths and contents.
pub(super) type Files = Vec<(&'static str, Vec<u8>)>;

impl<'a> PluginFit<'a> {
    /// A plugin for models: the name that a handler's code has for each, what comments call it, and
    /// the model. Without a name, it is the only model of a plugin that is not a handler.
    ///
    /// The request of a plugin with one model is that model's. With several it is an object with a
    /// key for each. With a `tokenizer`, models of tokens get them from texts.
    ///
    /// # Errors
    /// An input is too large for a sample, or no model takes tokens.
    pub(super) fn new(
        name: &'a str,
        models: &'a [(Option<&'a Name>, String, Signature)],
        tokenizer: Option<&'a [u8]>,
    ) -> Result<Self> {
        let fit = |(own_name, called, model): &'a (Option<&'a Name>, String, Signature)| {
            let own_name = own_name.map(Name::as_str);
            // A name has no characters that stand for others in a pointer.
            let place = match own_name {
                Some(own_name) if models.len() > 1 => format!("/{own_name}"),
                _ => String::new(),
            };
            Fit::new(own_name, called, model, place, tokenizer.is_some())
        };
        let models: Vec<_> = models.iter().map(fit).collect::<Result<_>>()?;
        ensure!(
            tokenizer.is_none() || models.iter().any(|fit| fit.texts().is_some()),
            "--tokenizer is given, but no model takes tokens: one that does has an input input_ids, \
             and maybe attention_mask and token_type_ids, all INT64 or all INT32, [-1,-1] or \
             [-1,LENGTH]"
        );
        Ok(Self { name, models, tokenizer })
    }

    pub(super) fn models(&self) -> &[Fit<'a>] {
        &self.models
    }

    /// The only model of a plugin that is not a handler.
    pub(super) fn only(&self) -> Option<&Fit<'a>> {
        match &self.models[..] {
            [only @ Fit { own_name: None, .. }] => Some(only),
            _ => None,
        }
    }

    /// Whether requests and answers have a part for each model.
    pub(super) fn has_parts(&self) -> bool {
        self.models.len() > 1
    }

    /// The lines of its first comment: what it does, and a line for each model.
    pub(super) fn heading(&self) -> (String, Vec<String>) {
        let name = self.name;
        let mut models: Vec<_> = self.models.iter().map(Fit::heading).collect();
        if self.lacks_tokenizer() {
            models.push(TOKENS.to_owned());
        }
        let what = match &self.models[..] {
            [Fit { requests, called, .. }] => {
                format!("{}, the outputs of the model {called} as JSON out", requests.text())
            }
            _ => "JSON with a part for each model in, their outputs as JSON out".to_owned(),
        };
        (format!("{name}: {what}."), models)
    }

    /// Whether it would take texts if it had the file that makes tokens of them.
    pub(super) fn lacks_tokenizer(&self) -> bool {
        self.models.iter().any(|fit| fit.is_of_tokens() && fit.texts().is_none())
    }

    /// Whether the host makes tokens of texts for it.
    pub(super) fn is_of_texts(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Whether a model takes rows of tokens of any length.
    pub(super) fn has_open_lengths(&self) -> bool {
        self.models.iter().filter_map(Fit::texts).any(|texts| texts.length.is_none())
    }

    /// The files that replace those of a template: its code, its tests, the sample request, and
    /// the tokenizer's file.
    pub(super) fn files(
        &self,
        (code_file, code): (&'static str, String),
        tests_file: &'static str,
        tests: fn(&PluginFit<'_>, &Fit<'_>) -> String,
        handler_tests: fn(&PluginFit<'_>) -> String,
    ) -> Result<Files> {
        let tests = self.only().map_or_else(|| handler_tests(self), |fit| tests(self, fit));
        let (code, tests) = ((code_file, code.into_bytes()), (tests_file, tests.into_bytes()));
        let mut files = vec![code, tests, self.sample()?];
        files.extend(self.tokenizer.map(|file| (TOKENIZER_FILE, file.to_vec())));
        Ok(files)
    }

    fn sample(&self) -> Result<(&'static str, Vec<u8>)> {
        let json = |sample: Value| ("requests/sample.json", format!("{sample}\n").into_bytes());
        Ok(match &self.models[..] {
            [Fit { requests: Requests::Picture(picture), .. }] => {
                ("requests/sample.png", picture.sample()?)
            }
            [fit] => json(fit.sample()?),
            several => {
                let part = |fit: &Fit<'_>| -> Result<(String, Value)> {
                    Ok((fit.own_name.unwrap_or_default().to_owned(), fit.sample()?))
                };
                json(Value::Object(several.iter().map(part).collect::<Result<_>>()?))
            }
        })
    }

    /// Whether its tests decode pictures.
    pub(super) fn is_of_pictures(&self) -> bool {
        self.models.iter().any(Fit::is_of_picture)
    }

    /// Whether it has inputs that are tensors in the request.
    pub(super) fn is_of_tensors(&self) -> bool {
        let is_so = |fit: &Fit<'_>| matches!(fit.requests, Requests::Texts(_) | Requests::Tensors);
        self.models.iter().any(is_so)
    }

    /// Whether it names element types.
    pub(super) fn names_dtypes(&self) -> bool {
        self.models.iter().any(|fit| match fit.requests {
            Requests::Picture(_) => fit.model.inputs[0].dtype == Dtype::Uint8,
            Requests::Texts(_) | Requests::Objects | Requests::Tensors => true,
        })
    }

    /// The pictures of its requests.
    pub(super) fn pictures(&self) -> impl Iterator<Item = (&Picture, &Fit<'a>)> {
        self.models.iter().filter_map(|fit| match &fit.requests {
            Requests::Picture(picture) => Some((picture, fit)),
            Requests::Texts(_) | Requests::Objects | Requests::Tensors => None,
        })
    }

    /// The models, each with a name that no other function of the plugin has. `of_words` makes it
    /// of the words in the model's name.
    pub(super) fn functions(
        &self,
        of_words: impl Fn(&[&str]) -> String,
    ) -> Vec<(String, &Fit<'a>)> {
        let mut named: Vec<(String, &Fit<'a>)> = Vec::new();
        for fit in &self.models {
            let own_name = fit.own_name.unwrap_or_default();
            let words: Vec<_> = own_name.split(['-', '_', '.']).collect();
            let mut function = of_words(&words);
            // A suffix can make the name of another model.
            while named.iter().any(|(other, _)| *other == function) {
                function += &format!("_{}", named.len() + 1);
            }
            named.push((function, fit));
        }
        named
    }

    /// The keys of the answer.
    pub(super) fn answer_keys(&self) -> Vec<&str> {
        match &self.models[..] {
            [only] => only.answer_keys(),
            several => several.iter().filter_map(|fit| fit.own_name).collect(),
        }
    }
}

impl<'a> Fit<'a> {
    fn new(
        own_name: Option<&'a str>,
        called: &str,
        model: &'a Signature,
        place: String,
        has_tokenizer: bool,
    ) -> Result<Self> {
        let requests = Requests::of(model, has_tokenizer);
        model.check(&requests)?;
        Ok(Self { own_name, called: shown(called), requests, model, place })
    }

    /// The line of a comment that tells about the model.
    fn heading(&self) -> String {
        let Self { own_name, called, model, .. } = self;
        match own_name {
            None => format!("The model: {}", model.text()),
            Some(own_name) => format!("The model {own_name} ({called}): {}", model.text()),
        }
    }

    /// Its part of the sample request. A picture is a text in base64.
    fn sample(&self) -> Result<Value> {
        Ok(match &self.requests {
            Requests::Picture(picture) => STANDARD.encode(picture.sample()?).into(),
            Requests::Texts(_) | Requests::Objects | Requests::Tensors => {
                self.requests.sample(self.model)
            }
        })
    }

    /// Whether it takes the numbers of tokens, by the name that exporters of text models give them.
    fn is_of_tokens(&self) -> bool {
        self.model.inputs.iter().any(|input| &*input.name == "input_ids")
    }

    /// The texts that it takes.
    pub(super) fn texts(&self) -> Option<&Texts> {
        match &self.requests {
            Requests::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The part of the tokens of texts that an input is: `ids`, the mask or the types, by the
    /// language's names for them.
    pub(super) fn part_of(
        input: &TensorInfo,
        [ids, mask, types]: [&'static str; 3],
    ) -> &'static str {
        match &*input.name {
            "input_ids" => ids,
            "attention_mask" => mask,
            _ => types,
        }
    }

    /// Whether an output has a vector for each token of texts. A plugin around the model makes one
    /// vector for each text of them.
    pub(super) fn is_pooled(&self, output: &TensorInfo) -> bool {
        let Some(texts) = self.texts().filter(|_| self.own_name.is_none()) else { return false };
        let fits = |length: Option<usize>| length.is_none() || length == texts.length;
        output.dtype == Dtype::Float32
            && matches!(output.dims[..], [None, length, Some(_)] if fits(length))
    }

    /// Whether one of its outputs is pooled.
    pub(super) fn has_pooled(&self) -> bool {
        self.model.outputs.iter().any(|output| self.is_pooled(output))
    }

    /// Whether an output is not written into the answer, which has at most 4 MiB: it is large, or
    /// has a vector for each token.
    pub(super) fn is_left_out(&self, output: &TensorInfo) -> bool {
        is_large(output) || self.texts().is_some() && output.dims.len() > 2
    }

    fn is_of_picture(&self) -> bool {
        matches!(self.requests, Requests::Picture(_))
    }

    /// The sizes that the sample's tensor for an input has.
    pub(super) fn input_dims(&self, input: &TensorInfo) -> Vec<usize> {
        match &self.requests {
            Requests::Texts(texts) => texts.dims().to_vec(),
            Requests::Picture(picture) => picture.dims().to_vec(),
            Requests::Objects | Requests::Tensors => dims(input),
        }
    }

    /// Where an input is in the request, as a JSON Pointer: at the model's place if it is the only
    /// one.
    pub(super) fn pointer(&self, input: &TensorInfo) -> String {
        let place = &self.place;
        match self.model.inputs.len() {
            1 => place.clone(),
            _ => format!("{place}/{}", input.name.replace('~', "~0").replace('/', "~1")),
        }
    }

    /// Whether the answer is the best classes of a picture.
    pub(super) fn has_scores(&self) -> bool {
        let is_scores =
            |output: &TensorInfo| output.dtype == Dtype::Float32 && output.dims.len() == 2;
        self.is_of_picture() && matches!(&self.model.outputs[..], [one] if is_scores(one))
    }

    /// The keys of the answer to a request for this model alone.
    fn answer_keys(&self) -> Vec<&str> {
        match self.has_scores() {
            true => vec!["top"],
            false => self.model.outputs.iter().map(|output| &*output.name).collect(),
        }
    }
}

/// What tests say of a model: the name in a handler, its inputs and outputs.
#[cfg(test)]
pub(super) type Tested = (Option<&'static str>, Vec<TensorInfo>, Vec<TensorInfo>);

/// What `files` makes for these models.
#[cfg(test)]
pub(super) fn of_models<T>(
    models: Vec<Tested>,
    make: impl FnOnce(&PluginFit<'_>) -> T,
) -> Result<T> {
    let mut names = Vec::new();
    for (name, ..) in &models {
        names.push(name.map(str::parse::<Name>).transpose()?);
    }
    let models: Vec<_> = names
        .iter()
        .zip(models)
        .map(|(name, (_, inputs, outputs))| {
            (name.as_ref(), "m.onnx".to_owned(), Signature { inputs, outputs })
        })
        .collect();
    Ok(make(&PluginFit::new("a", &models, None)?))
}

/// What `make` makes for a model of texts with these inputs and outputs, in a plugin around it.
#[cfg(test)]
pub(super) fn of_texts<T>(
    inputs: Vec<TensorInfo>,
    outputs: Vec<TensorInfo>,
    make: impl FnOnce(&PluginFit<'_>) -> T,
) -> Result<T> {
    let models = [(None, "m.onnx".to_owned(), Signature { inputs, outputs })];
    Ok(make(&PluginFit::new("a", &models, Some(b"{}"))?))
}
