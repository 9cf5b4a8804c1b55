use gristmill_plugin::{Tensor, testing};

use super::*;

fn answer(state: &str, scores: &[f32]) -> Result<Response, Failure> {
    let scores = Tensor::from_slice(&[scores.len(), 1], scores)?;
    let outputs = testing::outputs([("output", scores)]);
    RankerPost::postprocess(&testing::context().build(), outputs, state.into())
}

#[test]
fn the_best_item_comes_first() {
    let response = answer(r#"["a","b","c"]"#, &[0.25, 0.75, 0.5]).unwrap();
    let expected =
        r#"{"items":[{"id":"b","score":0.75},{"id":"c","score":0.5},{"id":"a","score":0.25}]}"#;
    assert_eq!(String::from_utf8(response.body).unwrap(), expected);
    assert_eq!((response.status, response.content_type.as_str()), (200, "application/json"));
}

#[test]
fn scores_that_do_not_fit_the_ids_are_internal() {
    let failure = answer(r#"["a"]"#, &[0.25, 0.75]).unwrap_err();
    assert!(matches!(&failure, Failure::Internal(text) if text.contains("[2, 1]")), "{failure:?}");
    let failure = answer("x", &[0.25]).unwrap_err();
    assert!(
        matches!(&failure, Failure::Internal(text) if text.contains("ranker-pre")),
        "{failure:?}"
    );
}
