//! The types into which serde reads the JSON of a request.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::bounded::{List, Part, Text};
use crate::limits::{DIMENSIONS_MAX, TENSORS_MAX};

#[derive(Deserialize)]
pub(crate) struct WireRequest<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) parameters: Option<WireParameters>,
    #[serde(borrow)]
    pub(crate) inputs: List<WireInput<'a>>,
    #[serde(borrow, default)]
    pub(crate) outputs: Option<List<WireOutput<'a>>>,
}

#[derive(Default, Deserialize)]
pub(crate) struct WireParameters {
    pub(crate) priority: Option<u32>,
    /// Microseconds.
    pub(crate) timeout: Option<u64>,
    #[serde(default)]
    pub(crate) binary_data_output: bool,
}

#[derive(Deserialize)]
pub(crate) struct WireInput<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) datatype: Text<'a>,
    pub(crate) shape: List<i64>,
    #[serde(borrow, default)]
    pub(crate) parameters: Option<WireInputParameters<'a>>,
    #[serde(borrow, default)]
    pub(crate) data: Option<&'a RawValue>,
}

impl Part for WireInput<'_> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "inputs";
}

impl Part for i64 {
    const MAX: usize = DIMENSIONS_MAX;
    const WHAT: &'static str = "dimensions";
}

#[derive(Default, Deserialize)]
pub(crate) struct WireInputParameters<'a> {
    pub(crate) binary_data_size: Option<u64>,
    #[serde(borrow, default)]
    pub(crate) content_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) query: Option<Text<'a>>,
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(crate) struct WireOutput<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(default)]
    pub(crate) parameters: Option<WireOutputParameters>,
}

impl Part for WireOutput<'_> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "outputs";
}

#[derive(Default, Deserialize)]
pub(crate) struct WireOutputParameters {
    pub(crate) binary_data: Option<bool>,
    pub(crate) classification: Option<i64>,
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}
