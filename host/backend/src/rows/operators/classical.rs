//! Classical machine learning, `ai.onnx.ml`, and work on texts. A sample is a row of a matrix.

use tract_onnx::pb::attribute_proto::AttributeType;

use super::super::call::{Call, Outputs};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};
use super::super::layout::broadcast;

/// Operators of `ai.onnx.ml`.
pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "LinearClassifier" | "SVMClassifier" | "TreeEnsembleClassifier" => classifier,
        "LinearRegressor" | "SVMRegressor" | "TreeEnsemble" | "TreeEnsembleRegressor" => |call| {
            let batch = samples(call.input(0)?)?;
            call.attributes.ignore_all();
            Ok(vec![Ok(result(vec![batch, call.fresh()]))])
        },
        "Imputer" | "Normalizer" | "Scaler" => |call| {
            let input = call.input(0)?;
            samples(input)?;
            call.attributes.ignore_all();
            Ok(vec![Ok(input.reshaped(input.dims()?.to_vec()))])
        },
        "Binarizer" | "CategoryMapper" | "LabelEncoder" => |call| {
            let input = call.input(0)?;
            input.axis()?;
            call.attributes.ignore_all();
            Ok(vec![Ok(input.reshaped(input.dims()?.to_vec()))])
        },
        "OneHotEncoder" => one_hot,
        "ArrayFeatureExtractor" => extract,
        "FeatureVectorizer" => join,
        "ZipMap" => |call| {
            call.attributes.ignore_all();
            let why = "its results are maps; export the classifier without it (zipmap=False)";
            Ok(vec![Err(why.into())])
        },
        _ => return None,
    })
}

/// Operators on texts, of the standard domain.
pub(super) fn rule_for_texts(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "RegexFullMatch" | "StringConcat" => |call| {
            call.ignore(&["pattern"]);
            let (rows, shape) = broadcast(&call.present(), call)?;
            Ok(vec![Ok(Fact::new(rows, Some(shape)))])
        },
        "TfIdfVectorizer" => |call| {
            let batch = samples(call.input(0)?)?;
            call.attributes.ignore_all();
            Ok(vec![Ok(result(vec![batch, call.fresh()]))])
        },
        _ => return None,
    })
}

/// The number of samples: the rows of a matrix.
fn samples(input: &Fact) -> Result<Dim, Why> {
    match (input.axis()?, input.dims()?) {
        (Some(axis), [batch, _]) if *axis == Axis::first(0) => Ok(batch.clone()),
        _ => Err("its input is not a matrix with a sample in each row".into()),
    }
}

fn result(shape: Vec<Dim>) -> Fact {
    Fact::along(Axis::first(0), shape)
}

/// The label, and a score for each class.
fn classifier(call: &Call) -> Outputs {
    let batch = samples(call.input(0)?)?;
    let texts = call.attributes.get("classlabels_strings", AttributeType::Strings)?;
    let numbers = match call.ints("classlabels_ints")? {
        None => call.ints("classlabels_int64s")?,
        numbers => numbers,
    };
    let count = numbers.map(<[i64]>::len).or_else(|| texts.map(|texts| texts.strings.len()));
    call.attributes.ignore_all();
    // Two classes may have one score.
    let count = count.filter(|count| *count > 2 && call.operator != "SVMClassifier");
    let scores = count.map_or_else(|| call.fresh(), |count| Dim::known(count as u64));
    Ok(vec![Ok(result(vec![batch.clone()])), Ok(result(vec![batch, scores]))])
}

fn one_hot(call: &Call) -> Outputs {
    let input = call.input(0)?;
    input.axis()?;
    call.ignore(&["zeros"]);
    call.attributes.get("cats_int64s", AttributeType::Ints)?;
    call.attributes.get("cats_strings", AttributeType::Strings)?;
    let mut shape = input.dims()?.to_vec();
    shape.push(call.fresh());
    Ok(vec![Ok(input.reshaped(shape))])
}

/// Some columns of the data; the places of all indices are in one dimension.
fn extract(call: &Call) -> Outputs {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let Some((_, before)) = data.dims()?.split_last() else {
        return Err("its data has no dimensions".into());
    };
    let mut shape = if before.is_empty() { vec![Dim::known(1)] } else { before.to_vec() };
    let dims = indices.dims()?;
    let rows = match (data.axis()?, indices.axis()?) {
        (None, None) => Rows::Free,
        (Some(axis), None) if axis.at < before.len() => Rows::Along(axis.clone()),
        (None, Some(axis)) => {
            let outer = dims.get(..axis.at).and_then(Dim::product);
            let outer = outer.and_then(|outer| outer.times(&axis.outer));
            let outer = outer.ok_or("its indices have too many dimensions")?;
            Rows::Along(Axis { at: shape.len(), outer })
        }
        _ => return Err("the rows choose among the rows".into()),
    };
    let count = Dim::product(dims);
    shape.push(match count {
        Some(count) => count,
        None if indices.is_free() => call.fresh(),
        None => return Err("its indices have too many dimensions".into()),
    });
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}

fn join(call: &Call) -> Outputs {
    call.ignore(&["inputdimensions"]);
    let mut rows = None;
    for input in call.present() {
        let batch = samples(input)?;
        if rows.as_ref().is_some_and(|rows| *rows != batch) {
            return Err("its inputs have different rows".into());
        }
        rows = Some(batch);
    }
    Ok(vec![Ok(result(vec![rows.ok_or("it has no inputs")?, call.fresh()]))])
}
