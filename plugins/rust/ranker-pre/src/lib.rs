//! `{"items":[{"id":..,"features":[32 numbers]}..]}` in, a tensor [items, 32] out. The state for
//! `ranker-post` has the ids.

mod features;

use std::borrow::Cow;

use gristmill_plugin::{Context, Failure, Prepared, Preprocessor, Request, Tensor, json};
use serde::Deserialize;

use self::features::{FEATURES, Features};

struct RankerPre;

/// Ids are borrowed from the body where they have no escapes.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    features: Features,
}

impl Preprocessor for RankerPre {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let body = request.body_bytes();
        let Body { items } = json::from_slice(&body)?;
        if items.is_empty() {
            return Err(Failure::invalid_input("items is empty: at least one is needed"));
        }
        let mut features = Vec::with_capacity(items.len() * FEATURES);
        let mut ids = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Some(row) = item.features.row() else {
                let count = item.features.count();
                let text = format!("items[{index}].features has {count} numbers, not {FEATURES}");
                return Err(Failure::invalid_input(text));
            };
            features.extend_from_slice(row);
            ids.push(&item.id);
        }
        let input = Tensor::from_slice(&[ids.len(), FEATURES], &features)?;
        Ok(Prepared::new().input("input", input).state(serde_json::to_vec(&ids)?))
    }
}

gristmill_plugin::export_preprocessor!(RankerPre);

#[cfg(test)]
mod tests;
