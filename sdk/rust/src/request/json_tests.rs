use serde_json::{Value, json};

use crate::{Dtype, Failure, Response, Tensor, testing};

fn read(value: Value, keys: &[&str], dtype: Dtype) -> Result<Tensor, Failure> {
    testing::request().json(&json!({ "x": value })).build().json_rows("/x", keys, dtype)
}

fn floats(value: Value, keys: &[&str]) -> (Vec<usize>, Vec<f32>) {
    let tensor = read(value, keys, Dtype::Float32).unwrap();
    (tensor.dims(), tensor.view::<f32>().unwrap().as_slice().to_vec())
}

#[test]
fn lists_are_dimensions_and_objects_are_rows() {
    assert_eq!(
        floats(json!([[1, 2.5], [-300, 4]]), &[]),
        (vec![2, 2], vec![1.0, 2.5, -300.0, 4.0])
    );
    assert_eq!(floats(json!(7), &[]), (vec![], vec![7.0]));
    assert_eq!(floats(json!([[], []]), &[]), (vec![2, 0], vec![]));
    let items = json!([{ "id": "p", "b": [2, 3], "a": 1 }, { "a": 4, "b": [5, 6], "id": "q" }]);
    let rows = (vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(floats(items.clone(), &["a", "b"]), rows);
    assert_eq!(read(items, &["id"], Dtype::String).unwrap().strings().unwrap(), ["p", "q"]);
    let ids = read(json!([i64::MIN]), &[], Dtype::Int64).unwrap();
    assert_eq!(ids.view::<i64>().unwrap().as_slice(), [i64::MIN]);
}

#[test]
fn a_fault_says_where_it_is_and_what_is_there() {
    for (value, keys, dtype, fault) in [
        (json!([[1, 2], [3, "4"]]), &[][..], Dtype::Float32, "/x/1/1 is a text, not a number"),
        (
            json!([[1], [3, 4]]),
            &[],
            Dtype::Float32,
            "/x/1 has 2 values, not 1 as the lists before it",
        ),
        (
            json!([[1], 3]),
            &[],
            Dtype::Float32,
            "/x/1 is a number, not a list as the values before it",
        ),
        (json!([1, [2]]), &[], Dtype::Float32, "/x/1 is a list, not a number"),
        (json!([1, null]), &[], Dtype::Float32, "/x/1 is null, not a number"),
        (json!([1]), &[], Dtype::Bool, "/x/0 is a number, not true or false"),
        (json!([256]), &[], Dtype::Uint8, "/x/0 is out of UINT8's range"),
        (json!([1.5]), &[], Dtype::Int32, "/x/0 is 1.5, not an integer"),
        (json!([1e39]), &[], Dtype::Float32, "/x/0 is out of FP32's range"),
        (json!([{ "a": 1 }, {}]), &["a"], Dtype::Float32, "/x/1/a is missing"),
        (json!([[1]]), &["a"], Dtype::Float32, "/x/0 is a list, not an object"),
    ] {
        let fault = Failure::invalid_input(format!("invalid JSON: {fault}"));
        assert_eq!(read(value, keys, dtype).unwrap_err(), fault);
    }
    let twice = read(json!([]), &["a", "a"], Dtype::Int8).unwrap_err();
    assert_eq!(twice, Failure::internal("the key \"a\" is given twice"));
}

#[test]
fn values_and_bytes_are_read_at_a_pointer() {
    let body = json!({ "a/b": [0.5], "image": "data:;base64,TWFu", "n": 1 });
    let request = testing::request().json(&body).build();
    assert_eq!(request.json_at::<f32>("/a~1b/0").unwrap(), Some(0.5));
    assert_eq!(request.json_at::<f32>("/none").unwrap(), None);
    assert!(matches!(request.json_at::<String>("/n"), Err(Failure::InvalidInput(_))));
    assert!(matches!(request.json_at::<f32>("n"), Err(Failure::Internal(_))));
    assert_eq!(request.json_blob("/image").unwrap().bytes(), b"Man");
    let fault = Failure::from(request.json_blob("/n").unwrap_err());
    let text = "invalid JSON: /n is a number, not a text in base64";
    assert_eq!(fault, Failure::invalid_input(text));
}

#[test]
fn a_file_of_a_form_is_found_by_its_name() {
    let request = testing::request().part("photo", "data").build();
    assert_eq!(request.file("photo").unwrap().body.bytes(), b"data");
    let fault = request.file("image").unwrap_err();
    assert_eq!(fault, Failure::invalid_input("the form has no part \"image\", but \"photo\""));
}

#[test]
fn tensors_and_blobs_stand_in_an_answer() {
    #[derive(serde::Serialize)]
    struct Answer {
        scores: Tensor,
        names: Vec<Tensor>,
        image: crate::Blob,
    }
    let scores = Tensor::from_slice(&[2, 2], &[0.1_f32, -2.0, 1e-7, 3e38]).unwrap();
    let names = vec![Tensor::from_strings(&[2], &["a\"", "\u{fc}"]).unwrap()];
    let image = crate::Blob::from_bytes(b"Man!");
    let body = Response::json(&Answer { scores, names, image }).unwrap().body;
    let text = "{\"scores\":[[0.1,-2.0],[1e-7,3e+38]],\"names\":[[\"a\\\"\",\"\u{fc}\"]],\
                \"image\":\"TWFuIQ==\"}";
    assert_eq!(String::from_utf8(body).unwrap(), text);
    let nan = Tensor::from_slice(&[1, 2], &[1.0, f32::NAN]).unwrap();
    let Err(Failure::Internal(fault)) = Response::json(&nan) else { panic!("NaN is no JSON") };
    assert!(fault.contains("shape [1, 2] has NaN at [0, 1]"), "{fault}");
}
