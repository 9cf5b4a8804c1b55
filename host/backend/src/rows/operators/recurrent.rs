//! Recurrent networks. They go over time, so the rows are their batch.

use tract_onnx::pb::attribute_proto::AttributeType;

use super::super::call::{Call, Outputs};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "LSTM" | "GRU" | "RNN" => recurrent,
        _ => return None,
    })
}

fn recurrent(call: &Call) -> Outputs {
    call.ignore(&["activation_alpha", "activation_beta", "activations", "clip", "input_forget"]);
    call.ignore(&["linear_before_reset", "output_sequence"]);
    call.attributes.get("hidden_size", AttributeType::Int)?;
    let batch_first = call.int("layout", 0)? != 0;
    let input = call.input(0)?;
    let [first, second, _] = input.dims()? else {
        return Err("its input has not three dimensions".into());
    };
    let (time, batch) = if batch_first { (second, first) } else { (first, second) };
    let place = usize::from(!batch_first);
    let outer = match input.axis()? {
        Some(axis) if axis.at == place => &axis.outer,
        Some(_) => return Err("the rows are its time, or its features".into()),
        None => return Err("its input does not depend on the rows, but others do".into()),
    };
    // Weights, and the peepholes.
    for at in [1, 2, 3, 7] {
        if !call.optional(at).is_none_or(Fact::is_free) {
            return Err("its weights depend on the rows".into());
        }
    }
    let is_batch = |fact: &Fact, place: usize| -> Result<bool, Why> {
        let axis = Axis { at: place, outer: outer.clone() };
        Ok(fact.axis()? == Some(&axis) && fact.dims()?.get(place) == Some(batch))
    };
    for (at, place) in [(4, 0), (5, place), (6, place)] {
        if let Some(fact) = call.optional(at)
            && !is_batch(fact, place)?
        {
            return Err("its lengths or first states are not those of the rows".into());
        }
    }
    let directions = match call.text("direction", "forward")? {
        "bidirectional" => Dim::known(2),
        _ => Dim::known(1),
    };
    let hidden = call.input(2)?.dims()?.get(2).ok_or("its weights have too few dimensions")?;
    let (time, batch) = (time.clone(), batch.clone());
    let (sequence, state) = if batch_first {
        let sequence = vec![batch.clone(), time, directions.clone(), hidden.clone()];
        (sequence, vec![batch, directions, hidden.clone()])
    } else {
        let sequence = vec![time, directions.clone(), batch.clone(), hidden.clone()];
        (sequence, vec![directions, batch, hidden.clone()])
    };
    let at = |at| Rows::Along(Axis { at, outer: outer.clone() });
    let sequence = Fact::new(at(if batch_first { 0 } else { 2 }), Some(sequence));
    let state = Fact::new(at(place), Some(state));
    Ok(vec![Ok(sequence), Ok(state.clone()), Ok(state)])
}
