use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use gristmill_core::ErrorCode;
use http_body_util::{Full, StreamBody};
use hyper::body::{Body, Frame};

use super::{Bounds, parsed, read};

fn bounds(bytes: usize, seconds: u64) -> Bounds {
    Bounds { bytes, before: 0, limit: "the limit", timeout: Duration::from_secs(seconds) }
}

/// A body of `chunks` of a byte each, one every `every`.
fn slow(chunks: usize, every: Duration) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
    let chunks = stream::iter(0..chunks).then(move |_| async move {
        tokio::time::sleep(every).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")))
    });
    StreamBody::new(Box::pin(chunks))
}

#[track_caller]
fn refused(outcome: Result<Bytes, super::Problem>, code: ErrorCode, named: &str) {
    let problem = outcome.unwrap_err();
    assert!(problem.code == code && problem.detail.contains(named), "{problem:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_read_as_long_as_it_comes() {
    let body = slow(10, Duration::from_secs(29));
    assert_eq!(read(body, bounds(10, 900)).await.unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_or_takes_too_long_is_given_up() {
    let (code, stalls) = (ErrorCode::RequestTimeout, Duration::from_secs(31));
    let begun = tokio::time::Instant::now();
    refused(read(slow(2, stalls), bounds(10, 900)).await, code, "for 30 s, after 0 bytes");
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
    let trickles = slow(1000, Duration::from_secs(10));
    refused(read(trickles, bounds(2000, 95)).await, code, "within 95 s: only 9 bytes");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let code = ErrorCode::BodyTooLarge;
    refused(read(Full::from("12345"), bounds(4, 9)).await, code, "over the limit, 4 bytes");
    refused(read(slow(5, Duration::ZERO), bounds(4, 9)).await, code, "over the limit, 4 bytes");
    assert_eq!(read(Full::from("1234"), bounds(4, 9)).await.unwrap(), "1234");
}

#[test]
fn a_body_that_is_not_a_json_object_is_refused() {
    for (text, code, expected) in [
        ("", ErrorCode::InvalidRequest, "the body is empty: a JSON object is needed"),
        (
            "{\"a\":",
            ErrorCode::InvalidRequest,
            "the body is not JSON: it ends too early at line 1, column 5",
        ),
        (
            "{\n'a': 1}",
            ErrorCode::InvalidRequest,
            "the body is not JSON: it has an error at line 2, column 1",
        ),
        (
            "{\"a\": NaN}",
            ErrorCode::InvalidRequest,
            "the body is not JSON: it has NaN at line 1, column 7: send a number in its place",
        ),
        (
            "\u{feff}{}",
            ErrorCode::InvalidRequest,
            "the body is not JSON: it begins with a byte order mark: send UTF-8 without one",
        ),
        ("[1]", ErrorCode::Unprocessable, "the body is a list: a JSON object is needed"),
        ("5", ErrorCode::Unprocessable, "the body is a number: a JSON object is needed"),
    ] {
        let problem = parsed(text.as_bytes()).unwrap_err();
        assert_eq!((problem.code, problem.detail.as_str()), (code, expected), "{text}");
    }
    assert_eq!(parsed(b"{\"a\": 1}").unwrap().len(), 1);
}
