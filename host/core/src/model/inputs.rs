//! The inputs of a request, and how they do not fit a model.

use std::sync::Arc;

use super::{EqualDims, ModelInfo, NamedTensor, TensorInfo};
use crate::dtype::Dtype;
use crate::tensor::{Shape, Tensor};

/// Maximum inputs with defaults that an error names.
const OPTIONAL_SHOWN: usize = 8;

/// Inputs that do not fit a model. This error has no code, because only its caller knows whether a
/// plugin or a client is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A name that the model does not have.
    #[error("unknown input {name:?}: the model's inputs are {expected:?}")]
    UnknownName {
        /// The name given.
        name: String,
        /// The model's names.
        expected: Vec<Arc<str>>,
    },
    /// An input is missing.
    #[error("input {0:?} is missing")]
    Missing(String),
    /// An input is given twice.
    #[error("input {0:?} is given twice")]
    Duplicate(String),
    /// Another element type than the model's.
    #[error("input {name:?} has datatype {actual}, but the model needs {expected}")]
    WrongDtype {
        /// The input.
        name: String,
        /// The one that was given.
        actual: Dtype,
        /// The one that the model wants.
        expected: Dtype,
    },
    /// A shape that the model does not take.
    #[error("input {name:?} has shape {actual:?}, but the model needs {expected:?}")]
    WrongShape {
        /// The input.
        name: String,
        /// The one that was given.
        actual: Vec<usize>,
        /// The one that the model wants. -1 stands for any size.
        expected: Vec<i64>,
    },
    /// Two open dimensions to which the model gives one name have different sizes.
    #[error(
        "dimension {dim} of input {name:?} is {actual}, but dimension {other_dim} of input {other:?} \
         is {expected}: the model calls both {symbol:?}, so they must be equal"
    )]
    UnequalDims {
        /// The model's name for both.
        symbol: Arc<str>,
        /// The input.
        name: String,
        /// The dimension, from 0.
        dim: usize,
        /// Its size.
        actual: usize,
        /// The input that has the first dimension of this name.
        other: String,
        /// That dimension.
        other_dim: usize,
        /// Its size.
        expected: usize,
    },
    /// A text with a NUL byte. A runtime would take it as the text's end.
    #[error(
        "input {name:?}: element {element} has a NUL byte, which texts for a model cannot contain"
    )]
    NulInText {
        /// The input.
        name: String,
        /// Which of its elements, in row-major order.
        element: usize,
    },
    /// Dimension 0 differs between inputs, or is 0.
    #[error("input {name:?} has {actual} rows, {expected}")]
    WrongRows {
        /// The input.
        name: String,
        /// Its rows.
        actual: usize,
        /// The number that is expected.
        expected: ExpectedRows,
    },
}

/// The number of rows that an input should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpectedRows {
    /// Any number but 0.
    #[error("at least one is needed")]
    Any,
    /// As many as another input has.
    #[error("input {input:?} has {rows}")]
    As {
        /// The other input.
        input: String,
        /// Its rows.
        rows: usize,
    },
}

impl ModelInfo {
    /// Put `inputs` in the model's order, those that are optional behind the others, and
    /// check that each has the right dtype and shape. A scalar may come with the shape `[1]`.
    ///
    /// # Errors
    /// [`InputError`] names the first input that does not fit, and why.
    pub fn arrange(&self, inputs: &mut [NamedTensor]) -> Result<(), InputError> {
        let is_input = |name: &str| {
            let mut all = self.inputs.iter().chain(&self.optional);
            all.any(|info| *info.name == *name)
        };
        if let Some(unknown) = inputs.iter().find(|input| !is_input(&input.name)) {
            // Some exporters make an optional input of each weight.
            let all = self.inputs.iter().chain(self.optional.iter().take(OPTIONAL_SHOWN));
            let expected = all.map(|info| info.name.clone()).collect();
            return Err(InputError::UnknownName { name: unknown.name.to_string(), expected });
        }
        if let Some(twice) = (1..inputs.len())
            .find(|at| inputs[..*at].iter().any(|other| other.name == inputs[*at].name))
        {
            return Err(InputError::Duplicate(inputs[twice].name.to_string()));
        }
        for (index, info) in self.inputs.iter().enumerate() {
            let Some(at) = (index..inputs.len()).find(|at| inputs[*at].name == info.name) else {
                return Err(InputError::Missing(info.name.to_string()));
            };
            inputs.swap(index, at);
            fit(info, &mut inputs[index].tensor)?;
        }
        for NamedTensor { name, tensor } in &mut inputs[self.inputs.len()..] {
            if let Some(info) = self.optional.iter().find(|info| info.name == *name) {
                fit(info, tensor)?;
            }
        }
        self.equal_dims.iter().try_for_each(|dims| dims.check(inputs))
    }
}

impl EqualDims {
    /// `inputs` has the model's inputs in their order.
    fn check(&self, inputs: &[NamedTensor]) -> Result<(), InputError> {
        let sized = |(input, dim): (usize, usize)| {
            let named = inputs.get(input)?;
            Some((named, dim, *named.tensor.shape().get(dim)?))
        };
        let mut all = self.places.iter().filter_map(|place| sized(*place));
        let Some((other, other_dim, expected)) = all.next() else { return Ok(()) };
        match all.find(|(_, _, size)| *size != expected) {
            None => Ok(()),
            Some((input, dim, actual)) => Err(InputError::UnequalDims {
                symbol: self.symbol.clone(),
                name: input.name.to_string(),
                dim,
                actual,
                other: other.name.to_string(),
                other_dim,
                expected,
            }),
        }
    }
}

/// The rows that all of `inputs` have, which is the same number and not 0.
///
/// # Errors
/// [`InputError::WrongRows`] names the first input that has other rows.
pub fn rows_of(inputs: &[NamedTensor]) -> Result<usize, InputError> {
    let rows = inputs.first().map_or(0, |first| first.tensor.rows());
    for input in inputs {
        let expected = match input.tensor.rows() {
            0 => ExpectedRows::Any,
            other_rows if other_rows != rows => {
                ExpectedRows::As { input: inputs[0].name.to_string(), rows }
            }
            _ => continue,
        };
        let (name, actual) = (input.name.to_string(), input.tensor.rows());
        return Err(InputError::WrongRows { name, actual, expected });
    }
    Ok(rows)
}

/// Check an input. One element becomes a scalar if the model needs one: Triton shows a scalar with
/// the shape `[1]`, and takes it so.
fn fit(info: &TensorInfo, tensor: &mut Tensor) -> Result<(), InputError> {
    if info.dims.is_empty()
        && tensor.shape() == [1]
        && let Some(scalar) = tensor.with_shape(Shape::new())
    {
        *tensor = scalar;
    }
    check(info, tensor)
}

fn check(info: &TensorInfo, tensor: &Tensor) -> Result<(), InputError> {
    let name = || info.name.to_string();
    if tensor.dtype() != info.dtype {
        let (actual, expected) = (tensor.dtype(), info.dtype);
        return Err(InputError::WrongDtype { name: name(), actual, expected });
    }
    if !info.takes(tensor.shape()) {
        let (actual, expected) = (tensor.shape().to_vec(), info.signed_dims());
        return Err(InputError::WrongShape { name: name(), actual, expected });
    }
    let mut texts = tensor.texts().into_iter().flatten();
    match texts.position(|text| text.contains(&0)) {
        Some(element) => Err(InputError::NulInText { name: name(), element }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::BufferPool;

    fn info() -> ModelInfo {
        let info = |name: &str, dims: &[Option<usize>]| TensorInfo {
            name: name.into(),
            dtype: Dtype::Float32,
            dims: dims.to_vec(),
        };
        ModelInfo {
            backend: "test",
            inputs: vec![info("a", &[None, Some(2)]), info("b", &[None])],
            outputs: vec![info("y", &[None])],
            forms_batches: true,
            optional: vec![info("scale", &[Some(1)])],
            equal_dims: vec![EqualDims { symbol: "n".into(), places: vec![(0, 0), (1, 0)] }],
        }
    }

    fn tensor(name: &str, dtype: Dtype, shape: &[usize]) -> NamedTensor {
        let pool = BufferPool::new(0);
        let len = shape.iter().product::<usize>() * dtype.size_bytes().unwrap();
        let buffer = pool.fill(len, |bytes| bytes.fill(0));
        NamedTensor { name: name.into(), tensor: Tensor::new(dtype, shape.into(), buffer).unwrap() }
    }

    #[test]
    fn inputs_are_put_in_the_models_order() {
        let mut inputs =
            vec![tensor("b", Dtype::Float32, &[3]), tensor("a", Dtype::Float32, &[3, 2])];
        assert_eq!(info().arrange(&mut inputs), Ok(()));
        assert_eq!(inputs[0].tensor.shape(), [3, 2]);
        assert_eq!(rows_of(&inputs), Ok(3));
    }

    #[test]
    fn an_input_with_a_default_comes_last_and_counts_no_rows() {
        let mut inputs = vec![
            tensor("scale", Dtype::Float32, &[1]),
            tensor("b", Dtype::Float32, &[3]),
            tensor("a", Dtype::Float32, &[3, 2]),
        ];
        assert_eq!(info().arrange(&mut inputs), Ok(()));
        let names: Vec<_> = inputs.iter().map(|input| &*input.name).collect();
        assert_eq!(names, ["a", "b", "scale"]);
        inputs[2] = tensor("scale", Dtype::Float32, &[2]);
        let error = info().arrange(&mut inputs).unwrap_err().to_string();
        assert!(error.contains("\"scale\" has shape [2], but the model needs [1]"), "{error}");
    }

    #[test]
    fn a_scalar_may_come_as_one_element() {
        let rate = |name: &str| TensorInfo { name: name.into(), dtype: Dtype::Int64, dims: vec![] };
        let scalars = ModelInfo {
            inputs: vec![rate("rate")],
            optional: vec![rate("scale")],
            equal_dims: Vec::new(),
            ..info()
        };
        for shape in [&[][..], &[1]] {
            let tensor = |name: &str| tensor(name, Dtype::Int64, shape);
            let mut inputs = vec![tensor("scale"), tensor("rate")];
            assert_eq!(scalars.arrange(&mut inputs), Ok(()));
            assert!(inputs.iter().all(|input| input.tensor.shape().is_empty()), "{inputs:?}");
        }
        for shape in [[2].as_slice(), &[1, 1]] {
            let mut inputs = vec![tensor("rate", Dtype::Int64, shape)];
            let error = scalars.arrange(&mut inputs).unwrap_err().to_string();
            assert!(error.contains("but the model needs []"), "{error}");
        }
        let mut lists =
            vec![tensor("a", Dtype::Float32, &[1, 2]), tensor("b", Dtype::Float32, &[1])];
        assert_eq!(info().arrange(&mut lists), Ok(()));
        assert_eq!(lists[1].tensor.shape(), [1]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let a = || tensor("a", Dtype::Float32, &[3, 2]);
        let b = || tensor("b", Dtype::Float32, &[3]);
        let cases = [
            (vec![a()], "input \"b\" is missing"),
            (vec![a(), a()], "input \"a\" is given twice"),
            (vec![a(), tensor("c", Dtype::Float32, &[3])], "unknown input \"c\""),
            (
                vec![a(), tensor("b", Dtype::Int64, &[3])],
                "datatype INT64, but the model needs FP32",
            ),
            (
                vec![tensor("a", Dtype::Float32, &[3, 4]), b()],
                "shape [3, 4], but the model needs [-1, 2]",
            ),
            (
                vec![a(), tensor("b", Dtype::Float32, &[4])],
                "dimension 0 of input \"b\" is 4, but dimension 0 of input \"a\" is 3: the model calls \
                 both \"n\"",
            ),
        ];
        for (mut inputs, expected) in cases {
            let arranged = info().arrange(&mut inputs).and_then(|()| rows_of(&inputs));
            let error = arranged.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let unnamed = ModelInfo { equal_dims: Vec::new(), ..info() };
        for (mut inputs, expected) in [
            (vec![a(), tensor("b", Dtype::Float32, &[4])], "\"b\" has 4 rows, input \"a\" has 3"),
            (vec![tensor("a", Dtype::Float32, &[0, 2]), b()], "at least one is needed"),
        ] {
            let error = unnamed.arrange(&mut inputs).and_then(|()| rows_of(&inputs)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
