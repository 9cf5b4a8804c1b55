use gristmill_plugin::testing;

use super::*;

fn preprocess(body: &[u8]) -> Result<Prepared, Failure> {
    let request = testing::request().body(body).build();
    Plugin::preprocess(&testing::context().build(), &request)
}

#[test]
fn rows_become_the_models_input() {
    let prepared = preprocess(include_bytes!("../requests/rows.json")).unwrap();
    let input = prepared.get(INPUT).unwrap();
    assert_eq!(input.dims(), [2, 4]);
    let view = input.view::<f32>().unwrap();
    assert_eq!(view.rows().nth(1).unwrap(), [5.0, 6.0, 7.0, 8.0]);
    assert_eq!(testing::take_log()[0].message, "rows read");
}

#[test]
fn any_other_body_is_refused() {
    for body in ["", "{}", "[]", "[[1], [2, 3]]", r#"[["x"]]"#] {
        let failure = preprocess(body.as_bytes()).unwrap_err();
        assert!(matches!(failure, Failure::InvalidInput(_)), "{body}: {failure:?}");
    }
}

#[test]
fn outputs_become_lists() {
    let output = Tensor::from_slice(&[2, 1], &[0.5_f32, 0.25]).unwrap();
    let outputs = testing::outputs([(OUTPUT, output)]);
    let response = Plugin::postprocess(&testing::context().build(), outputs, Vec::new()).unwrap();
    assert_eq!(response.body, br#"{"outputs":[[0.5],[0.25]]}"#);
}
