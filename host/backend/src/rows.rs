//! Reads from a model's graph whether the rows of a batch are independent: whether row i of each
//! output depends on row i of the inputs alone.
//!
//! It is a proof by rules: `flow` walks the graph in order and keeps a `fact` for each tensor: the
//! axis along which the rows lie, and its shape as products of the rows, numbers and unknowns
//! (`dim`). A rule for each operator (`operators`) says what becomes of them; small tensors of
//! sizes are computed (`arithmetic`), because exporters write reshapes so. The first node that no
//! rule can follow makes everything after it mixed, and is named in the [`Obstacle`]. What is
//! believed of sizes (`belief`) is compared with a run afterwards (`crate::beliefs`).
//!
//! Invariants: an operator, an attribute or a shape that is not known is never taken for harmless.
//! Any file is read in bounded time and memory, without panics. A proof supposes that the inputs
//! have the dimensions that the file gives, none of which is 0, that their first dimensions are
//! equal, and that dimensions of one name are.

mod arithmetic;
mod attributes;
mod belief;
mod call;
mod contents;
mod dependence;
mod dim;
mod fact;
mod flow;
mod layout;
mod obstacle;
mod operators;
mod scope;

use std::collections::{HashMap, HashSet};

use tract_onnx::pb::tensor_shape_proto::dimension::Value as Size;
use tract_onnx::pb::type_proto::Value as Type;
use tract_onnx::pb::{GraphProto, ModelProto, ValueInfoProto};

use belief::InputDim;
pub(crate) use belief::{Belief, Beliefs, Number};
use dependence::{Axis, Rows};
use dim::Dim;
use fact::{Fact, RANK_MAX};
use flow::Walk;
pub use obstacle::Obstacle;
use obstacle::start_of;

use crate::inspect::is_symbol;

/// Show that row i of each output depends on row i of the inputs alone, if all that is believed of
/// constants and sizes is true.
///
/// # Errors
/// The first obstacle. The rows may be independent all the same.
pub fn analyse(model: &ModelProto) -> Result<Beliefs, Obstacle> {
    let graph = model.graph.as_ref().ok_or_else(|| Obstacle::of_model("it has no graph"))?;
    let mut walk = Walk::new(model);
    let Inputs { facts, input_dims } = inputs(graph, &walk)?;
    for (output, fact) in walk.run(model, graph, facts)? {
        check(output, &fact)?;
    }
    let computed = walk.computed.iter();
    let beliefs = computed.map(|(name, fact)| Belief::of(name, fact, &input_dims, &walk.symbols));
    Ok(Beliefs(beliefs.collect()))
}

/// The inputs that a request gives: all but those that have a default.
struct Inputs<'a> {
    facts: Vec<(&'a str, Fact)>,
    /// The places of their unknown dimensions, by symbol.
    input_dims: Vec<InputDim>,
}

fn inputs<'a>(graph: &'a GraphProto, walk: &Walk) -> Result<Inputs<'a>, Obstacle> {
    let defaults: HashSet<&str> = graph.initializer.iter().map(|tensor| &tensor.name[..]).collect();
    let inputs = graph.input.iter().filter(|input| !defaults.contains(&input.name[..]));
    let mut symbols = HashMap::new();
    let mut facts = Vec::new();
    let mut rows_names = HashSet::new();
    let mut input_dims = Vec::new();
    for input in inputs {
        let name = &input.name[..];
        let refused = |why: &str| Obstacle::of_model(format!("input `{}` {why}", start_of(name)));
        let sizes = sizes(input).ok_or_else(|| refused("has no shape"))?;
        let Some((first, others)) = sizes.split_first().filter(|_| sizes.len() <= RANK_MAX) else {
            return Err(refused("has no rows, or too many dimensions"));
        };
        match first {
            Some(Size::DimValue(size)) if *size >= 0 => {
                return Err(refused("has a fixed first dimension"));
            }
            Some(Size::DimParam(first)) if is_symbol(first) => {
                rows_names.insert(first);
            }
            _ => {}
        }
        let mut shape = vec![Dim::rows()];
        let mut fresh = |dim: usize| {
            input_dims.push(InputDim { input: name.to_owned(), dim });
            walk.symbols.fresh()
        };
        for (at, size) in others.iter().enumerate() {
            shape.push(match size {
                Some(Size::DimValue(size)) if *size > 0 => Dim::known(size.unsigned_abs()),
                Some(Size::DimParam(param)) if is_symbol(param) => {
                    symbols.entry(param).or_insert_with(|| fresh(at + 1)).clone()
                }
                _ => fresh(at + 1),
            });
        }
        facts.push((name, Fact::along(Axis::first(0), shape)));
    }
    walk.symbols.end_inputs();
    if facts.is_empty() {
        return Err(Obstacle::of_model("it has no inputs"));
    }
    if rows_names.iter().any(|name| symbols.contains_key(name)) {
        return Err(Obstacle::of_model("the rows are in several dimensions of its inputs"));
    }
    Ok(Inputs { facts, input_dims })
}

fn sizes(input: &ValueInfoProto) -> Option<Vec<Option<&Size>>> {
    let Type::TensorType(tensor) = input.r#type.as_ref()?.value.as_ref()?;
    let dims = &tensor.shape.as_ref()?.dim;
    Some(dims.iter().map(|dim| dim.value.as_ref()).collect())
}

/// An output must have its rows, and nothing else, in its first dimension.
fn check(output: &str, fact: &Fact) -> Result<(), Obstacle> {
    let first = fact.shape.as_ref().and_then(|shape| shape.first());
    let why = match &fact.rows {
        Rows::Mixed(reason) => return Err(Obstacle::of_node(output, reason)),
        Rows::Along(axis) if axis.at == 0 && first == Some(&Dim::rows()) => return Ok(()),
        Rows::Along(axis) if axis.at == 0 => "a row of the inputs makes several rows of it",
        Rows::Along(_) => "its rows are not in its first dimension",
        Rows::Free => "it does not depend on the rows",
        Rows::Counted => "it depends on the number of rows",
        Rows::Placed(..) | Rows::Indices(_) => "it depends on the place of a row in the batch",
    };
    Err(Obstacle::of_output(output, why))
}

#[cfg(test)]
mod tests;
