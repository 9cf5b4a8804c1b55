use gristmill_core::Dtype;

use super::*;

fn tensor(name: &str, dtype: Dtype, dims: &[i64]) -> TensorInfo {
    let dims = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    TensorInfo { name: name.into(), dtype, dims }
}

fn model(inputs: Vec<TensorInfo>, outputs: Vec<TensorInfo>) -> ModelInfo {
    ModelInfo {
        backend: "test",
        inputs,
        outputs,
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    }
}

fn serving() -> ModelInfo {
    let x = tensor("x", Dtype::Float32, &[-1, 3]);
    let text = tensor("text", Dtype::String, &[-1, -1]);
    let y = tensor("y", Dtype::Float32, &[-1, 10]);
    model(vec![x, text], vec![y])
}

#[test]
fn what_takes_as_much_and_gives_the_same_fits() {
    assert_eq!(misfits(&serving(), &serving()), [""; 0]);
    let mut wider = serving();
    wider.inputs.reverse();
    wider.inputs[1].dims[1] = None;
    wider.outputs[0].dims[1] = None;
    wider.outputs.push(tensor("more", Dtype::Int64, &[-1]));
    assert_eq!(misfits(&serving(), &wider), [""; 0]);
}

#[test]
fn what_does_not_fit_is_named_every_time() {
    let new = model(
        vec![
            tensor("x", Dtype::Float32, &[-1, 4]),
            tensor("text", Dtype::Int64, &[-1, -1]),
            tensor("mask", Dtype::Bool, &[-1]),
        ],
        vec![tensor("z", Dtype::Float32, &[-1, 10])],
    );
    let expected = [
        "input \"x\" has shape [-1, 4], it had [-1, 3]",
        "input \"text\" is INT64, it was BYTES",
        "it wants another input, \"mask\"",
        "it has no output \"y\"",
    ];
    assert_eq!(misfits(&serving(), &new), expected);
    let fixed = model(
        vec![tensor("x", Dtype::Float32, &[1, 3])],
        vec![tensor("y", Dtype::Float32, &[-1, 9])],
    );
    let expected = [
        "input \"x\" has shape [1, 3], it had [-1, 3]",
        "it has no input \"text\"",
        "output \"y\" has shape [-1, 9], it had [-1, 10]",
    ];
    assert_eq!(misfits(&serving(), &fixed), expected);
}
