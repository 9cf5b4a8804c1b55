//! What a model's configuration says of rows of different lengths: the keys `pad` and `cut`.
//!
//! Refuses to know the model: whether it has these inputs and outputs, and whether padding changes
//! nothing, is found out when it is loaded.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{BUCKETS_MAX, LENGTHS_MAX, PadValue, PaddingSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use super::tensors::{TENSORS_MAX, TEXT_BYTES_MAX};
use crate::release::document::{Document, Faults, shown, whole_of};

/// The largest bucket, and the last dimension.
const BUCKET_MAX: u64 = 1 << 20;
const AXIS_MAX: u64 = 15;

/// How an input is filled up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelPad)]
#[serde(deny_unknown_fields)]
pub struct PadSpec {
    /// The dimension that is filled up. 0 would be the rows.
    #[schema(minimum = 1, maximum = 15)]
    pub axis: usize,
    /// The value that fills it.
    #[schema(value_type = f64)]
    #[serde(default = "zero")]
    pub value: Number,
    /// The sizes to which it is filled up, ascending. A longer row is not filled up. Inputs with
    /// the same buckets have one length.
    #[schema(min_items = 1, max_items = 16)]
    pub buckets: Vec<usize>,
}

/// How an output is cut back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelCut)]
#[serde(deny_unknown_fields)]
pub struct CutSpec {
    /// The dimension that is cut. 0 would be the rows.
    #[schema(minimum = 1, maximum = 15)]
    pub axis: usize,
    /// The padded input with whose length the output grows.
    #[serde(rename = "as")]
    pub input: String,
}

fn zero() -> Number {
    Number::from(0)
}

/// Read the key `pad`.
pub(super) fn read_pad(read: &mut Document) -> BTreeMap<String, PadSpec> {
    let bucket = |item: &Value| {
        let wrong = || format!(" is {}: must be a whole number from 1 on", shown(item));
        whole_of(item).map(|size| size as usize).ok_or_else(wrong)
    };
    read_members(read, "pad", |pad| {
        let axis = pad.whole("axis");
        let value = pad.read("value", "a number", |value| value.as_number().cloned());
        let buckets = pad.list("buckets", bucket);
        let (axis, buckets) = (pad.require("axis", axis), pad.require("buckets", buckets));
        Some(PadSpec { axis: axis?, value: value.unwrap_or_else(zero), buckets: buckets? })
    })
}

/// Read the key `cut`.
pub(super) fn read_cut(read: &mut Document) -> BTreeMap<String, CutSpec> {
    read_members(read, "cut", |cut| {
        let (axis, input) = (cut.whole("axis"), cut.text("as"));
        let hint = ": the input under pad with whose length the output grows";
        let (axis, input) = (cut.require("axis", axis), cut.require_with("as", input, hint));
        Some(CutSpec { axis: axis?, input: input? })
    })
}

/// Read the members of the object under `key`, whose names are those of tensors.
fn read_members<T>(
    read: &mut Document,
    key: &'static str,
    member: impl Fn(&mut Document) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut members = BTreeMap::new();
    for (name, value) in read.object(key).unwrap_or_default() {
        let Value::Object(keys) = value else {
            let (at, value) = (shown(&Value::String(name.clone())), shown(&value));
            let text = format!("{key}.{at} is {value}: must be a JSON object");
            read.member_fault(key, &name, text);
            continue;
        };
        let mut document = Document::new(keys);
        let spec = member(&mut document);
        read.member_faults(key, &name, document.finish());
        members.extend(spec.map(|spec| (name, spec)));
    }
    members
}

/// Add the faults of both keys.
pub(super) fn check(
    pad: &BTreeMap<String, PadSpec>,
    cut: &BTreeMap<String, CutSpec>,
    faults: &mut Faults,
) {
    check_names("pad", pad.keys(), faults);
    check_names("cut", cut.keys(), faults);
    for (name, PadSpec { axis, value, buckets }) in pad {
        let mut found = Faults::default();
        found.within("axis", *axis as u64, 1..=AXIS_MAX);
        if value_of(value).is_none() {
            found.add("value", format!("value is {value}: must be a finite number"));
        }
        check_buckets(buckets, &mut found);
        faults.add_member_all("pad", name, found);
    }
    let lists: BTreeSet<_> = pad.values().map(|pad| &pad.buckets).collect();
    if lists.len() > LENGTHS_MAX {
        let text = format!(
            "pad has inputs with {} different lists of buckets: the limit is {LENGTHS_MAX}. Inputs \
             that have one length need the same buckets",
            lists.len()
        );
        faults.add("pad", text);
    }
    for (name, CutSpec { axis, input }) in cut {
        let mut found = Faults::default();
        found.within("axis", *axis as u64, 1..=AXIS_MAX);
        if !pad.contains_key(input) && !faults.has("pad") {
            let input = shown(&Value::String(input.clone()));
            found.add("as", format!("as is {input}, which is not named under pad"));
        }
        faults.add_member_all("cut", name, found);
    }
}

fn check_buckets(buckets: &[usize], faults: &mut Faults) {
    let key = "buckets";
    for (index, size) in buckets.iter().enumerate() {
        faults.within(&format!("{key}[{index}]"), *size as u64, 1..=BUCKET_MAX);
    }
    if !(1..=BUCKETS_MAX).contains(&buckets.len()) {
        let count = buckets.len();
        faults.add(key, format!("{key} has {count} sizes: must be 1 to {BUCKETS_MAX}"));
    }
    if let Some(index) = buckets.windows(2).position(|pair| pair[0] >= pair[1]) {
        let (before, size) = (buckets[index], buckets[index + 1]);
        let at = format!("{key}[{}]", index + 1);
        faults.add(&*at, format!("{at} is {size}: must be more than {before}, before it"));
    }
}

fn check_names<'a>(
    key: &str,
    names: impl ExactSizeIterator<Item = &'a String>,
    faults: &mut Faults,
) {
    if names.len() > TENSORS_MAX {
        let count = names.len();
        return faults.add(key, format!("{key} has {count} entries: the limit is {TENSORS_MAX}"));
    }
    for name in names {
        if !(1..=TEXT_BYTES_MAX).contains(&name.len()) {
            let len = name.len();
            let text = format!("{key} has a name of {len} bytes: must be 1 to {TEXT_BYTES_MAX}");
            faults.add_member(key, name, text);
        }
    }
}

fn value_of(number: &Number) -> Option<PadValue> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match whole {
        Some(whole) => Some(PadValue::Whole(whole)),
        None => PadValue::of(number.as_f64()?),
    }
}

/// The claim for the backends. The configuration must have no faults.
pub(super) fn spec(
    pad: &BTreeMap<String, PadSpec>,
    cut: &BTreeMap<String, CutSpec>,
) -> PaddingSpec {
    let pad = pad.iter().map(|(input, pad)| gristmill_core::PadSpec {
        input: input.clone(),
        axis: pad.axis,
        value: value_of(&pad.value).unwrap_or(PadValue::Whole(0)),
        buckets: pad.buckets.clone(),
    });
    let cut = cut.iter().map(|(output, cut)| gristmill_core::CutSpec {
        output: output.clone(),
        axis: cut.axis,
        input: cut.input.clone(),
    });
    PaddingSpec { inputs: pad.collect(), outputs: cut.collect() }
}

#[cfg(test)]
mod tests;
