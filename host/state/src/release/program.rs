//! The plugins and models that run the requests of a pipeline: the keys `pre`, `model` and `post`,
//! or `handler` and `models`, of its document and of its candidate.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use gristmill_core::Name;
use serde_json::Value;

use crate::release::document::{Document, Faults, shown};
use crate::release::named_version::NamedVersion;

/// The key of a handler's models.
const MODELS: &str = "models";

/// Maximum models of a handler.
const MODELS_MAX: usize = 16;

/// What runs the requests of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramSpec {
    /// A plugin before one model, and one after it.
    Pair {
        /// The plugin that makes the model's inputs.
        pre: NamedVersion,
        /// The model.
        model: NamedVersion,
        /// The plugin that makes the response.
        post: NamedVersion,
    },
    /// A plugin that answers requests itself, and runs models.
    Handler {
        /// The plugin.
        handler: NamedVersion,
        /// The models, by the names that the plugin's code has for them.
        models: BTreeMap<Name, NamedVersion>,
    },
}

/// The kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// [`ProgramSpec::Pair`].
    Pair,
    /// [`ProgramSpec::Handler`].
    Handler,
}

/// The plugins and models that a document names; none where it names none, or where it could not
/// be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramParts {
    /// The plugin that makes the model's inputs.
    pub pre: Option<NamedVersion>,
    /// The model.
    pub model: Option<NamedVersion>,
    /// The plugin that makes the response.
    pub post: Option<NamedVersion>,
    /// The plugin that runs models.
    pub handler: Option<NamedVersion>,
    /// The models that it runs, by the names that its code has for them.
    pub models: Option<BTreeMap<Name, NamedVersion>>,
}

/// The key under which a document names a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKey<'a> {
    /// The key `model`.
    Model,
    /// A member of `models`.
    Member(&'a Name),
}

impl ProgramKind {
    /// The keys of its parts.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Pair => &["pre", "model", "post"],
            Self::Handler => &["handler", MODELS],
        }
    }
}

impl ProgramSpec {
    /// Its plugins.
    pub fn plugins(&self) -> impl Iterator<Item = &NamedVersion> {
        let (first, second) = match self {
            Self::Pair { pre, post, .. } => (pre, Some(post)),
            Self::Handler { handler, .. } => (handler, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Its models.
    pub fn models(&self) -> impl Iterator<Item = &NamedVersion> {
        let (one, several) = match self {
            Self::Pair { model, .. } => (Some(model), None),
            Self::Handler { models, .. } => (None, Some(models)),
        };
        one.into_iter().chain(several.into_iter().flat_map(BTreeMap::values))
    }

    /// Its parts, as a document has them.
    pub fn parts(&self) -> ProgramParts {
        let none = ProgramParts::default();
        match self.clone() {
            Self::Pair { pre, model, post } => {
                ProgramParts { pre: Some(pre), model: Some(model), post: Some(post), ..none }
            }
            Self::Handler { handler, models } => {
                ProgramParts { handler: Some(handler), models: Some(models), ..none }
            }
        }
    }

    /// The program with these parts in place of its own. Parts of the other kind have no place.
    pub fn with(self, parts: ProgramParts) -> Self {
        match self {
            Self::Pair { pre, model, post } => Self::Pair {
                pre: parts.pre.unwrap_or(pre),
                model: parts.model.unwrap_or(model),
                post: parts.post.unwrap_or(post),
            },
            Self::Handler { handler, models } => Self::Handler {
                handler: parts.handler.unwrap_or(handler),
                models: parts.models.unwrap_or(models),
            },
        }
    }
}

impl ProgramParts {
    /// The parts that the document names.
    pub fn read(document: &mut Document) -> Self {
        Self {
            pre: document.named_version("pre"),
            model: document.named_model("model"),
            post: document.named_version("post"),
            handler: document.named_version("handler"),
            models: read_models(document),
        }
    }

    /// The parts of a program, of which none may be missing, and its kind. A document with keys of
    /// both kinds has no kind, and none of the parts is used.
    pub fn read_all(document: &mut Document) -> (Self, Option<ProgramKind>) {
        let first = |kind: ProgramKind| kind.keys().iter().find(|key| document.gives(key)).copied();
        let (of_pair, of_handler) = (first(ProgramKind::Pair), first(ProgramKind::Handler));
        let mut parts = Self::read(document);
        match (of_pair, of_handler) {
            (Some(other), Some(key)) => {
                document.fault(
                    key,
                    format_args!(
                        " is given beside {other}: give either pre, model and post, or handler and \
                         models"
                    ),
                );
                (Self::default(), None)
            }
            (None, Some(_)) => {
                let hint = ": name the plugin that runs the models";
                parts.handler = document.require_with("handler", parts.handler, hint);
                let hint = ": name those that the handler runs, as in {\"detect\": \"ocr-det\"}";
                parts.models = document.require_with(MODELS, parts.models, hint);
                (parts, Some(ProgramKind::Handler))
            }
            (given_kind, None) => {
                let hint = match given_kind {
                    Some(_) => "",
                    None => ": give pre, model and post, or handler and models",
                };
                parts.pre = document.require_with("pre", parts.pre, hint);
                parts.model = document.require("model", parts.model);
                parts.post = document.require("post", parts.post);
                (parts, Some(ProgramKind::Pair))
            }
        }
    }

    /// The program, if these are all parts of one, and none of the other kind.
    pub fn program(self) -> Option<ProgramSpec> {
        let Self { pre, model, post, handler, models } = self;
        match (pre, model, post, handler, models) {
            (Some(pre), Some(model), Some(post), None, None) => {
                Some(ProgramSpec::Pair { pre, model, post })
            }
            (None, None, None, Some(handler), Some(models)) => {
                Some(ProgramSpec::Handler { handler, models })
            }
            _ => None,
        }
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The keys of this kind that have a value.
    pub fn keys_of(&self, kind: ProgramKind) -> impl Iterator<Item = &'static str> {
        let are_given = match kind {
            ProgramKind::Pair => {
                vec![self.pre.is_some(), self.model.is_some(), self.post.is_some()]
            }
            ProgramKind::Handler => vec![self.handler.is_some(), self.models.is_some()],
        };
        let keys = kind.keys().iter().copied().zip(are_given);
        keys.filter(|(_, is_given)| *is_given).map(|(key, _)| key)
    }

    /// The models that it names, each with its key.
    pub fn keyed_models(&self) -> impl Iterator<Item = (ModelKey<'_>, &NamedVersion)> {
        let one = self.model.iter().map(|named| (ModelKey::Model, named));
        let several = self.models.iter().flatten();
        one.chain(several.map(|(name, named)| (ModelKey::Member(name), named)))
    }
}

impl ModelKey<'_> {
    /// Add a fault of the model that has this key. `text` must name the key.
    pub fn add_fault(self, faults: &mut Faults, text: String) {
        match self {
            Self::Model => faults.add("model", text),
            Self::Member(name) => faults.add_member(MODELS, name.as_str(), text),
        }
    }
}

impl fmt::Display for ModelKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("model"),
            Self::Member(name) => write!(f, "{MODELS}.{name}"),
        }
    }
}

/// The value of the key `models`. Members with a fault are left out.
fn read_models(document: &mut Document) -> Option<BTreeMap<Name, NamedVersion>> {
    let members = document.object(MODELS)?;
    let count = members.len();
    if !(1..=MODELS_MAX).contains(&count) {
        document.fault(MODELS, format_args!(" has {count} models: must be 1 to {MODELS_MAX}"));
    }
    let mut models = BTreeMap::new();
    for (name, value) in members.iter().take(MODELS_MAX) {
        match read_member(name, value) {
            Ok((name, model)) => {
                models.insert(name, model);
            }
            Err(text) => document.member_fault(MODELS, name, text),
        }
    }
    Some(models)
}

/// A member of `models`, or what is wrong with it.
fn read_member(name: &str, value: &Value) -> Result<(Name, NamedVersion), String> {
    let name = Name::from_str(name).map_err(|error| format!("{MODELS}: {error}"))?;
    let Some(text) = value.as_str() else {
        return Err(format!("{MODELS}.{name} is {}: must be the name of a model", shown(value)));
    };
    let model = NamedVersion::of_model(text);
    model.map(|model| (name.clone(), model)).map_err(|error| format!("{MODELS}.{name}: {error}"))
}
