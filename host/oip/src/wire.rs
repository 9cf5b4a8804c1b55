//! The types into which serde reads the JSON of a request.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::bounded::{List, ListItem, Text};
use crate::limits::{DIMENSIONS_MAX, TENSORS_MAX};
use crate::object::{Object, Whole};

#[derive(Deserialize)]
#[serde(expecting = "an object with inputs")]
pub(crate) struct WireRequest<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) parameters: Option<Object<WireParameters>>,
    #[serde(borrow)]
    pub(crate) inputs: List<Object<WireInput<'a>>>,
    #[serde(borrow, default)]
    pub(crate) outputs: Option<List<Object<WireOutput<'a>>>>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object of parameters")]
pub(crate) struct WireParameters {
    pub(crate) priority: Option<Whole>,
    /// Microseconds.
    pub(crate) timeout: Option<Whole>,
    #[serde(default)]
    pub(crate) binary_data_output: bool,
}

#[derive(Deserialize)]
#[serde(expecting = "an input: an object")]
pub(crate) struct WireInput<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) datatype: Text<'a>,
    pub(crate) shape: List<Whole>,
    #[serde(borrow, default)]
    pub(crate) parameters: Option<Object<WireInputParameters<'a>>>,
    #[serde(borrow, default)]
    pub(crate) data: Option<&'a RawValue>,
}

impl ListItem for Object<WireInput<'_>> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "inputs";
}

impl ListItem for Whole {
    const MAX: usize = DIMENSIONS_MAX;
    const WHAT: &'static str = "dimensions";
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object of parameters")]
pub(crate) struct WireInputParameters<'a> {
    pub(crate) binary_data_size: Option<Whole>,
    #[serde(borrow, default)]
    pub(crate) content_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) query: Option<Text<'a>>,
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(expecting = "an output: an object")]
pub(crate) struct WireOutput<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(default)]
    pub(crate) parameters: Option<Object<WireOutputParameters>>,
}

impl ListItem for Object<WireOutput<'_>> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "outputs";
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object of parameters")]
pub(crate) struct WireOutputParameters {
    pub(crate) binary_data: Option<bool>,
    pub(crate) classification: Option<Whole>,
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}
