//! Answers what each expression of a table gives, as the Python expression that means the same, and
//! its dtype, shape and elements, or the text of its failure. Tests compare it with NumPy.
//!
//! It is for the model `digits`, which gets a blank picture.

use gristmill_plugin::numpy::{Array, Part, kept, part};
use gristmill_plugin::{
    Context, Dtype, Element, Failure, Outputs, Prepared, Processor, Request, Response, Tensor,
};
use serde_json::json;

/// The elements of an array as JSON, which has no NaN: Python's reader takes these words.
fn described(array: &Array<'_>) -> Result<String, Failure> {
    fn listed<T: Element>(
        array: &Array<'_>,
        text: impl Fn(&T) -> String,
    ) -> Result<(Vec<usize>, String), Failure> {
        let view = array.view::<T>()?;
        let items: Vec<_> = view.as_slice().iter().map(text).collect();
        Ok((view.shape().to_vec(), format!("[{}]", items.join(","))))
    }
    fn float(number: f64) -> String {
        match number {
            _ if number.is_nan() => "NaN".into(),
            _ if number.is_infinite() => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            _ => format!("{number:?}"),
        }
    }
    let dtype = array.dtype()?;
    let (shape, elements) = match dtype {
        Dtype::Bool => listed::<bool>(array, bool::to_string)?,
        Dtype::Int32 => listed::<i32>(array, i32::to_string)?,
        Dtype::Int64 => listed::<i64>(array, i64::to_string)?,
        Dtype::Float32 => listed::<f32>(array, |one| float((*one).into()))?,
        Dtype::Float64 => listed::<f64>(array, |one| float(*one))?,
        other => return Err(Failure::internal(format!("{other:?} is not in the table"))),
    };
    let name = format!("{dtype:?}").to_lowercase();
    let name = name.trim_start_matches("dtype::");
    Ok(format!("[{},{},{elements}]", json!(name), json!(shape)))
}

/// The table's arrays, as `sdk/python/tests/array_table.py` has them.
struct Names {
    m: Tensor,
    n: Tensor,
    i: Tensor,
    mask: Tensor,
    odd: Tensor,
    zero: Tensor,
    none: Tensor,
}

impl Names {
    fn new() -> Result<Self, Failure> {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1.5];
        let n: Vec<_> = (1..=12).map(f64::from).collect();
        Ok(Self {
            m: Tensor::from_slice(&[2, 3], &[1.5_f32, -2.0, 0.25, 4.0, -0.5, 3.0])?,
            n: Tensor::from_slice(&[2, 3, 2], &n)?,
            i: Tensor::from_slice(&[3], &[2_i64, 0, 1])?,
            mask: Tensor::from_slice(&[2, 3], &[true, false, true, false, true, false])?,
            odd: Tensor::from_slice(&[5], &odd)?,
            zero: Tensor::from_slice(&[], &[2.5_f32])?,
            none: Tensor::from_slice::<f32>(&[0, 3], &[])?,
        })
    }
}

fn table(names: &Names) -> Vec<(&'static str, Array<'_>)> {
    let [m, n, i] = [&names.m, &names.n, &names.i].map(Array::from);
    let [mask, odd, zero, none] =
        [&names.mask, &names.odd, &names.zero, &names.none].map(Array::from);
    let (top, places) = m.top_k(2, -1);
    let boxes = [[0.0_f32, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0]];
    let boxes = Array::from_slice(&[3, 4], boxes.as_flattened()).unwrap_or_else(|_| zero.clone());
    let mut chain = m.clone();
    for _ in 0..1_200 {
        chain = chain + 1;
    }
    let (mut left, mut right) = (m.clone(), n.index([part(..), part(..), part(0)]));
    for _ in 0..400 {
        (left, right) = (left + 1.0, right + 1);
    }
    vec![
        // Programs in two parts: numbers take the dtype of what they meet in the second, too.
        ("m + 400", left.clone()),
        ("m + 400 + (n[:, :, 0] + 400)", left + right),
        ("m + 1", &m + 1),
        ("m * 2.5 - i", &m * 2.5 - &i),
        ("2 - m", 2 - &m),
        ("-m / n[:, :, 0]", -&m / n.index([part(..), part(..), part(0)])),
        ("m % 2", &m % 2),
        ("m // 2", m.floor_divide(2)),
        ("m ** 2.0", m.power(2.0)),
        ("i ** 3", i.power(3)),
        ("i / 2", &i / 2),
        ("i + True", &i + Array::from(true)),
        ("odd * np.nan", &odd * f64::NAN),
        ("np.maximum(odd, -np.inf)", odd.maximum(f64::NEG_INFINITY)),
        ("np.minimum(m, 0)", m.minimum(0)),
        ("(m > 0) & (m <= 3)", m.greater(0).bitwise_and(m.less_equal(3))),
        ("(m == 4) | (m != m)", m.equal(4).logical_or(m.not_equal(&m))),
        ("np.isnan(odd)", odd.isnan()),
        ("np.sqrt(np.abs(m))", m.absolute().sqrt()),
        ("np.exp(m)", m.exp()),
        ("np.log1p(i)", i.log1p()),
        ("1 / (1 + np.exp(-m))", m.sigmoid()),
        ("np.arctan2(m, 2)", m.arctan2(2)),
        ("np.round(n / 7, 2)", (&n / 7).round(2)),
        ("np.clip(m, -1, 2)", m.clip(-1, 2)),
        ("np.where(m > 0, m, 0)", m.greater(0).choose(&m, 0)),
        ("m.sum()", m.sum(())),
        ("n.sum(axis=(0, 2))", n.sum([0, 2])),
        ("n.mean(axis=1, keepdims=True)", n.mean(kept(1))),
        ("m.max(axis=1)", m.max(1)),
        ("m.argmax(axis=-1)", m.argmax(-1)),
        ("np.argmin(m)", m.argmin(())),
        ("n.std(axis=0)", n.std(0, 0.0)),
        ("n.var(axis=2, ddof=1)", n.var(2, 1.0)),
        ("mask.any(axis=0)", mask.any(0)),
        ("mask.all()", mask.all(())),
        ("np.count_nonzero(mask, axis=1)", mask.count_nonzero(1)),
        ("none.sum(axis=0)", none.sum(0)),
        ("none.max(axis=0)", none.max(0)),
        ("np.cumsum(n, axis=1)", n.cumulative_sum(1)),
        ("np.cumprod(m)", m.cumulative_prod(())),
        ("np.exp(m) / np.exp(m).sum(axis=1, keepdims=True)", m.softmax(1)),
        ("m / np.linalg.norm(m, axis=-1, keepdims=True)", m.normalize(-1)),
        ("np.sort(odd)", odd.sort(-1, false)),
        ("np.sort(m, axis=0)[::-1]", m.sort(0, true)),
        ("np.argsort(m, axis=None)", m.argsort((), false)),
        ("np.sort(m, axis=1)[:, ::-1][:, :2]", top),
        ("np.argsort(-m, axis=1)[:, :2]", places),
        ("np.unique(mask)", mask.unique_values()),
        ("np.unique(mask, return_counts=True)[1]", mask.unique_counts()),
        ("np.stack(np.nonzero(m > 0))", m.greater(0).nonzero()),
        ("np.searchsorted([0, 1, 2], i)", i.sort(0, false).searchsorted(&i)),
        ("m[1]", m.index([part(1)])),
        ("m[:, -1]", m.index([part(..), part(-1)])),
        ("m[:, 1:3]", m.index([part(..), part(1..=2)])),
        ("m[..., :2]", m.index([Part::Ellipsis, part(..2)])),
        ("m[:, ::-1]", m.index([part(..), Part::Slice(None, None, Some(-1))])),
        ("m[:, None, :]", m.index([part(..), Part::NewAxis, part(..)])),
        ("m[:, i]", m.index([part(..), part(&i)])),
        ("m[mask]", m.index([part(&mask)])),
        ("m[9]", m.index([part(9)])),
        ("np.take(m, i, axis=1)", m.take(&i, 1)),
        ("np.take(m, 4)", m.take(4, ())),
        ("m.T", m.transpose()),
        ("n.transpose(2, 0, 1)", n.permute_dims([2, 0, 1])),
        ("m.reshape(3, -1)", m.reshape([3, -1])),
        ("m.reshape(4, -1)", m.reshape([4, -1])),
        ("np.broadcast_to(i, (2, 3))", i.broadcast_to([2, 3])),
        ("np.concatenate([m, m], axis=1)", Array::concat([&m, &m], 1)),
        ("np.concatenate([m, n], axis=None)", Array::concat([&m, &n], ())),
        ("np.stack([m, m], axis=-1)", Array::stack([&m, &m], -1)),
        ("np.repeat(m, 2)", m.repeat(2, ())),
        ("np.flip(m)", m.flip(())),
        ("m @ m.T", m.matmul(m.transpose())),
        ("m @ m", m.matmul(&m)),
        ("np.eye(4, dtype=np.float32)[i]", i.one_hot(4)),
        ("i[[0, 2]]", boxes.nms(boxes.index([part(..), part(3)]), 0.5, None, Some(2))),
        ("np.full((2,), 7, np.int32)", Array::full([2], 7, Dtype::Int32)),
        ("np.full((2,), zero)", Array::full([2], &zero, Dtype::Float32)),
        ("np.zeros((2, 2))", Array::zeros([2, 2], Dtype::Float64)),
        ("np.arange(2, 11, 3)", Array::arange(2, 11, 3)),
        ("np.linspace(-1, 1, 5)", Array::linspace(-1.0, 1.0, 5)),
        ("np.eye(2)", Array::eye(2, Dtype::Float64)),
        ("m.astype(np.int64)", m.astype(Dtype::Int64)),
        ("m + 1200", chain),
        ("m + np.zeros(7)", &m + Array::zeros([7], Dtype::Float64)),
    ]
}

struct Arrays;

impl Processor for Arrays {
    fn preprocess(_: &Context, _: &Request) -> Result<Prepared, Failure> {
        let names = Names::new()?;
        let mut rows = Vec::new();
        for (expression, array) in table(&names) {
            let row = match described(&array) {
                Ok(description) => description,
                Err(Failure::Internal(text)) => json!(format!("ValueError: {text}")).to_string(),
                Err(other) => return Err(other),
            };
            rows.push(format!("[{},{row}]", json!(expression)));
        }
        let blank = Array::zeros([1, 1, 28, 28], Dtype::Float32).into_tensor()?;
        let answer = format!("[{}]", rows.join(","));
        Ok(Prepared::new().input("input", blank).state(answer.into_bytes()))
    }

    fn postprocess(_: &Context, _: Outputs, state: Vec<u8>) -> Result<Response, Failure> {
        Ok(Response::new("application/json", state))
    }
}

gristmill_plugin::export_processor!(Arrays);
