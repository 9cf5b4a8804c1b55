//! `{"items":[{"id":..,"features":[32 numbers]}..]}` in, a tensor [items, 32] out. The state for
//! `ranker-post` has the ids.

mod features;

use gristmill_plugin::{Context, Failure, Prepared, Preprocessor, Request, Tensor};
use serde::Deserialize;

use self::features::{FEATURES, Features};

struct RankerPre;

#[derive(Deserialize)]
struct Body {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
    features: Features,
}

impl Preprocessor for RankerPre {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let Body { items } = request.json()?;
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
