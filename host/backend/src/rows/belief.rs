//! What the walk believes of the tensors of a graph, in terms that a run can be compared with.

use super::call::Symbols;
use super::dim::Dim;
use super::fact::{Element, Fact};

/// What is believed of all tensors that the nodes of the graph compute.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Beliefs(pub(crate) Vec<Belief>);

/// What is believed of a tensor.
#[derive(Debug, PartialEq)]
pub(crate) struct Belief {
    pub(crate) tensor: String,
    /// Its dimensions; none if its rank is not known, or for those that are not.
    pub(crate) shape: Option<Vec<Option<Number>>>,
    /// Its elements, if they are few; none for those that are not known.
    pub(crate) elements: Option<Vec<Option<Number>>>,
}

/// A whole number.
#[derive(Debug, PartialEq)]
pub(crate) enum Number {
    Fixed(i64),
    /// A product.
    Size {
        factor: u64,
        has_rows: bool,
        /// Dimensions of inputs.
        dims: Vec<InputDim>,
    },
}

/// A dimension of an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InputDim {
    pub(crate) input: String,
    pub(crate) dim: usize,
}

impl Belief {
    /// The places have the names of the symbols for dimensions of inputs.
    pub(super) fn of(
        tensor: &str,
        fact: &Fact,
        input_dims: &[InputDim],
        symbols: &Symbols,
    ) -> Self {
        let size = |dim: &Dim| Number::of_dim(dim, input_dims, symbols);
        let number = |element: &Element| match element {
            Element::Int(value) => Some(Number::Fixed(*value)),
            Element::Size(dim) => size(dim),
            Element::Real(_) | Element::Unknown { .. } => None,
        };
        Self {
            tensor: tensor.to_owned(),
            shape: fact.shape.as_ref().map(|shape| shape.iter().map(size).collect()),
            elements: fact.elements.as_ref().map(|all| all.iter().map(number).collect()),
        }
    }
}

impl Number {
    fn of_dim(dim: &Dim, input_dims: &[InputDim], symbols: &Symbols) -> Option<Self> {
        if !symbols.are_inputs(dim) {
            return None;
        }
        let dims = dim.symbols().iter().map(|symbol| input_dims.get(*symbol as usize).cloned());
        let dims = dims.collect::<Option<_>>()?;
        Some(Self::Size { factor: dim.factor(), has_rows: dim.has_rows(), dims })
    }
}
