//! Scores in, the items ordered by score out, the best first.

use gristmill_plugin::{Context, Failure, Outputs, Postprocessor, Response};
use serde::Serialize;

struct RankerPost;

#[derive(Serialize)]
struct Ranking {
    items: Vec<Scored>,
}

#[derive(Serialize)]
struct Scored {
    id: String,
    score: f32,
}

impl Postprocessor for RankerPost {
    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let fault = |error| Failure::internal(format!("the state of ranker-pre: {error}"));
        let ids: Vec<String> = serde_json::from_slice(&state).map_err(fault)?;
        let scores = outputs.view::<f32>("output", &[Some(ids.len()), Some(1)])?;
        let scored = ids.into_iter().zip(scores.as_slice());
        let mut items: Vec<_> = scored.map(|(id, score)| Scored { id, score: *score }).collect();
        items.sort_by(|a, b| b.score.total_cmp(&a.score));
        Response::json(&Ranking { items })
    }
}

gristmill_plugin::export_postprocessor!(RankerPost);

#[cfg(test)]
mod tests;
