//! Dimensions as products.

/// A product of more unknowns is not followed.
const SYMBOLS_MAX: usize = 8;

/// A dimension: a number, times the rows of the batch or not, times unknowns that do not depend on
/// the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dim {
    factor: u64,
    has_rows: bool,
    /// Ascending; one that is there twice is squared.
    symbols: Vec<u32>,
}

impl Dim {
    pub(super) fn known(size: u64) -> Self {
        Self { factor: size, has_rows: false, symbols: Vec::new() }
    }

    pub(super) fn rows() -> Self {
        Self { has_rows: true, ..Self::known(1) }
    }

    pub(super) fn symbol(symbol: u32) -> Self {
        Self { symbols: vec![symbol], ..Self::known(1) }
    }

    pub(super) fn as_known(&self) -> Option<u64> {
        (!self.has_rows && self.symbols.is_empty()).then_some(self.factor)
    }

    pub(super) fn is_one(&self) -> bool {
        self.as_known() == Some(1)
    }

    pub(super) fn factor(&self) -> u64 {
        self.factor
    }

    pub(super) fn symbols(&self) -> &[u32] {
        &self.symbols
    }

    /// The number of unknowns in the product, without the rows.
    pub(super) fn unknowns(&self) -> usize {
        self.symbols.len()
    }

    /// Whether it is not 0, if those of the unknowns are not that are less than `from`.
    pub(super) fn is_positive(&self, from: u32) -> bool {
        self.factor > 0 && self.symbols.iter().all(|symbol| *symbol < from)
    }

    pub(super) fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// None if it is too large, or if the rows are in both.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let symbols = self.symbols.len() + other.symbols.len();
        if self.has_rows && other.has_rows || symbols > SYMBOLS_MAX {
            return None;
        }
        let factor = self.factor.checked_mul(other.factor)?;
        if factor == 0 {
            return Some(Self::known(0));
        }
        let mut symbols = [&self.symbols[..], &other.symbols[..]].concat();
        symbols.sort_unstable();
        Some(Self { factor, has_rows: self.has_rows || other.has_rows, symbols })
    }

    /// The dimension that, times `other`, is this one. None if it is not known.
    pub(super) fn over(&self, other: &Self) -> Option<Self> {
        if !self.factor.is_multiple_of(other.factor) || other.has_rows && !self.has_rows {
            return None;
        }
        let mut symbols = self.symbols.clone();
        for symbol in &other.symbols {
            let at = symbols.iter().position(|each| each == symbol)?;
            symbols.remove(at);
        }
        let has_rows = self.has_rows && !other.has_rows;
        Some(Self { factor: self.factor.checked_div(other.factor)?, has_rows, symbols })
    }

    /// The product of `dims`; 1 if there are none.
    pub(super) fn product<'a>(dims: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        dims.into_iter().try_fold(Self::known(1), |all, dim| all.times(dim))
    }
}
