//! Sizes that a model's configuration sets or leaves to the server.

use gristmill_backend::{BATCH_SIZE_MAX, FixedSizes, Sizing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

use crate::release::document::{Document, whole_of};

/// A size, or `auto`: the server chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SizeSpec {
    /// This size.
    Fixed(usize),
    /// The server chooses it when it loads the model for the first time.
    Auto(Auto),
}

/// The name of the choice of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// `auto`.
    Auto,
}

impl SizeSpec {
    /// The server chooses.
    pub const AUTO: Self = Self::Auto(Auto::Auto);

    /// The size, if it is fixed.
    pub fn fixed(self) -> Option<usize> {
        match self {
            Self::Fixed(size) => Some(size),
            Self::Auto(_) => None,
        }
    }

    /// Read the key `key`.
    pub(super) fn read(document: &mut Document, key: &'static str) -> Option<Self> {
        let read = |value: &Value| match value.as_str() {
            Some("auto") => Some(Self::AUTO),
            _ => Some(Self::Fixed(whole_of(value)?.try_into().ok()?)),
        };
        document.read(key, "\"auto\" or a whole number from 0 on", read)
    }
}

impl From<usize> for SizeSpec {
    fn from(size: usize) -> Self {
        Self::Fixed(size)
    }
}

/// The schema of a size in a range.
pub(super) fn size_schema<const MIN: usize, const MAX: usize>() -> RefOr<Schema> {
    let whole = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    let whole = whole.minimum(Some(MIN)).maximum(Some(MAX));
    let auto = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
    let auto = auto.enum_values(Some(["auto"]));
    let description = "A size, or `auto`: the server measures the model and chooses";
    OneOfBuilder::new().item(auto).item(whole).description(Some(description)).into()
}

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Rows of a batch.
    pub max_batch_size: SizeSpec,
    /// Copies of the model that run side by side.
    pub instances: SizeSpec,
    /// Threads of each instance.
    pub threads: SizeSpec,
}

impl Sizes {
    /// Those that are fixed, if some are not.
    pub fn fixed(self, cores: usize) -> Option<FixedSizes> {
        let all = [self.max_batch_size, self.instances, self.threads];
        let [max_batch_size, instances, threads] = all.map(SizeSpec::fixed);
        let is_open = all.iter().any(|size| size.fixed().is_none());
        is_open.then_some(FixedSizes { instances, threads, max_batch_size, cores })
    }

    /// All of them. What was neither set nor chosen is one instance of one thread, and batches of
    /// any size up to the largest.
    pub fn resolved(self, chosen: Option<&Sizing>) -> Sizing {
        let of = |size: SizeSpec, chosen: Option<usize>, default: usize| {
            size.fixed().or(chosen).unwrap_or(default)
        };
        let batch = chosen.map(|chosen| chosen.max_batch_size);
        Sizing {
            instances: of(self.instances, chosen.map(|chosen| chosen.instances), 1),
            threads: of(self.threads, chosen.map(|chosen| chosen.threads), 1),
            max_batch_size: of(self.max_batch_size, batch, BATCH_SIZE_MAX),
            reason: chosen.map(|chosen| chosen.reason.clone()).unwrap_or_default(),
        }
    }
}
