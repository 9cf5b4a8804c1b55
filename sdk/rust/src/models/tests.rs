use std::cell::Cell;
use std::rc::Rc;

use super::{Run, infer, infer_all};
use crate::{
    Context, Dtype, Failure, HandleError, Handler, InferError, Init, Outputs, Request, Response,
    Tensor, testing,
};

/// Answers with twice the sum of the body's numbers, which the model `doubler` doubles.
struct Sum;

impl Init for Sum {
    fn init() -> Result<(), String> {
        Ok(())
    }
}

impl Handler for Sum {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let input = request.json_tensor("", &[], Dtype::Float32)?;
        let outputs = infer("doubler", &[("input", &input)])?;
        let sum: f32 = outputs.view::<f32>("output", &[None])?.as_slice().iter().sum();
        if sum < 0.0 {
            return Err(Failure::unprocessable("the sum is negative").into());
        }
        Ok(Response::json(&sum)?)
    }
}

crate::export_handler!(Sum, init);

fn handle(body: &str) -> Result<Response, HandleError> {
    Sum::handle(&testing::context().build(), &testing::request().body(body).build())
}

/// A model that doubles its input.
fn double(inputs: &[(&str, &Tensor)]) -> Result<Outputs, InferError> {
    let [("input", input)] = inputs else {
        return Err(InferError::InvalidInput(format!("{} inputs", inputs.len())));
    };
    let doubled: Vec<f32> =
        input.view::<f32>().unwrap().as_slice().iter().map(|value| value * 2.0).collect();
    let output = Tensor::from_slice(&input.dims(), &doubled).unwrap();
    Ok(testing::outputs([("output", output)]))
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn values(outputs: &Outputs) -> Vec<f32> {
    outputs.view::<f32>("output", &[None]).unwrap().as_slice().to_vec()
}

#[test]
fn a_handler_runs_a_model() {
    let _doubler = testing::model("doubler", double);
    assert_eq!(handle("[1, 2]").unwrap().body, b"6.0");
}

#[test]
fn errors_reach_the_host_through_question_marks() {
    let text = "this test has no model \"doubler\": register one with \
        testing::model(\"doubler\", ..)";
    let not_granted = InferError::NotGranted(text.into());
    assert_eq!(handle("[1]").unwrap_err(), HandleError::Infer(not_granted));

    let busy = testing::model("doubler", |_| Err(InferError::Overloaded("busy".into())));
    let error = handle("[1]").unwrap_err();
    assert_eq!(error, HandleError::Infer(InferError::Overloaded("busy".into())));
    drop(busy);

    let _doubler = testing::model("doubler", double);
    let refused = handle("[-1]").unwrap_err();
    let failure = Failure::unprocessable("the sum is negative");
    assert_eq!(refused, HandleError::Failure(failure));
    let unread = handle("[1").unwrap_err();
    assert!(matches!(unread, HandleError::Failure(Failure::InvalidInput(_))), "{unread:?}");
}

#[test]
fn runs_give_their_outcomes_in_order() {
    let _doubler = testing::model("doubler", double);
    let (one, two) = (floats(&[1.0]), floats(&[2.0, 3.0]));
    let runs = [
        Run::new("doubler").input("input", &one),
        Run::new("tripler").input("input", &one),
        Run::new("doubler").input("input", &two),
        Run::new("doubler").input("input", &two).input("other", &one),
    ];
    let outcomes = infer_all(&runs);
    assert_eq!(outcomes.len(), 4);
    assert_eq!(values(outcomes[0].as_ref().unwrap()), [2.0]);
    assert!(matches!(outcomes[1], Err(InferError::NotGranted(_))));
    assert_eq!(values(outcomes[2].as_ref().unwrap()), [4.0, 6.0]);
    let refused = outcomes[3].as_ref().unwrap_err();
    assert_eq!(
        (refused, refused.text()),
        (&InferError::InvalidInput("2 inputs".into()), "2 inputs")
    );
    assert!(infer_all(&[]).is_empty());
}

#[test]
fn the_model_registered_last_counts_until_it_is_dropped() {
    let one = floats(&[1.0]);
    let calls = Rc::new(Cell::new(0));
    let seen = Rc::clone(&calls);
    let doubler = testing::model("doubler", double);
    let counting = testing::model("doubler", move |inputs| {
        seen.set(seen.get() + 1);
        double(inputs)
    });
    infer("doubler", &[("input", &one)]).unwrap();
    drop(counting);
    infer("doubler", &[("input", &one)]).unwrap();
    assert_eq!(calls.get(), 1);
    drop(doubler);
    assert!(matches!(infer("doubler", &[("input", &one)]), Err(InferError::NotGranted(_))));
}

#[test]
fn a_model_may_run_another_one() {
    let _doubler = testing::model("doubler", double);
    let _quadrupler = testing::model("quadrupler", |inputs| {
        let doubled = infer("doubler", inputs)?;
        infer("doubler", &[("input", doubled.get("output").unwrap())])
    });
    let outputs = infer("quadrupler", &[("input", &floats(&[1.5]))]).unwrap();
    assert_eq!(values(&outputs), [6.0]);
}
