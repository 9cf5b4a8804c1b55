//! Whether two servers answered the same.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::service::Service;

/// The most that two scores of the ranker may differ.
const SCORES_DIFFER: f64 = 1e-4;
/// The most that two probabilities of a picture's best label may differ. Decoders of JPEG and
/// resizers round differently.
const PROBABILITIES_DIFFER: f64 = 0.05;

/// Compare a peer's answer with Gristmill's: the ranker's ids in their order, and the scores; of
/// the picture the best label and its probability.
///
/// # Errors
/// They differ; the text says where.
pub(super) fn compare(service: Service, ours: &Value, theirs: &Value) -> Result<()> {
    match service {
        Service::Ranker => compare_rankings(ours, theirs),
        Service::Photos => {
            ensure!(
                ours["label"] == theirs["label"],
                "the label is {}, and Gristmill's is {}",
                theirs["label"],
                ours["label"]
            );
            close(&ours["probability"], &theirs["probability"], PROBABILITIES_DIFFER)
        }
    }
}

fn compare_rankings(ours: &Value, theirs: &Value) -> Result<()> {
    let items = |value: &Value| value["items"].as_array().cloned();
    let (Some(ours), Some(theirs)) = (items(ours), items(theirs)) else {
        bail!("an answer has no list `items`");
    };
    ensure!(ours.len() == theirs.len(), "there are {} items, not {}", theirs.len(), ours.len());
    for (our, their) in ours.iter().zip(&theirs) {
        ensure!(our["id"] == their["id"], "{} is where {} should be", their["id"], our["id"]);
        close(&our["score"], &their["score"], SCORES_DIFFER)?;
    }
    Ok(())
}

fn close(ours: &Value, theirs: &Value, most: f64) -> Result<()> {
    let number = |value: &Value| value.as_f64().with_context(|| format!("{value} is no number"));
    let (ours, theirs) = (number(ours)?, number(theirs)?);
    ensure!((ours - theirs).abs() <= most, "{theirs} is too far from Gristmill's {ours}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Service, compare};

    #[test]
    fn rankings_agree_in_order_and_score() {
        let answer = |first: &str, second: &str, score: f64| json!({ "items": [{ "id": first, "score": 0.9 }, { "id": second, "score": score }] });
        let ours = answer("a", "b", 0.5);
        let verdict = |theirs: &Value| compare(Service::Ranker, &ours, theirs).is_ok();
        assert!(verdict(&answer("a", "b", 0.50001)));
        assert!(!verdict(&answer("a", "b", 0.51)));
        assert!(!verdict(&answer("b", "a", 0.5)));
        assert!(!verdict(&json!({ "items": [] })) && !verdict(&json!({ "detail": "no" })));
    }

    #[test]
    fn pictures_agree_in_the_best_label() {
        let ours = json!({ "label": 486, "probability": 0.49 });
        let verdict = |label: u32, probability: f64| {
            let theirs = json!({ "label": label, "probability": probability });
            compare(Service::Photos, &ours, &theirs).is_ok()
        };
        assert!(verdict(486, 0.47));
        assert!(!verdict(486, 0.6) && !verdict(3, 0.49));
        assert!(compare(Service::Photos, &ours, &json!({ "label": 486 })).is_err());
    }
}
