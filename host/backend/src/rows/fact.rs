//! What is known of a tensor of the graph: how it depends on the rows of the batch, its shape, and
//! its elements if these are few.

use std::borrow::Cow;

use super::dependence::{Axis, Rows};
use super::dim::Dim;

/// Elements of larger tensors are not looked at.
pub(super) const ELEMENTS_MAX: usize = 64;

/// Tensors of more dimensions are not followed.
pub(super) const RANK_MAX: usize = 16;

/// Why the rows cannot be followed through an operator.
pub(super) type Why = Cow<'static, str>;

/// An element of a small tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    /// A whole number, or a boolean.
    Int(i64),
    /// A number of a floating point type.
    Real(f64),
    /// A dimension, as a number of any type.
    Size(Dim),
    /// An unknown number, which may depend on the number of rows.
    Unknown { counted: bool },
}

/// What is known of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) rows: Rows,
    /// None if its rank is not known.
    pub(super) shape: Option<Vec<Dim>>,
    /// Its elements, if they are few.
    pub(super) elements: Option<Vec<Element>>,
    /// Its elements are whole numbers from 0 on, less than this.
    pub(super) below: Option<Dim>,
}

impl Element {
    pub(super) fn size(dim: Dim) -> Self {
        match dim.as_known().map(i64::try_from) {
            Some(Ok(size)) => Self::Int(size),
            Some(Err(_)) => Self::Unknown { counted: false },
            None => Self::Size(dim),
        }
    }

    pub(super) fn is_counted(&self) -> bool {
        match self {
            Self::Int(_) | Self::Real(_) => false,
            Self::Size(dim) => dim.has_rows(),
            Self::Unknown { counted } => *counted,
        }
    }

    /// The dimension that it is, if that is known.
    pub(super) fn as_dim(&self) -> Option<Dim> {
        match self {
            Self::Int(size) => u64::try_from(*size).ok().map(Dim::known),
            Self::Size(dim) => Some(dim.clone()),
            Self::Real(_) | Self::Unknown { .. } => None,
        }
    }
}

impl Fact {
    pub(super) fn new(rows: Rows, shape: Option<Vec<Dim>>) -> Self {
        Self { rows, shape, elements: None, below: None }
    }

    /// A tensor that is the same in every batch.
    pub(super) fn free(shape: Option<Vec<Dim>>) -> Self {
        Self::new(Rows::Free, shape)
    }

    /// A tensor that has the rows at `axis`.
    pub(super) fn along(axis: Axis, shape: Vec<Dim>) -> Self {
        Self::new(Rows::Along(axis), Some(shape))
    }

    /// A small tensor with these elements.
    pub(super) fn of(elements: Vec<Element>, shape: Vec<Dim>) -> Self {
        let counted = elements.iter().any(Element::is_counted);
        let rows = if counted { Rows::Counted } else { Rows::Free };
        if elements.len() > ELEMENTS_MAX {
            return Self::new(rows, Some(shape));
        }
        Self { elements: Some(elements), ..Self::new(rows, Some(shape)) }
    }

    /// A list of these elements.
    pub(super) fn list(elements: Vec<Element>) -> Self {
        let shape = vec![Dim::known(elements.len() as u64)];
        Self::of(elements, shape)
    }

    /// The same rows in a tensor of another shape.
    pub(super) fn reshaped(&self, shape: Vec<Dim>) -> Self {
        Self::new(self.rows.clone(), Some(shape))
    }

    pub(super) fn is_free(&self) -> bool {
        self.rows == Rows::Free
    }

    pub(super) fn is_counted(&self) -> bool {
        self.rows == Rows::Counted
    }

    pub(super) fn rank(&self) -> Result<usize, Why> {
        Ok(self.dims()?.len())
    }

    pub(super) fn dims(&self) -> Result<&[Dim], Why> {
        self.shape.as_deref().ok_or("the shape of an input is not known".into())
    }

    /// The axis that has the rows; none if the tensor is the same in every batch.
    pub(super) fn axis(&self) -> Result<Option<&Axis>, Why> {
        match &self.rows {
            Rows::Free => Ok(None),
            Rows::Along(axis) => Ok(Some(axis)),
            Rows::Counted | Rows::Placed(..) | Rows::Indices(_) => {
                Err("it computes with the number of rows".into())
            }
            Rows::Mixed(reason) => Err(reason.why.clone().into()),
        }
    }

    /// Its elements as whole numbers, if all are known.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        let int = |element: &Element| match element {
            Element::Int(value) => Some(*value),
            _ => None,
        };
        self.elements.as_ref()?.iter().map(int).collect()
    }

    /// The elements of a list or a scalar of known length, which may be unknown ones.
    pub(super) fn list_elements(&self) -> Option<Vec<Element>> {
        if self.elements.is_some() {
            return self.elements.clone();
        }
        if !self.is_free() && !self.is_counted() {
            return None;
        }
        let count = match &self.shape.as_ref()?[..] {
            [] => 1,
            [dim] => usize::try_from(dim.as_known()?).ok()?,
            _ => return None,
        };
        let unknown = Element::Unknown { counted: self.is_counted() };
        (count <= ELEMENTS_MAX).then(|| vec![unknown; count])
    }

    /// The fact itself if it says where all rows are, and only there.
    pub(super) fn checked(self) -> Result<Self, Why> {
        let Some(shape) = &self.shape else {
            return match &self.rows {
                Rows::Free | Rows::Counted | Rows::Mixed(_) => Ok(self),
                _ => Err("the shape of its result is not known".into()),
            };
        };
        if shape.len() > RANK_MAX {
            return Err("its result has too many dimensions".into());
        }
        let has_rows = |at: usize| shape.get(at).is_some_and(Dim::has_rows);
        let count = shape.iter().filter(|dim| dim.has_rows()).count();
        let is_clear = match &self.rows {
            Rows::Free => count == 0,
            Rows::Along(Axis { at, outer })
            | Rows::Placed(Axis { at, outer }, _)
            | Rows::Indices(Axis { at, outer }) => {
                let all = outer.times(&Dim::rows());
                let inner = all.and_then(|all| shape.get(*at)?.over(&all));
                count == 1 && has_rows(*at) && inner.is_some()
            }
            Rows::Counted | Rows::Mixed(_) => true,
        };
        if is_clear {
            Ok(self)
        } else {
            Err("the rows are in other dimensions than expected".into())
        }
    }
}
