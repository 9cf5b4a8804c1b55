//! Single requests over one connection, and what the server says about each in `Server-Timing` and
//! `Gristmill-Receipt`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use gristmill_client::http::{HeaderName, HeaderValue, Request, StatusCode};
use gristmill_client::{Answer, Connection, block_on};

use crate::bench::requests::{NotAllowed, RequestSpec};

/// What the server says about one request, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// The time of its stages. A handler's call has half of its time before its runs.
    pub(super) pre_us: f64,
    pub(super) post_us: f64,
    /// The time of its batch, in which it was alone.
    pub(super) model_us: f64,
    pub(super) rows: usize,
}

/// How often to ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) least: usize,
    pub(super) most: usize,
}

/// The first answers do not count.
pub(super) const NOT_COUNTED: usize = 5;

/// Ask again and again, for this time.
pub(super) fn ask(asked: &RequestSpec, time: Duration, count: Count) -> Result<Vec<Told>> {
    let Count { least, most } = count;
    block_on::<_, anyhow::Error>(async {
        let mut connection = Connection::open(&asked.url.authority).await?;
        let request = request(asked)?;
        let mut answers = Vec::new();
        let begin = Instant::now();
        for number in 0.. {
            let answer = connection.send(request.clone()).await?;
            if number >= NOT_COUNTED {
                answers.push(Told::of(&answer)?);
            }
            if answers.len() >= most || answers.len() >= least && begin.elapsed() >= time {
                break;
            }
        }
        Ok(answers)
    })
}

fn request(asked: &RequestSpec) -> Result<Request<bytes::Bytes>> {
    let mut request = Request::builder().method(&*asked.method).uri(&asked.url.path);
    for header in &asked.headers {
        let (name, value) = header.split_once(':').context("a header has no colon")?;
        let name: HeaderName = name.trim().parse()?;
        request = request.header(name, HeaderValue::from_str(value.trim())?);
    }
    Ok(request.header("gristmill-receipt", "true").body(asked.body.clone().into())?)
}

impl Told {
    fn of(answer: &Answer) -> Result<Self> {
        if !answer.status.is_success() {
            let refusal = format!("the server answers {}: {}", answer.status, answer.beginning());
            return Err(match answer.status {
                StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => NotAllowed(refusal).into(),
                _ => anyhow!(refusal),
            });
        }
        let (timing, receipt) =
            (answer.header("server-timing"), answer.header("gristmill-receipt"));
        if receipt.is_empty() {
            bail!("the answer has no Gristmill-Receipt: is the server Gristmill, and up to date?");
        }
        let stage = |name: &str| {
            let text = timing
                .split(", ")
                .find_map(|stage| stage.strip_prefix(name)?.strip_prefix(";dur="));
            text.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() * 1e3
        };
        let charge = |name: &str| {
            let text =
                receipt.split(", ").find_map(|charge| charge.strip_prefix(name)?.strip_prefix('='));
            text.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default()
        };
        let (rows, model_us) = (charge("rows"), charge("model-us"));
        // It is not said when a handler's runs began: they may as well begin in the middle.
        let half = stage("handle") / 2.0;
        let (pre_us, post_us) = (stage("pre") + half, stage("post") + half);
        Ok(Self { pre_us, post_us, model_us, rows: rows as usize })
    }
}

#[cfg(test)]
mod tests {
    use gristmill_client::Answer;
    use gristmill_client::http::{HeaderMap, StatusCode};

    use super::Told;

    #[test]
    fn headers_say_what_a_request_took() {
        let mut headers = HeaderMap::new();
        let timing =
            "auth;dur=0.010, pre;dur=0.123, queue;dur=0.002, infer;dur=0.030, post;dur=0.040";
        headers.insert("server-timing", timing.parse().unwrap());
        let mut answer = Answer { status: StatusCode::OK, headers, body: "".into() };
        let error = Told::of(&answer).unwrap_err().to_string();
        assert!(error.contains("no Gristmill-Receipt"), "{error}");
        let receipt = "rows=3, batch-rows=3, plugin-cpu-us=127, model-us=33, queue-us=5";
        answer.headers.insert("gristmill-receipt", receipt.parse().unwrap());
        let answer_costs = Told::of(&answer).unwrap();
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
        assert!(
            near(answer_costs.pre_us, 123.0) && near(answer_costs.post_us, 40.0),
            "{answer_costs:?}"
        );
        assert_eq!((answer_costs.model_us, answer_costs.rows), (33.0, 3));
        let of_handler = "auth;dur=0.010, queue;dur=0.002, infer;dur=0.030, handle;dur=0.080";
        answer.headers.insert("server-timing", of_handler.parse().unwrap());
        let answer_costs = Told::of(&answer).unwrap();
        assert!(near(answer_costs.pre_us, 40.0) && near(answer_costs.post_us, 40.0));
        answer.status = StatusCode::NOT_FOUND;
        let error = Told::of(&answer).unwrap_err().to_string();
        assert!(error.contains("the server answers 404"), "{error}");
    }
}
