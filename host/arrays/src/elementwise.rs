//! Operations on each element by itself: arithmetic, comparisons, logic, functions, `where`.

use bytemuck::Pod;
use gristmill_core::{Dtype, Tensor};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, broadcast, elements, fill, value, wrong_type};
use crate::call::Call;
use crate::math::{Element, round_even, sigmoid};
use crate::promote::{
    Number, Value, cast, check_computed, common_of, float_of, is_float, is_integer, with_float,
    with_integer, with_type,
};
use crate::runs::Runs;

/// The operations on pairs of elements, as `add(left, right)`. None for any other name.
pub(crate) fn binary(op: &str, call: &mut Call<'_>) -> Option<Result<Tensor, Stop>> {
    let run = match op {
        "add" | "subtract" | "multiply" | "minimum" | "maximum" | "floor_divide" | "remainder"
        | "power" => arithmetic,
        "divide" | "arctan2" | "hypot" => of_floats,
        "equal" | "not_equal" | "less" | "less_equal" | "greater" | "greater_equal" => compare,
        "logical_and" | "logical_or" | "logical_xor" => logical,
        "bitwise_and" | "bitwise_or" | "bitwise_xor" | "left_shift" | "right_shift" => bitwise,
        _ => return None,
    };
    Some(run(op, call))
}

/// Both operands in one dtype, and `T` of it.
struct Pair {
    dtype: Dtype,
    left: Tensor,
    right: Tensor,
}

impl Pair {
    fn of(call: &mut Call<'_>, dtype: impl Fn(Dtype) -> Dtype) -> Result<Self, Stop> {
        let (left, right) = (call.operand(0)?, call.operand(1)?);
        let dtype = dtype(common_of(&[left, right])?);
        let (left, right) = (left.in_dtype(dtype, call.room)?, right.in_dtype(dtype, call.room)?);
        Ok(Self { dtype, left, right })
    }

    /// The result of `f` on each pair of elements.
    fn zip<A: Pod, O: Pod>(
        &self,
        dtype: Dtype,
        room: &mut dyn Room,
        f: impl Fn(A, A) -> O,
    ) -> Result<Tensor, Stop> {
        let Self { left, right, .. } = self;
        let shape = broadcast(&[left.shape(), right.shape()])?;
        let (a, b) = (elements::<A>(left)?, elements::<A>(right)?);
        let runs = Runs::new(&shape, [left.shape(), right.shape()]);
        fill(room, dtype, &shape, |out: &mut [O], room| {
            let mut rest = out;
            runs.each(room, |[i, j], steps, len| {
                let (out, after) = std::mem::take(&mut rest).split_at_mut(len);
                rest = after;
                match steps {
                    [1, 1] => {
                        let pairs = a[i..i + len].iter().zip(&b[j..j + len]);
                        out.iter_mut().zip(pairs).for_each(|(o, (a, b))| *o = f(*a, *b));
                    }
                    [1, _] => {
                        let b = b[j];
                        out.iter_mut().zip(&a[i..i + len]).for_each(|(o, a)| *o = f(*a, b));
                    }
                    [_, 1] => {
                        let a = a[i];
                        out.iter_mut().zip(&b[j..j + len]).for_each(|(o, b)| *o = f(a, *b));
                    }
                    _ => out.fill(f(a[i], b[j])),
                }
            })
        })
    }
}

fn arithmetic(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    // As in NumPy, adding flags is "or", and multiplying them is "and".
    let keeps_flags = matches!(op, "add" | "multiply" | "minimum" | "maximum");
    let pair = Pair::of(call, |dtype| match dtype {
        Dtype::Bool if !keeps_flags => Dtype::Int8,
        other => other,
    })?;
    if op == "subtract" && [0, 1].iter().all(|at| is_flag(call, *at)) {
        return Err(wrong_type("booleans cannot be subtracted: use logical_xor"));
    }
    let dtype = pair.dtype;
    if op == "power" && !is_float(dtype) && has_negative(&pair.right)? {
        return Err(value("integers to negative integer powers are not allowed: cast to float64"));
    }
    let room = &mut *call.room;
    if dtype == Dtype::Bool {
        return match op {
            "add" | "maximum" => pair.zip(dtype, room, |a: u8, b| a | b),
            _ => pair.zip(dtype, room, |a: u8, b| a & b),
        };
    }
    with_type!(dtype, T => match op {
        "add" => pair.zip(dtype, room, |a: T, b| a.add(b)),
        "subtract" => pair.zip(dtype, room, |a: T, b| a.subtract(b)),
        "multiply" => pair.zip(dtype, room, |a: T, b| a.multiply(b)),
        "minimum" => pair.zip(dtype, room, |a: T, b| a.smaller(b)),
        "maximum" => pair.zip(dtype, room, |a: T, b| a.larger(b)),
        "floor_divide" => pair.zip(dtype, room, |a: T, b| a.floor_divide(b)),
        "remainder" => pair.zip(dtype, room, |a: T, b| a.remainder(b)),
        _ => pair.zip(dtype, room, |a: T, b| a.power(b)),
    })
}

fn is_flag(call: &Call<'_>, at: usize) -> bool {
    call.operand(at).is_ok_and(|value| value.dtype() == Dtype::Bool)
}

fn has_negative(array: &Tensor) -> Result<bool, Stop> {
    with_integer!(array.dtype(), T => {
        Ok(elements::<T>(array)?.iter().any(|it| it.before(T::ZERO)))
    })
}

fn of_floats(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let pair = Pair::of(call, float_of)?;
    let (dtype, room) = (pair.dtype, &mut *call.room);
    with_float!(dtype, T => match op {
        "divide" => pair.zip(dtype, room, |a: T, b| a / b),
        "arctan2" => pair.zip(dtype, room, |a: T, b| a.atan2(b)),
        _ => pair.zip(dtype, room, |a: T, b| a.hypot(b)),
    })
}

/// An integer of the plugin's language that the array's dtype has no room for: all elements are on
/// the same side of it.
fn beyond(call: &Call<'_>) -> Result<Option<(Tensor, bool)>, Stop> {
    let (array, number, is_right) = match (call.operand(0)?, call.operand(1)?) {
        (Value::Array(array), Value::Number(Number::Int(int))) => (array, *int, true),
        (Value::Number(Number::Int(int)), Value::Array(array)) => (array, *int, false),
        _ => return Ok(None),
    };
    if !is_integer(array.dtype()) {
        return Ok(None);
    }
    let fits = with_integer!(array.dtype(), T => Ok::<_, Stop>(T::try_from(number).is_ok()))?;
    Ok((!fits).then(|| (array.clone(), (number > 0) == is_right)))
}

fn compare(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    if let Some((array, is_less)) = beyond(call)? {
        let answer = match op {
            "equal" => false,
            "not_equal" => true,
            "less" | "less_equal" => is_less,
            _ => !is_less,
        };
        return Number::Bool(answer).full(Dtype::Bool, array.shape(), call.room);
    }
    let pair = Pair::of(call, |dtype| dtype)?;
    let (bool, room) = (Dtype::Bool, &mut *call.room);
    with_type!(pair.dtype, T => match op {
        "equal" => pair.zip(bool, room, |a: T, b| u8::from(a == b)),
        "not_equal" => pair.zip(bool, room, |a: T, b| u8::from(a != b)),
        "less" => pair.zip(bool, room, |a: T, b| u8::from(a < b)),
        "less_equal" => pair.zip(bool, room, |a: T, b| u8::from(a <= b)),
        "greater" => pair.zip(bool, room, |a: T, b| u8::from(a > b)),
        _ => pair.zip(bool, room, |a: T, b| u8::from(a >= b)),
    })
}

fn logical(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let mut flags = |at| {
        let array = call.array(at)?;
        cast(&array, Dtype::Bool, call.room)
    };
    let pair = Pair { dtype: Dtype::Bool, left: flags(0)?, right: flags(1)? };
    bits(&format!("bitwise{}", &op["logical".len()..]), &pair, call.room)
}

fn bitwise(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let pair = Pair::of(call, |dtype| dtype)?;
    bits(op, &pair, call.room)
}

fn bits(op: &str, pair: &Pair, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let dtype = pair.dtype;
    let stored = if dtype == Dtype::Bool { Dtype::Uint8 } else { dtype };
    with_integer!(stored, T => match op {
        "bitwise_and" => pair.zip(dtype, room, |a: T, b| a & b),
        "bitwise_or" => pair.zip(dtype, room, |a: T, b| a | b),
        "bitwise_xor" => pair.zip(dtype, room, |a: T, b| a ^ b),
        _ if dtype == Dtype::Bool => Err(wrong_type("booleans cannot be shifted")),
        "left_shift" => pair.zip(dtype, room, |a: T, b| {
            u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or_default()
        }),
        _ => pair.zip(dtype, room, |a: T, b| {
            let most = T::BITS - 1;
            // A negative number stays one.
            match u32::try_from(b) {
                Ok(b) if b <= most => a >> b,
                _ if a.before(T::ZERO) => T::ZERO.subtract(T::ONE),
                _ => T::ZERO,
            }
        }),
    })
}

/// The result of `f` on each element.
fn map<A: Pod, O: Pod>(
    array: &Tensor,
    dtype: Dtype,
    room: &mut dyn Room,
    f: impl Fn(A) -> O,
) -> Result<Tensor, Stop> {
    let source = elements::<A>(array)?;
    fill(room, dtype, array.shape(), |out: &mut [O], room| {
        for (out, part) in out.chunks_mut(ELEMENTS_PER_PART).zip(source.chunks(ELEMENTS_PER_PART)) {
            out.iter_mut().zip(part).for_each(|(o, a)| *o = f(*a));
            room.go_on()?;
        }
        Ok(())
    })
}

/// The operations on single elements, as `exp(array)`. None for any other name.
pub(crate) fn unary(op: &str, call: &mut Call<'_>) -> Option<Result<Tensor, Stop>> {
    let run = match op {
        "negative" | "absolute" | "sign" | "square" => plain,
        "floor" | "ceil" | "trunc" | "rint" => rounded,
        "isnan" | "isinf" | "isfinite" => asked,
        "logical_not" | "invert" => inverted,
        "exp" | "exp2" | "expm1" | "log" | "log2" | "log10" | "log1p" | "sqrt" | "sin" | "cos"
        | "tan" | "arcsin" | "arccos" | "arctan" | "sinh" | "cosh" | "tanh" | "sigmoid"
        | "reciprocal" => function,
        _ => return None,
    };
    Some(call.array(0).and_then(|array| run(op, &array, call.room)))
}

fn plain(op: &str, array: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let dtype = array.dtype();
    if dtype == Dtype::Bool {
        return match op {
            "absolute" => Ok(array.clone()),
            "square" => plain(op, &cast(array, Dtype::Int8, room)?, room),
            _ => Err(wrong_type(format!("{op} does not take booleans: use logical_not"))),
        };
    }
    with_type!(dtype, T => match op {
        "negative" => map(array, dtype, room, |a: T| a.negative()),
        "absolute" => map(array, dtype, room, |a: T| a.absolute()),
        "sign" => map(array, dtype, room, |a: T| a.sign()),
        _ => map(array, dtype, room, |a: T| a.multiply(a)),
    })
}

fn rounded(op: &str, array: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let dtype = array.dtype();
    if !is_float(dtype) {
        // Integers are whole numbers. As in NumPy, `rint` alone makes floats of them.
        check_computed(dtype)?;
        let result = if op == "rint" { Dtype::Float64 } else { dtype };
        return cast(array, result, room);
    }
    with_float!(dtype, T => match op {
        "floor" => map(array, dtype, room, T::floor),
        "ceil" => map(array, dtype, room, T::ceil),
        "trunc" => map(array, dtype, room, T::trunc),
        _ => map(array, dtype, room, round_even::<T>),
    })
}

fn asked(op: &str, array: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let bool = Dtype::Bool;
    if !is_float(array.dtype()) {
        let answer = u8::from(op == "isfinite");
        return with_type!(array.dtype(), T => map(array, bool, room, |_: T| answer));
    }
    with_float!(array.dtype(), T => match op {
        "isnan" => map(array, bool, room, |a: T| u8::from(a.is_nan())),
        "isinf" => map(array, bool, room, |a: T| u8::from(a.is_infinite())),
        _ => map(array, bool, room, |a: T| u8::from(a.is_finite())),
    })
}

fn inverted(op: &str, array: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    if op == "logical_not" || array.dtype() == Dtype::Bool {
        let flags = cast(array, Dtype::Bool, room)?;
        return map(&flags, Dtype::Bool, room, |a: u8| a ^ 1);
    }
    with_integer!(array.dtype(), T => map(array, array.dtype(), room, |a: T| !a))
}

fn function(op: &str, array: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    // Integers become float64, which holds most of them.
    check_computed(array.dtype())?;
    let array = &cast(array, float_of(array.dtype()), room)?;
    let dtype = array.dtype();
    with_float!(dtype, T => match op {
        "exp" => map(array, dtype, room, T::exp),
        "exp2" => map(array, dtype, room, T::exp2),
        "expm1" => map(array, dtype, room, T::exp_m1),
        "log" => map(array, dtype, room, T::ln),
        "log2" => map(array, dtype, room, T::log2),
        "log10" => map(array, dtype, room, T::log10),
        "log1p" => map(array, dtype, room, T::ln_1p),
        "sqrt" => map(array, dtype, room, T::sqrt),
        "sin" => map(array, dtype, room, T::sin),
        "cos" => map(array, dtype, room, T::cos),
        "tan" => map(array, dtype, room, T::tan),
        "arcsin" => map(array, dtype, room, T::asin),
        "arccos" => map(array, dtype, room, T::acos),
        "arctan" => map(array, dtype, room, T::atan),
        "sinh" => map(array, dtype, room, T::sinh),
        "cosh" => map(array, dtype, room, T::cosh),
        "tanh" => map(array, dtype, room, T::tanh),
        "sigmoid" => map(array, dtype, room, sigmoid::<T>),
        _ => map(array, dtype, room, T::recip),
    })
}

/// `where(condition, left, right)`.
pub(crate) fn choose(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let condition = call.array(0)?;
    let condition = cast(&condition, Dtype::Bool, call.room)?;
    let (left, right) = (call.operand(1)?, call.operand(2)?);
    let dtype = common_of(&[left, right])?;
    let (left, right) = (left.in_dtype(dtype, call.room)?, right.in_dtype(dtype, call.room)?);
    let shapes = [condition.shape(), left.shape(), right.shape()];
    let shape = broadcast(&shapes)?;
    let runs = Runs::new(&shape, shapes);
    let flags = elements::<u8>(&condition)?;
    with_type!(dtype, T => {
        let (a, b) = (elements::<T>(&left)?, elements::<T>(&right)?);
        fill(call.room, dtype, &shape, |out: &mut [T], room| {
            let mut rest = out;
            runs.each(room, |[c, i, j], [cs, is, js], len| {
                let (out, after) = std::mem::take(&mut rest).split_at_mut(len);
                rest = after;
                for (n, out) in out.iter_mut().enumerate() {
                    *out = if flags[c + n * cs] != 0 { a[i + n * is] } else { b[j + n * js] };
                }
            })
        })
    })
}

/// `round(array, decimals)`: a half goes to the even digit.
pub(crate) fn round(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (array, decimals) = (call.array(0)?, call.int(0)?.unwrap_or(0));
    if !is_float(array.dtype()) {
        if decimals < 0 {
            return Err(value("integers are not rounded to tens: cast to float64"));
        }
        return rounded("floor", &array, call.room);
    }
    if decimals == 0 {
        return rounded("rint", &array, call.room);
    }
    let scale = 10_f64.powi(decimals.unsigned_abs().min(308) as i32);
    let (before, after) =
        if decimals > 0 { ("multiply", "divide") } else { ("divide", "multiply") };
    let scaled = with(before, &array, scale, call.room)?;
    with(after, &rounded("rint", &scaled, call.room)?, scale, call.room)
}

/// A step of an operation that is made of several.
pub(crate) fn with(
    op: &str,
    left: &Tensor,
    right: impl Into<Operand>,
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    let (left, Operand(right)) = (Value::Array(left.clone()), right.into());
    let mut call = Call { operands: vec![&left, &right], params: &[], room };
    match binary(op, &mut call) {
        Some(made) => made,
        None => unary(op, &mut call).unwrap_or_else(|| Err(value(op))),
    }
}

/// The second operand of [`with`].
pub(crate) struct Operand(Value);

impl From<&Tensor> for Operand {
    fn from(array: &Tensor) -> Self {
        Self(Value::Array(array.clone()))
    }
}

impl From<f64> for Operand {
    fn from(number: f64) -> Self {
        Self(Value::Number(Number::Float(number)))
    }
}
