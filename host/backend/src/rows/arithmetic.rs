//! Elementwise work on small tensors of sizes, as exporters write it for shapes.
//!
//! A result is followed only if all types that sizes are computed in can hold it exactly
//! ([`Exactness`]): 32 bits wrap around, and floating point rounds.

use super::dim::Dim;
use super::fact::{ELEMENTS_MAX, Element};

/// Whole numbers up to here are exact in all types that sizes are computed in.
const EXACT_MAX: i64 = 1 << 24;

/// The types that sizes are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exactness {
    /// 64 bits.
    Wide,
    /// Maybe 32 bits, or floating point: a size was cast to such a type.
    Narrow,
}

impl Exactness {
    /// Whether a dimension is small enough, if a batch has 65,536 rows and 1 GiB at most, and a
    /// request 64 MiB. Products of unknowns of several tensors can be larger than any tensor.
    pub(super) fn holds(self, dim: &Dim) -> bool {
        let most = match (self, dim.unknowns()) {
            (Self::Narrow, 0) => 1 << 8,
            (Self::Narrow, _) => 0,
            (Self::Wide, 0 | 1) => 1 << 24,
            (Self::Wide, 2) => 1 << 8,
            (Self::Wide, _) => 0,
        };
        dim.factor() <= most || dim.as_known().is_some_and(|size| size <= 1 << 24)
    }
}

/// The elements of `operator` on `inputs`, each of which has one element or `count`.
pub(super) fn fold(
    operator: &str,
    inputs: &[&[Element]],
    count: usize,
    exactness: Exactness,
) -> Option<Vec<Element>> {
    if count > ELEMENTS_MAX || inputs.iter().any(|input| input.len() != 1 && input.len() != count) {
        return None;
    }
    let element = |at: usize| {
        let pick = |input: &&[Element]| input.get(if input.len() == 1 { 0 } else { at }).cloned();
        let elements = inputs.iter().map(pick).collect::<Option<Vec<_>>>()?;
        let counted = elements.iter().any(Element::is_counted);
        let result = one(operator, &elements).filter(|result| is_held(result, exactness));
        Some(result.unwrap_or(Element::Unknown { counted }))
    };
    (0..count).map(element).collect()
}

/// None if the result is not known.
fn one(operator: &str, elements: &[Element]) -> Option<Element> {
    let plain: Vec<Element> = elements.iter().map(simplify).collect();
    match (operator, &plain[..]) {
        ("Floor" | "Ceil" | "Round", [value]) => is_known(value).then(|| value.clone()),
        ("Where", [condition, yes, no]) => match condition {
            Element::Int(0) => Some(no.clone()),
            Element::Int(_) => Some(yes.clone()),
            _ => (yes == no && is_known(yes)).then(|| yes.clone()),
        },
        ("Not", [Element::Int(value)]) => Some(Element::Int((*value == 0).into())),
        ("Neg", [Element::Int(value)]) => Some(Element::Int(value.checked_neg()?)),
        ("Abs", [Element::Int(value)]) => Some(Element::Int(value.checked_abs()?)),
        ("Abs", [Element::Size(dim)]) => Some(Element::Size(dim.clone())),
        ("Min" | "Max" | "Sum", [only]) => is_known(only).then(|| only.clone()),
        ("Min" | "Max" | "Sum", [first, rest @ ..]) => {
            rest.iter().try_fold(first.clone(), |all, each| pair(operator, &all, each))
        }
        (_, [one, other]) => pair(operator, one, other),
        _ => None,
    }
}

fn is_known(element: &Element) -> bool {
    matches!(element, Element::Int(_) | Element::Size(_))
}

/// Whether all types that it may be computed in hold it.
fn is_held(element: &Element, exactness: Exactness) -> bool {
    match element {
        Element::Int(value) => value.unsigned_abs() <= EXACT_MAX.unsigned_abs(),
        Element::Size(dim) => exactness.holds(dim),
        Element::Real(_) | Element::Unknown { .. } => true,
    }
}

/// The elements of a cast to whole numbers.
pub(super) fn whole(elements: &[Element]) -> Vec<Element> {
    let whole = |element: &Element| match simplify(element) {
        Element::Real(_) => Element::Unknown { counted: false },
        other => other,
    };
    elements.iter().map(whole).collect()
}

/// The elements of a cast to a type that may be narrow.
pub(super) fn narrowed(elements: &[Element]) -> Vec<Element> {
    let narrowed = |element: &Element| match element {
        held if is_held(held, Exactness::Narrow) => simplify(held),
        other => Element::Unknown { counted: other.is_counted() },
    };
    elements.iter().map(narrowed).collect()
}

/// Whole floating point numbers as whole numbers.
fn simplify(element: &Element) -> Element {
    match element {
        Element::Real(value) if value.fract() == 0.0 && value.abs() <= EXACT_MAX as f64 => {
            Element::Int(*value as i64)
        }
        other => other.clone(),
    }
}

fn pair(operator: &str, one: &Element, other: &Element) -> Option<Element> {
    match (one, other) {
        (Element::Int(one), Element::Int(other)) => numbers(operator, *one, *other),
        _ => sizes(operator, one, other),
    }
}

fn numbers(operator: &str, one: i64, other: i64) -> Option<Element> {
    let both = (one != 0, other != 0);
    Some(Element::Int(match operator {
        "Add" | "Sum" => one.checked_add(other)?,
        "Sub" => one.checked_sub(other)?,
        "Mul" => one.checked_mul(other)?,
        // Only if it is exact: whether these are whole numbers by type is not known.
        "Div" if one.checked_rem(other)? == 0 => one.checked_div(other)?,
        // Its two kinds agree here.
        "Mod" if one >= 0 && other > 0 => one % other,
        "Min" => one.min(other),
        "Max" => one.max(other),
        "Equal" => (one == other).into(),
        "Less" => (one < other).into(),
        "LessOrEqual" => (one <= other).into(),
        "Greater" => (one > other).into(),
        "GreaterOrEqual" => (one >= other).into(),
        "And" => (both.0 && both.1).into(),
        "Or" => (both.0 || both.1).into(),
        "Xor" => (both.0 != both.1).into(),
        _ => return None,
    }))
}

/// At least one is a dimension, which is zero or more.
fn sizes(operator: &str, one: &Element, other: &Element) -> Option<Element> {
    let truth = |value: bool| Some(Element::Int(value.into()));
    match (operator, one, other) {
        ("Add" | "Sum", _, Element::Int(0)) | ("Sub", _, Element::Int(0)) => {
            is_known(one).then(|| one.clone())
        }
        ("Add" | "Sum", Element::Int(0), _) => is_known(other).then(|| other.clone()),
        ("Mul", ..) => Some(Element::size(one.as_dim()?.times(&other.as_dim()?)?)),
        ("Div", ..) => Some(Element::size(one.as_dim()?.over(&other.as_dim()?)?)),
        ("Mod", Element::Size(_), Element::Int(divisor)) if *divisor > 0 => {
            one.as_dim()?.over(&Dim::known((*divisor).try_into().ok()?))?;
            Some(Element::Int(0))
        }
        ("Sub", Element::Size(one), Element::Size(other)) if one == other => Some(Element::Int(0)),
        ("Min" | "Max", Element::Size(one), Element::Size(other)) if one == other => {
            Some(Element::Size(one.clone()))
        }
        ("Max", Element::Size(dim), Element::Int(least))
        | ("Max", Element::Int(least), Element::Size(dim))
            if *least <= 0 =>
        {
            Some(Element::Size(dim.clone()))
        }
        ("Equal" | "LessOrEqual" | "GreaterOrEqual", Element::Size(one), Element::Size(other))
            if one == other =>
        {
            truth(true)
        }
        ("Less" | "Greater", Element::Size(one), Element::Size(other)) if one == other => {
            truth(false)
        }
        ("Equal" | "Less" | "LessOrEqual", Element::Size(_), Element::Int(value))
        | ("Equal" | "Greater" | "GreaterOrEqual", Element::Int(value), Element::Size(_))
            if *value < 0 =>
        {
            truth(false)
        }
        ("Greater" | "GreaterOrEqual", Element::Size(_), Element::Int(value))
        | ("Less" | "LessOrEqual", Element::Int(value), Element::Size(_))
            if *value < 0 =>
        {
            truth(true)
        }
        _ => None,
    }
}
