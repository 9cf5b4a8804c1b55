//! Arrays that are made of numbers alone.

use gristmill_core::{Dtype, Tensor};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, elements, fill, value};
use crate::call::Call;
use crate::math::Element;
use crate::promote::{
    Number, Value, cast, check_integer, is_float, is_integer, name_of, repeat, with_integer,
    with_type,
};

/// `full(number, shape, dtype)`.
pub(crate) fn full(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let number = call.number(0)?.ok_or_else(|| value("the number is missing"))?;
    let dtype = call.dtype(2)?.unwrap_or_else(|| number.dtype());
    number.full(dtype, &call.shape(1)?, call.room)
}

/// `arange(start, stop, step, dtype)`.
pub(crate) fn arange(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let number = |at, default| Ok::<_, Stop>(call.number(at)?.unwrap_or(Number::Int(default)));
    let (start, stop, step) = (number(0, 0)?, number(1, 0)?, number(2, 1)?);
    let asked = call.dtype(3)?;
    let whole = asked.is_none_or(|dtype| !is_float(dtype));
    if let (Some(start), Some(stop), Some(step), true) =
        (start.whole(), stop.whole(), step.whole(), whole)
    {
        if step == 0 {
            return Err(value("the step may not be 0"));
        }
        let span = if step > 0 { stop - start } else { start - stop };
        let count = if span > 0 { (span - 1) / step.abs() + 1 } else { 0 };
        let ints = numbers(count as f64, Dtype::Int64, call.room, |at| {
            (start + at as i128 * step) as i64
        })?;
        return cast(&ints, asked.unwrap_or(Dtype::Int64), call.room);
    }
    let (start, stop, step) = (start.float(), stop.float(), step.float());
    // NumPy takes the difference of the first two.
    let apart = (start + step) - start;
    let count = ((stop - start) / step).ceil();
    let floats = numbers(count, Dtype::Float64, call.room, |at| start + at as f64 * apart)?;
    cast(&floats, asked.unwrap_or(Dtype::Float64), call.room)
}

/// `linspace(start, stop, count, with_end, dtype)`.
pub(crate) fn linspace(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (start, stop) = (call.float(0, 0.0)?, call.float(1, 0.0)?);
    let count = call.count(2, "the number of samples may not be negative")?;
    let dtype = call.dtype(4)?.unwrap_or(Dtype::Float64);
    let gaps = if call.flag(3) { count.saturating_sub(1) } else { count };
    let step = (stop - start) / gaps.max(1) as f64;
    let last = if call.flag(3) && count > 1 { Some(count - 1) } else { None };
    let floats = numbers(count as f64, Dtype::Float64, call.room, |at| {
        let float = if Some(at) == last { stop } else { at as f64 * step + start };
        if is_integer(dtype) { float.floor() } else { float }
    })?;
    cast(&floats, dtype, call.room)
}

fn numbers<T: bytemuck::Pod>(
    count: f64,
    dtype: Dtype,
    room: &mut dyn Room,
    number: impl Fn(usize) -> T,
) -> Result<Tensor, Stop> {
    if !count.is_finite() {
        return Err(value("the number of elements is not finite"));
    }
    let count = count.max(0.0) as usize;
    fill(room, dtype, &[count], |out: &mut [T], room| {
        for (part, from) in out.chunks_mut(ELEMENTS_PER_PART).zip((0..).step_by(ELEMENTS_PER_PART))
        {
            part.iter_mut().enumerate().for_each(|(at, out)| *out = number(from + at));
            room.go_on()?;
        }
        Ok(())
    })
}

/// `eye(rows, columns, diagonal, dtype)`.
pub(crate) fn eye(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let side = |at| call.int(at).map(|side| side.and_then(|side| usize::try_from(side).ok()));
    let rows = side(0)?.ok_or_else(|| value("the number of rows may not be negative"))?;
    let columns = side(1)?.unwrap_or(rows);
    let diagonal = call.int(2)?.unwrap_or(0);
    let dtype = call.dtype(3)?.unwrap_or(Dtype::Float64);
    with_type!(dtype, T => {
        fill(call.room, dtype, &[rows, columns], |out: &mut [T], room| {
            repeat(out, T::ZERO, room)?;
            for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                let one = usize::try_from((row as i64).saturating_add(diagonal)).ok();
                if let Some(one) = one.and_then(|at| out.get_mut(at)) {
                    *one = T::ONE;
                }
                if row.is_multiple_of(1024) {
                    room.go_on()?;
                }
            }
            Ok(())
        })
    })
}

/// `one_hot(indices, count, dtype)`: 1 at each index along a new last axis, 0 elsewhere.
pub(crate) fn one_hot(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let indices = call.array(0)?;
    check_integer(indices.dtype())?;
    let indices = cast(&indices, Dtype::Int64, call.room)?;
    let count = call.count(0, "the number of classes may not be negative")?;
    let dtype = call.dtype(1)?.unwrap_or(Dtype::Float32);
    let places = elements::<i64>(&indices)?;
    let is_class = |place: &&i64| usize::try_from(**place).is_ok_and(|place| place < count);
    if let Some(wrong) = places.iter().find(|place| !is_class(place)) {
        return Err(value(format!("class {wrong} is not one of {count}")));
    }
    let mut shape = indices.shape().to_vec();
    shape.push(count);
    with_type!(dtype, T => fill(call.room, dtype, &shape, |out: &mut [T], room| {
        repeat(out, T::ZERO, room)?;
        for (at, (out, place)) in out.chunks_exact_mut(count).zip(places).enumerate() {
            out[*place as usize] = T::ONE;
            if at.is_multiple_of(1024) {
                room.go_on()?;
            }
        }
        Ok(())
    }))
}

/// `astype(array, dtype)`.
pub(crate) fn astype(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let dtype = call.dtype(0)?.ok_or_else(|| value("the dtype is missing"))?;
    match call.operand(0)? {
        Value::Number(number) if is_integer(dtype) => number.array(dtype, call.room),
        operand => operand.array(call.room).and_then(|array| cast(&array, dtype, call.room)),
    }
}

/// `literal(dtype, shape, numbers)`: the numbers of a short list.
pub(crate) fn literal(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let dtype = call.dtype(0)?.ok_or_else(|| value("the dtype is missing"))?;
    let shape = call.shape(1)?;
    let numbers = call.params.get(2).and_then(|numbers| numbers.list());
    let numbers = numbers.ok_or_else(|| value("the numbers are missing"))?;
    let count = numbers.len();
    let is_count = shape.iter().try_fold(1_usize, |all, dim| all.checked_mul(*dim)) == Some(count);
    if !is_count {
        return Err(value(format!("{count} numbers do not have shape {shape:?}")));
    }
    let read = |at: usize| {
        numbers[at].number().ok_or_else(|| value(format!("element {at} is not a number")))
    };
    if !is_integer(dtype) {
        let floats = fill(call.room, Dtype::Float64, &shape, |out: &mut [f64], _| {
            for (at, out) in out.iter_mut().enumerate() {
                *out = read(at)?.float();
            }
            Ok(())
        })?;
        return cast(&floats, dtype, call.room);
    }
    with_integer!(dtype, T => fill(call.room, dtype, &shape, |out: &mut [T], _| {
        for (at, out) in out.iter_mut().enumerate() {
            let int = read(at)?.int();
            *out = T::try_from(int)
                .map_err(|_| value(format!("{int} is out of bounds for {}", name_of(dtype))))?;
        }
        Ok(())
    }))
}
