//! Where the rows are in the result of operators that go over their inputs axis by axis.

use super::call::{Call, Symbols};
use super::dependence::{Axis, Rows};
use super::dim::Dim;
use super::fact::{Fact, Why};

/// A name of an index that an operator goes over.
pub(super) type Label = u32;

/// What one label of a tensor operation stands for.
struct Index {
    label: Label,
    dim: Dim,
}

/// The dimension of a result at which `one` meets `other`; a 1 is repeated.
fn merge(one: &Dim, other: &Dim, call: &Call) -> Result<Dim, Why> {
    if one == other || other.is_one() {
        return Ok(one.clone());
    }
    if one.is_one() {
        return Ok(other.clone());
    }
    if one.has_rows() || other.has_rows() {
        return Err("the rows meet a dimension of another size".into());
    }
    let fixed = |dim: &Dim| dim.as_known().filter(|size| *size > 1).map(Dim::known);
    Ok(fixed(one).or_else(|| fixed(other)).unwrap_or_else(|| call.fresh()))
}

/// The rows and the shape of what elementwise work on `facts` makes.
pub(super) fn broadcast(facts: &[&Fact], call: &Call) -> Result<(Rows, Vec<Dim>), Why> {
    let mut rank = 0;
    for fact in facts {
        rank = rank.max(fact.rank()?);
    }
    let (mut shape, mut rows) = (vec![Dim::known(1); rank], None);
    for fact in facts {
        let dims = fact.dims()?;
        let offset = rank - dims.len();
        if let Some(axis) = fact.axis()? {
            join(&mut rows, axis.moved(axis.at + offset))?;
        }
        for (merged, dim) in shape.iter_mut().skip(offset).zip(dims) {
            *merged = merge(merged, dim, call)?;
        }
    }
    Ok((rows.map_or(Rows::Free, Rows::Along), shape))
}

/// The axes of the rows must be the same one in all inputs.
fn join(rows: &mut Option<Axis>, axis: Axis) -> Result<(), Why> {
    match rows {
        Some(other) if *other != axis => Err("the rows meet other rows".into()),
        _ => {
            *rows = Some(axis);
            Ok(())
        }
    }
}

/// The rows and the shape of a sum of products: `terms` are inputs with a label for each axis;
/// indices that are not in `output` are summed over.
pub(super) fn contract(
    terms: &[(&Fact, Vec<Label>)],
    output: &[Label],
    call: &Call,
) -> Result<(Rows, Vec<Dim>), Why> {
    let mut indices: Vec<Index> = Vec::new();
    let mut rows: Option<(Label, Dim)> = None;
    for (fact, labels) in terms {
        let dims = fact.dims()?;
        if dims.len() != labels.len() {
            return Err("an input has another number of dimensions than expected".into());
        }
        if let Some(axis) = fact.axis()? {
            let label = *labels.get(axis.at).ok_or("the axis of the rows is not known")?;
            let rows_here = (label, axis.outer.clone());
            if rows.as_ref().is_some_and(|rows| *rows != rows_here) {
                return Err("the rows meet other rows".into());
            }
            if labels.iter().filter(|each| **each == label).count() != 1 {
                return Err("the rows are in two dimensions".into());
            }
            rows = Some(rows_here);
        }
        for (label, dim) in labels.iter().zip(dims) {
            match indices.iter_mut().find(|index| index.label == *label) {
                Some(index) => index.dim = merge(&index.dim, dim, call)?,
                None => indices.push(Index { label: *label, dim: dim.clone() }),
            }
        }
    }
    let mut shape = Vec::new();
    for label in output {
        let index = indices.iter().find(|index| index.label == *label);
        shape.push(index.ok_or("an index of its result is not known")?.dim.clone());
    }
    let Some((label, outer)) = rows else { return Ok((Rows::Free, shape)) };
    let mut places = output.iter().enumerate().filter(|(_, each)| **each == label);
    match (places.next(), places.next()) {
        (Some((at, _)), None) => Ok((Rows::Along(Axis { at, outer }), shape)),
        (None, _) => Err("it sums over the rows".into()),
        _ => Err("the rows are in two dimensions".into()),
    }
}

/// Err if the rows are at one of `axes`.
pub(super) fn not_at(fact: &Fact, axes: &[usize], why: &'static str) -> Result<(), Why> {
    match fact.axis()? {
        Some(axis) if axes.contains(&axis.at) => Err(why.into()),
        _ => Ok(()),
    }
}

/// Err if the rows are elsewhere than at `at`.
pub(super) fn only_at(fact: &Fact, at: usize, why: &'static str) -> Result<(), Why> {
    match fact.axis()? {
        Some(axis) if axis.at != at => Err(why.into()),
        _ => Ok(()),
    }
}

/// The fact that holds for both tensors.
pub(super) fn either(yes: &Fact, no: &Fact, symbols: &Symbols) -> Result<Fact, Why> {
    if yes == no {
        return Ok(yes.clone());
    }
    if let Some(fact) = [yes, no].into_iter().find(|fact| matches!(fact.rows, Rows::Mixed(_))) {
        return Ok(fact.clone());
    }
    if yes.rows != no.rows {
        return Err("its branches depend on the rows in different ways".into());
    }
    let join = |(yes, no): (&Dim, &Dim)| if yes == no { yes.clone() } else { symbols.fresh() };
    let shape = match (&yes.shape, &no.shape) {
        (Some(yes), Some(no)) if yes.len() == no.len() => {
            Some(yes.iter().zip(no).map(join).collect())
        }
        _ => None,
    };
    Ok(Fact::new(yes.rows.clone(), shape))
}
