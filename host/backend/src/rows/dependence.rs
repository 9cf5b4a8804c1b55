//! How a tensor depends on the rows of the batch.

use std::sync::Arc;

use super::dim::Dim;
use super::obstacle::Reason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// It is the same in every batch.
    Free,
    /// Each row depends on the same row of the inputs alone.
    Along(Axis),
    /// Each row has whole numbers that say where the row is, in a dimension with rows.
    Placed(Axis, RowPositions),
    /// Each row has indices, which are the last dimension of the tensor: the first of each is the
    /// number of the row, and the others depend on the row alone.
    Indices(Axis),
    /// It depends on the number of rows, but not on their values.
    Counted,
    /// It depends on the rows in some other way.
    Mixed(Arc<Reason>),
}

/// The axis of a tensor that has the rows. Its dimension is `outer` times the rows times the rest:
/// index (o, r, i) belongs to row r.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) at: usize,
    pub(super) outer: Dim,
}

/// The numbers of row r: r times `stride`, plus from 0 to less than `below`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowPositions {
    pub(super) stride: Dim,
    pub(super) below: Dim,
}

impl Rows {
    /// The axis, if it can be moved like any other dimension.
    pub(super) fn axis(&self) -> Option<&Axis> {
        match self {
            Self::Along(axis) | Self::Placed(axis, _) => Some(axis),
            _ => None,
        }
    }

    /// The same with the rows on another axis.
    pub(super) fn on(&self, axis: Axis) -> Self {
        match self {
            Self::Placed(_, positions) => Self::Placed(axis, positions.clone()),
            _ => Self::Along(axis),
        }
    }
}

impl Axis {
    /// An axis without an outer part.
    pub(super) fn first(at: usize) -> Self {
        Self { at, outer: Dim::known(1) }
    }

    /// The same rows at another place.
    pub(super) fn moved(&self, at: usize) -> Self {
        Self { at, outer: self.outer.clone() }
    }
}

impl RowPositions {
    /// The numbers of the rows.
    pub(super) fn of_rows() -> Self {
        Self { stride: Dim::known(1), below: Dim::known(1) }
    }

    /// Whether the places are within the rows' parts of a dimension.
    pub(super) fn are_in(&self, axis: &Axis, dim: &Dim) -> bool {
        let inner = axis.outer.is_one().then(|| dim.over(&Dim::rows())).flatten();
        let numbers = self.below.as_known().zip(self.stride.as_known());
        let is_within = self.below.is_one()
            || self.below == self.stride
            || numbers.is_some_and(|(below, stride)| below <= stride);
        is_within && inner.as_ref() == Some(&self.stride)
    }
}
