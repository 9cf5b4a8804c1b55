//! Constants, and operators that read shapes or make tensors of a shape.

use tract_onnx::pb::attribute_proto::AttributeType;

use super::super::call::{Call, Outputs};
use super::super::contents;
use super::super::dependence::{Axis, RowPositions, Rows};
use super::super::dim::Dim;
use super::super::fact::{ELEMENTS_MAX, Element, Fact};

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Constant" => constant,
        "Shape" => shape,
        "Size" => size,
        "ConstantOfShape" => filled,
        "Range" => range,
        "EyeLike" => eye,
        _ => return None,
    })
}

fn constant(call: &Call) -> Outputs {
    if let Some(value) = call.attributes.get("value", AttributeType::Tensor)? {
        let tensor = value.t.as_ref().ok_or("it has no value")?;
        return Ok(vec![Ok(contents::tensor(tensor))]);
    }
    let int = call.attributes.get("value_int", AttributeType::Int)?;
    let ints = call.ints("value_ints")?.filter(|ints| ints.len() <= ELEMENTS_MAX);
    let fact = match (int, ints) {
        (Some(int), _) => Fact::of(vec![Element::Int(int.i)], Vec::new()),
        (_, Some(ints)) => Fact::list(ints.iter().copied().map(Element::Int).collect()),
        _ => {
            call.ignore(&["sparse_value"]);
            let list = |count: usize| Fact::free(Some(vec![Dim::known(count as u64)]));
            let one = |_| Fact::free(Some(Vec::new()));
            let get = |name, kind| call.attributes.get(name, kind);
            let real = get("value_float", AttributeType::Float)?.map(one);
            let reals = get("value_floats", AttributeType::Floats)?;
            let text = get("value_string", AttributeType::String)?.map(one);
            let texts = get("value_strings", AttributeType::Strings)?;
            let lists = reals.map(|reals| list(reals.floats.len()));
            let lists = lists.or_else(|| texts.map(|texts| list(texts.strings.len())));
            real.or(text).or(lists).unwrap_or(Fact::free(None))
        }
    };
    Ok(vec![Ok(fact)])
}

fn shape(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let (start, end) = (call.int("start", 0)?, call.int("end", i64::MAX)?);
    let Some(dims) = &input.shape else {
        return Ok(vec![Ok(Fact::new(input.rows.clone(), None))]);
    };
    let rank = dims.len() as i64;
    let place = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank);
    let (start, end) = (place(start) as usize, place(end) as usize);
    let dims = dims.get(start..end.max(start)).unwrap_or_default();
    Ok(vec![Ok(Fact::list(dims.iter().cloned().map(Element::size).collect()))])
}

fn size(call: &Call) -> Outputs {
    let dims = call.input(0)?.dims()?;
    let counted = dims.iter().any(Dim::has_rows);
    let size = Dim::product(dims).map_or(Element::Unknown { counted }, Element::size);
    Ok(vec![Ok(Fact::of(vec![size], Vec::new()))])
}

fn filled(call: &Call) -> Outputs {
    let value = call.attributes.get("value", AttributeType::Tensor)?;
    let wanted = call.input(0)?;
    let wanted = wanted.list_elements().ok_or("its shape is computed from values")?;
    let mut shape = Vec::new();
    for element in &wanted {
        shape.push(match element {
            Element::Unknown { counted: false } => call.fresh(),
            other => other.as_dim().ok_or("its shape is not known")?,
        });
    }
    // Its rows are all the same.
    if let Some(at) = shape.iter().position(Dim::has_rows) {
        return Ok(vec![Ok(Fact::along(Axis::first(at), shape))]);
    }
    let element = match value.and_then(|value| value.t.as_ref()).map(contents::tensor) {
        None => Some(Element::Real(0.0)),
        Some(fact) => fact.elements.and_then(|elements| elements.first().cloned()),
    };
    let count = Dim::product(&shape).and_then(|count| usize::try_from(count.as_known()?).ok());
    let count = count.filter(|count| *count <= ELEMENTS_MAX);
    Ok(vec![Ok(match (element, count) {
        (Some(element), Some(count)) => Fact::of(vec![element; count], shape),
        _ => Fact::free(Some(shape)),
    })])
}

fn range(call: &Call) -> Outputs {
    call.ignore(&["stash_type"]);
    let (start, limit, delta) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let all = [start, limit, delta];
    if all.iter().any(|fact| matches!(fact.rows, Rows::Along(_))) {
        return Err("its length depends on values".into());
    }
    let number = |fact: &Fact| fact.ints().and_then(|ints| ints.first().copied());
    let numbers = (number(start), number(limit), number(delta));
    if let (Some(start), Some(limit), Some(delta @ 1..)) = numbers {
        let count = i128::from(limit) - i128::from(start);
        if count <= ELEMENTS_MAX as i128 {
            let elements = (start..limit).step_by(usize::try_from(delta).unwrap_or(1));
            return Ok(vec![Ok(Fact::list(elements.map(Element::Int).collect()))]);
        }
    }
    let is_free = all.iter().all(|fact| fact.is_free());
    let limit = limit.elements.as_deref().and_then(|elements| elements.first()?.as_dim());
    let limit = limit.filter(|_| matches!(numbers, (Some(0), _, Some(1))));
    let rows = match &limit {
        _ if is_free => Rows::Free,
        Some(limit) if *limit == Dim::rows() => {
            Rows::Placed(Axis::first(0), RowPositions::of_rows())
        }
        _ => Rows::Counted,
    };
    let size = limit.clone().or_else(|| is_free.then(|| call.fresh()));
    let below = limit.filter(|_| is_free);
    Ok(vec![Ok(Fact { below, ..Fact::new(rows, size.map(|size| vec![size])) })])
}

fn eye(call: &Call) -> Outputs {
    call.ignore(&["dtype", "k"]);
    let input = call.input(0)?;
    if !input.is_free() {
        return Err("its diagonal goes through the rows".into());
    }
    Ok(vec![Ok(Fact::free(input.shape.clone()))])
}
