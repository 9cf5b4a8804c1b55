//! Operators that keep the elements in their order and give them other dimensions.
//!
//! The rows stay where they are if as many elements are before a row's as there were, so they can
//! be joined with other dimensions and be parted from them again.

use super::super::call::{Call, Outputs, axes_of, axis_of};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        _ => return None,
    })
}

/// A dimension that a reshape asks for.
enum Wanted {
    Dim(Dim),
    /// The one that fits.
    Rest {
        counted: bool,
    },
}

fn reshape(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let allows_zero = call.int("allowzero", 0)? != 0;
    let wanted = call.input(1)?.list_elements().ok_or("its shape is computed from values")?;
    let keeps_elements = input.elements.is_some();
    let dims = input.dims();
    let total = input.shape.as_ref().and_then(Dim::product);
    let is_positive = |dim: &Dim| call.symbols.is_positive(dim);
    let wanted = wanted.iter().enumerate().map(|(at, element)| {
        Ok(match element {
            Element::Int(0) if !allows_zero => {
                let dim = dims.as_ref().map_err(Why::clone)?.get(at);
                Wanted::Dim(dim.ok_or("its shape has a zero too many")?.clone())
            }
            Element::Int(-1) => Wanted::Rest { counted: false },
            // Any size fits an empty tensor.
            Element::Unknown { .. } if !total.as_ref().is_some_and(is_positive) => {
                return Err("its shape is computed, and it may be empty".into());
            }
            Element::Unknown { counted } => Wanted::Rest { counted: *counted },
            // Runtimes differ in what an empty dimension means.
            Element::Int(0) => return Err("a size of its shape is 0".into()),
            Element::Size(dim) if !is_positive(dim) => {
                return Err("a size of its shape may be 0".into());
            }
            other => Wanted::Dim(other.as_dim().ok_or("its shape is not one")?),
        })
    });
    let wanted = wanted.collect::<Result<Vec<_>, Why>>()?;
    let is_inferred = |wanted: &Wanted| matches!(wanted, Wanted::Rest { .. });
    let known_dims = wanted.iter().filter_map(|wanted| match wanted {
        Wanted::Dim(dim) => Some(dim),
        Wanted::Rest { .. } => None,
    });
    let known_size = Dim::product(known_dims);
    let rest = match (&total, &known_size, wanted.iter().filter(|each| is_inferred(each)).count()) {
        (Some(total), Some(known_size), 1) => total.over(known_size),
        _ => None,
    };
    // The rows are in a dimension that is known, or in the rest.
    let has_rows = known_size.as_ref().is_none_or(Dim::has_rows);
    let rest_is_free = input.is_free() || has_rows;
    let mut shape = Vec::new();
    for wanted in &wanted {
        shape.push(match (wanted, &rest) {
            (Wanted::Dim(dim), _) => dim.clone(),
            (Wanted::Rest { .. }, Some(rest)) => rest.clone(),
            (Wanted::Rest { counted: false }, None) if rest_is_free => call.fresh(),
            _ => return Err("the rows are cut into pieces that are not known".into()),
        });
    }
    if keeps_elements && input.rows.axis().is_none() {
        let elements = input.elements.clone().unwrap_or_default();
        return Ok(vec![Ok(Fact::of(elements, shape))]);
    }
    Ok(vec![Ok(placed(input, shape)?)])
}

/// The elements of `input`, in their order, in another shape.
pub(super) fn placed(input: &Fact, shape: Vec<Dim>) -> Result<Fact, Why> {
    let Some(axis) = input.rows.axis() else { return unplaced(input, shape) };
    let at = shape.iter().position(Dim::has_rows);
    let outer = at.and_then(|at| {
        let parts = SplitShape::new(input.dims().ok()?, axis.at)?;
        let wanted = SplitShape::new(&shape, at)?;
        by_what_is_before(axis, &parts, &wanted).or_else(|| by_what_is_after(axis, &parts, &wanted))
    });
    match (at, outer) {
        (Some(at), Some(outer)) => {
            let rows = input.rows.on(Axis { at, outer });
            Ok(Fact { below: input.below.clone(), ..Fact::new(rows, Some(shape)) })
        }
        _ => Err("it mixes the rows with other dimensions".into()),
    }
}

/// The elements of a tensor that has no axis with rows in another shape.
fn unplaced(input: &Fact, shape: Vec<Dim>) -> Result<Fact, Why> {
    if let Rows::Indices(_) = input.rows {
        return Err("it moves the places of the rows".into());
    }
    Ok(Fact { below: input.below.clone(), ..Fact::new(input.rows.clone(), Some(shape)) })
}

/// A shape around the dimension with the rows. None before or after it if they are too large.
struct SplitShape<'a> {
    before: Option<Dim>,
    dim: &'a Dim,
    after: Option<Dim>,
}

impl<'a> SplitShape<'a> {
    fn new(dims: &'a [Dim], at: usize) -> Option<Self> {
        let (before, rest) = dims.split_at_checked(at)?;
        let (dim, after) = rest.split_first()?;
        Some(Self { before: Dim::product(before), dim, after: Dim::product(after) })
    }
}

/// What is left of the elements before a row: the outer part of the new axis.
fn by_what_is_before(axis: &Axis, parts: &SplitShape, wanted: &SplitShape) -> Option<Dim> {
    let before = parts.before.as_ref()?.times(&axis.outer)?;
    let outer = before.over(wanted.before.as_ref()?)?;
    wanted.dim.over(&outer.times(&Dim::rows())?)?;
    Some(outer)
}

/// As many elements are before a row if as many are in it, because the runtimes take only a shape
/// of as many elements.
fn by_what_is_after(axis: &Axis, parts: &SplitShape, wanted: &SplitShape) -> Option<Dim> {
    let inner = parts.dim.over(&axis.outer.times(&Dim::rows())?)?;
    let size = inner.times(parts.after.as_ref()?)?;
    let inner = size.over(wanted.after.as_ref()?)?;
    wanted.dim.over(&inner.times(&Dim::rows())?)
}

fn flatten(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let (dims, rank) = (input.dims()?, input.rank()?);
    let axis = call.int("axis", 1)?;
    let at = if usize::try_from(axis) == Ok(rank) { rank } else { axis_of(axis, rank)? };
    let (before, after) = dims.split_at(at);
    let join = |dims: &[Dim]| {
        let has_rows = dims.iter().any(Dim::has_rows);
        let product = Dim::product(dims).or_else(|| (!has_rows).then(|| call.fresh()));
        product.ok_or(Why::from("its dimensions are too many"))
    };
    Ok(vec![Ok(placed(input, vec![join(before)?, join(after)?])?)])
}

fn squeeze(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let axes = match call.numbers("axes", 1, 13)? {
        Some(axes) if !axes.is_empty() => axes_of(&axes, dims.len())?,
        // Then all that are 1 go.
        _ if dims.iter().all(|dim| dim.as_known().is_some()) => {
            (0..dims.len()).filter(|at| dims.get(*at).is_some_and(Dim::is_one)).collect()
        }
        _ => return Err("it removes dimensions that are 1 in some batches".into()),
    };
    let kept = dims.iter().enumerate().filter(|(at, _)| !axes.contains(at));
    let shape: Vec<Dim> = kept.map(|(_, dim)| dim.clone()).collect();
    let at = |at: usize| Some(at - axes.iter().filter(|axis| **axis < at).count());
    let is_removed = |at| axes.contains(&at);
    moved(input, shape, |each| if is_removed(each) { None } else { at(each) })
}

fn unsqueeze(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let axes = call.numbers("axes", 1, 13)?.ok_or("it has no axes")?;
    let axes = axes_of(&axes, input.rank()? + axes.len())?;
    let mut shape = input.dims()?.to_vec();
    let mut places: Vec<usize> = (0..shape.len()).collect();
    for axis in axes {
        shape.insert(axis, Dim::known(1));
        for place in &mut places {
            *place += usize::from(*place >= axis);
        }
    }
    moved(input, shape, |at| places.get(at).copied())
}

/// The elements of `input` in `shape`, where each axis is at the place that `place` says.
fn moved(input: &Fact, shape: Vec<Dim>, place: impl Fn(usize) -> Option<usize>) -> Outputs {
    let mut result = match input.rows.axis() {
        Some(axis) => {
            let at = place(axis.at).ok_or("it removes the dimension of the rows")?;
            let rows = input.rows.on(axis.moved(at));
            Fact { below: input.below.clone(), ..Fact::new(rows, Some(shape)) }
        }
        None => unplaced(input, shape)?,
    };
    result.elements = input.elements.clone();
    Ok(vec![Ok(result)])
}
