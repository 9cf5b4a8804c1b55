//! The jobs: the request of each, and what its answers must have in common.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::answers::distance;

pub(super) struct Scenario {
    /// The job: a module of the peer, and a word of `--only`.
    pub(super) job: &'static str,
    /// The request in words.
    pub(super) what: &'static str,
    /// The pipelines that do the job. The target is that of the first one.
    pub(super) pipelines: &'static [&'static str],
    /// The file with the request's body, or a folder of such files, which are sent at random. Its
    /// folder is that of the requests.
    pub(super) bodies: &'static str,
    pub(super) content_type: &'static str,
    pub(super) clients: u32,
    /// The time of a round: many times that of a request with so many clients.
    pub(super) seconds: u32,
    /// The targets.
    pub(super) ratio_min: f64,
    pub(super) p99_ms_max: Option<f64>,
    /// What is compared of an answer, and how far its numbers may be apart.
    compared: fn(&Value) -> Option<Value>,
    distance_max: f64,
}

const PHOTO: Scenario = Scenario {
    job: "photo",
    what: "photo, a JPEG of 640x480",
    pipelines: &["photo", "photo-python"],
    bodies: "photo/small.jpg",
    content_type: "image/jpeg",
    clients: 16,
    seconds: 6,
    ratio_min: 2.0,
    p99_ms_max: None,
    compared: prediction,
    // Decoders of JPEG and resizers round differently.
    distance_max: 0.05,
};

pub(super) const SCENARIOS: [Scenario; 5] = [
    PHOTO,
    Scenario {
        what: "photo, a phone's JPEG of 12 MP, to be turned",
        bodies: "photo/phone.jpg",
        seconds: 10,
        ratio_min: 4.0,
        ..PHOTO
    },
    Scenario {
        job: "ocr",
        what: "ocr, a page of 32 lines",
        pipelines: &["ocr"],
        bodies: "ocr/page.png",
        content_type: "image/png",
        seconds: 60,
        ratio_min: 2.0,
        compared: texts,
        distance_max: 0.0,
        ..PHOTO
    },
    Scenario {
        job: "recommend",
        what: "recommend, 50 products of real Redis",
        pipelines: &["recommend"],
        bodies: "recommend",
        content_type: "application/json",
        clients: 300,
        ratio_min: 3.0,
        p99_ms_max: Some(100.0),
        compared: |answer| answer.get("items").cloned(),
        distance_max: 1e-4,
        ..PHOTO
    },
    Scenario {
        job: "embed",
        what: "embed, 8 texts of 5 to 200 tokens",
        pipelines: &["embeddings", "embed-python"],
        bodies: "embed",
        content_type: "application/json",
        ratio_min: 2.0,
        compared: |answer| answer.get("vectors").cloned(),
        distance_max: 1e-4,
        ..PHOTO
    },
];

fn prediction(answer: &Value) -> Option<Value> {
    Some(json!([answer.get("prediction")?, answer.get("probability")?]))
}

/// The texts of all lines, in order.
fn texts(answer: &Value) -> Option<Value> {
    let lines = answer.get("lines")?.as_array().filter(|lines| !lines.is_empty())?;
    lines.iter().map(|line| line.get("text").cloned()).collect()
}

impl Scenario {
    /// Check that FastAPI's answer to a request agrees with Gristmill's.
    ///
    /// # Errors
    /// They differ. The text shows the beginning of both.
    pub(super) fn agree(&self, ours: &Value, theirs: &Value) -> Result<()> {
        let compared = |answer: &Value| {
            let beginning = beginning(answer);
            (self.compared)(answer).with_context(|| format!("{}: {beginning}", self.job))
        };
        let (ours, theirs) = (compared(ours)?, compared(theirs)?);
        let far = distance(&ours, &theirs);
        ensure!(
            far <= self.distance_max,
            "FastAPI's {} is {far} away from Gristmill's {}",
            beginning(&theirs),
            beginning(&ours)
        );
        Ok(())
    }
}

fn beginning(answer: &Value) -> String {
    answer.to_string().chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_agree_in_what_the_job_is_about() {
        let of = |job: &str| SCENARIOS.iter().find(|scenario| scenario.job == job).unwrap();
        let photo = |class: &str, share: f64| json!({ "prediction": class, "probability": share });
        let agree = |job, ours, theirs| of(job).agree(&ours, &theirs).is_ok();
        assert!(agree("photo", photo("espresso", 0.71), photo("espresso", 0.70)));
        assert!(!agree("photo", photo("espresso", 0.71), photo("espresso", 0.6)));
        assert!(!agree("photo", photo("espresso", 0.71), photo("cup", 0.71)));
        assert!(!agree("photo", json!({ "detail": "no" }), json!({ "detail": "no" })));
        let page = |texts: &[&str]| {
            let lines = texts.iter().map(|text| json!({ "text": text, "score": 0.9 }));
            json!({ "lines": lines.collect::<Vec<_>>() })
        };
        assert!(agree("ocr", page(&["a", "b"]), page(&["a", "b"])));
        assert!(!agree("ocr", page(&["a", "b"]), page(&["b", "a"])));
        assert!(!agree("ocr", page(&[]), page(&[])));
        let ranking = |ids: [u32; 2]| {
            let items = ids.map(|id| json!({ "productId": id, "score": 0.5 }));
            json!({ "items": items })
        };
        assert!(agree("recommend", ranking([1, 20]), ranking([1, 20])));
        assert!(!agree("recommend", ranking([1, 20]), ranking([20, 1])));
        let vectors = |element: f64| json!({ "vectors": [[element, 1.0]] });
        assert!(agree("embed", vectors(0.25), vectors(0.250_001)));
        assert!(!agree("embed", vectors(0.25), vectors(0.26)));
    }
}
