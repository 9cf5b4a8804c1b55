//! An operator as a rule sees it: its inputs' facts and its attributes.

use std::cell::Cell;
use std::rc::Rc;

use tract_onnx::pb::attribute_proto::AttributeType;

use super::arithmetic::Exactness;
use super::attributes::Attributes;
use super::dim::Dim;
use super::fact::{Fact, RANK_MAX, Why};

/// Names for unknown dimensions, and what is known of all of them.
#[derive(Default)]
pub(super) struct Symbols {
    next: Cell<u32>,
    /// Those before it are dimensions of inputs, which are not 0: a request with an empty
    /// dimension shares no batch.
    inputs: Cell<u32>,
    /// Whether a size was cast to a type that may not hold it.
    is_narrow: Cell<bool>,
}

/// What a rule makes of a call: a fact for each output, or why it has none.
pub(super) type Outputs = Result<Vec<Result<Fact, Why>>, Why>;

/// A node with its inputs.
pub(super) struct Call<'a> {
    pub(super) operator: &'a str,
    /// Version of the operators of its domain.
    pub(super) opset: i64,
    /// None are optional ones that are not there.
    pub(super) inputs: Vec<Option<Rc<Fact>>>,
    /// The names of its outputs; empty for those that nothing uses.
    pub(super) outputs: &'a [String],
    pub(super) attributes: Attributes<'a>,
    pub(super) symbols: &'a Symbols,
}

impl Symbols {
    pub(super) fn fresh(&self) -> Dim {
        let symbol = self.next.get();
        self.next.set(symbol.saturating_add(1));
        Dim::symbol(symbol)
    }

    /// All names so far are dimensions of inputs.
    pub(super) fn end_inputs(&self) {
        self.inputs.set(self.next.get());
    }

    /// Whether its unknowns are dimensions of inputs.
    pub(super) fn are_inputs(&self, dim: &Dim) -> bool {
        dim.symbols().iter().all(|symbol| *symbol < self.inputs.get())
    }

    /// Whether a dimension is never 0.
    pub(super) fn is_positive(&self, dim: &Dim) -> bool {
        dim.is_positive(self.inputs.get())
    }

    /// From here on sizes may have a narrow type.
    pub(super) fn narrow(&self) {
        self.is_narrow.set(true);
    }

    pub(super) fn exactness(&self) -> Exactness {
        if self.is_narrow.get() { Exactness::Narrow } else { Exactness::Wide }
    }
}

impl<'a> Call<'a> {
    pub(super) fn fresh(&self) -> Dim {
        self.symbols.fresh()
    }

    pub(super) fn input(&self, at: usize) -> Result<&Fact, Why> {
        self.optional(at).ok_or("an input is missing".into())
    }

    pub(super) fn optional(&self, at: usize) -> Option<&Fact> {
        self.inputs.get(at)?.as_deref()
    }

    pub(super) fn present(&self) -> Vec<&Fact> {
        self.inputs.iter().flatten().map(Rc::as_ref).collect()
    }

    /// Whether something uses this output.
    pub(super) fn has_output(&self, at: usize) -> bool {
        self.outputs.get(at).is_some_and(|name| !name.is_empty())
    }

    /// The inputs from `first` on must be the same in every batch.
    pub(super) fn free_from(&self, first: usize) -> Result<(), Why> {
        let mut parameters = self.inputs.iter().skip(first).flatten();
        if parameters.all(|fact| fact.is_free()) {
            return Ok(());
        }
        Err("a parameter of the operator depends on the rows".into())
    }

    /// Attributes that do not matter here.
    pub(super) fn ignore(&self, names: &[&str]) {
        self.attributes.ignore(names);
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, Why> {
        let attribute = self.attributes.get(name, AttributeType::Int)?;
        Ok(attribute.map_or(default, |attribute| attribute.i))
    }

    pub(super) fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, Why> {
        let attribute = self.attributes.get(name, AttributeType::Ints)?;
        Ok(attribute.map(|attribute| &attribute.ints[..]))
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'a str, Why> {
        match self.attributes.get(name, AttributeType::String)? {
            None => Ok(default),
            Some(attribute) => std::str::from_utf8(&attribute.s)
                .map_err(|_| format!("its attribute `{name}` is not a text").into()),
        }
    }

    /// The attribute `name` of operators before opset `since`. Newer ones have an input in its
    /// place. Runtimes differ in what they read of a node that has the wrong one.
    pub(super) fn older(&self, name: &str, since: i64) -> Result<Option<&'a [i64]>, Why> {
        let attribute = self.ints(name)?;
        if attribute.is_some() && self.opset >= since {
            return Err(format!("its attribute `{name}` is one of an older version").into());
        }
        Ok(attribute)
    }

    /// Whole numbers that operators before opset `since` have as an attribute, and newer ones as an
    /// input.
    pub(super) fn numbers(
        &self,
        name: &str,
        input: usize,
        since: i64,
    ) -> Result<Option<Vec<i64>>, Why> {
        if let Some(numbers) = self.older(name, since)? {
            return Ok(Some(numbers.to_vec()));
        }
        match self.optional(input) {
            Some(_) if self.opset < since => {
                Err(format!("its input `{name}` is one of a newer version").into())
            }
            None => Ok(None),
            Some(fact) => match fact.ints() {
                Some(numbers) => Ok(Some(numbers)),
                None => Err(format!("its `{name}` are computed").into()),
            },
        }
    }
}

/// The axis that a number names, which counts from the end if it is negative.
pub(super) fn axis_of(number: i64, rank: usize) -> Result<usize, Why> {
    let from_end = || usize::try_from(number.checked_add(i64::try_from(rank).ok()?)?).ok();
    let axis = usize::try_from(number).ok().or_else(from_end);
    axis.filter(|axis| *axis < rank).ok_or("its axis is out of range".into())
}

/// The axes that `numbers` name, ascending.
pub(super) fn axes_of(numbers: &[i64], rank: usize) -> Result<Vec<usize>, Why> {
    if numbers.len() > 2 * RANK_MAX {
        return Err("it has too many axes".into());
    }
    let mut axes = Vec::new();
    for number in numbers {
        let axis = axis_of(*number, rank)?;
        if axes.contains(&axis) {
            return Err("it names an axis twice".into());
        }
        axes.push(axis);
    }
    axes.sort_unstable();
    Ok(axes)
}
