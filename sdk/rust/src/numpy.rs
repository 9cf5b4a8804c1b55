//! Arrays with NumPy's names and rules. The host holds their elements and works on them, at native
//! speed.
//!
//! ```no_run
//! # use gristmill_plugin::{Failure, Outputs, Response};
//! use gristmill_plugin::numpy::{Array, part};
//!
//! fn labels(outputs: &Outputs) -> Result<Vec<i64>, Failure> {
//!     let scores = Array::from(outputs.get("scores")?).softmax(1);
//!     let sure = scores.max(1).greater(0.9);
//!     let labels = scores.argmax(1).index([part(sure)]);
//!     Ok(labels.view::<i64>()?.as_slice().to_vec())
//! }
//! ```
//!
//! An operation only notes what is to be done. The host does it when a result is read: by
//! [`view`](Array::view), [`item`](Array::item), [`shape`](Array::shape) or
//! [`into_tensor`](Array::into_tensor). So a whole formula costs one call of the host, and a fault
//! comes when it is read; it names the line of the operation. What several results need is made
//! once, as long as the plugin still has the array.
//!
//! Numbers take the dtype of the array that they meet: `array + 1.0`. The guide `numpy.md` lists
//! the operations and the differences from NumPy. A unit test outside of the sandbox has no host:
//! reading fails there, and `gristmill plugin test` runs the plugin with it.

mod elementwise;
mod functions;
mod operators;
mod params;
mod run;

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

pub use self::params::{Axes, Part, kept, part};
use crate::bindings::arrays;
use crate::tensor::Elements;
use crate::{Dtype, Element, Failure, Tensor, View};

/// The operation that is a number.
const NUMBER: &str = "number";

/// A longer chain of operations is run before it is read.
const DEPTH_MAX: usize = 500;

/// An immutable array. A clone is the same array.
#[derive(Clone)]
pub struct Array<'t>(Rc<Node<'t>>);

struct Node<'t> {
    state: RefCell<State<'t>>,
    /// Where the plugin asked for it.
    place: &'static Location<'static>,
}

enum State<'t> {
    /// The host has not made it.
    Noted(Step<'t>),
    Given(&'t Tensor),
    Made(Rc<Tensor>),
    /// A long chain that was run before it was read. The failure comes when it is read.
    Failed(Failure),
}

/// An operation.
#[derive(Clone)]
struct Step<'t> {
    name: &'static str,
    operands: Vec<Array<'t>>,
    /// As the program has them: a list in JSON.
    params: String,
    /// The longest chain of operations that end with it.
    depth: usize,
}

/// Making arrays.
impl<'t> Array<'t> {
    #[track_caller]
    fn noted(name: &'static str, operands: Vec<Self>, params: String) -> Self {
        let depth = 1 + operands.iter().map(Self::depth).max().unwrap_or_default();
        let state = State::Noted(Step { name, operands, params, depth });
        let array = Self::of(state);
        if depth > DEPTH_MAX
            && let Err(failure) = run::make(&array)
        {
            array.0.state.replace(State::Failed(failure));
        }
        array
    }

    #[track_caller]
    fn of(state: State<'t>) -> Self {
        Self(Rc::new(Node { state: RefCell::new(state), place: Location::caller() }))
    }

    fn depth(&self) -> usize {
        match &*self.0.state.borrow() {
            State::Noted(step) => step.depth,
            _ => 0,
        }
    }

    /// An array of these elements, row-major. They are copied to the host.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[track_caller]
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self, Failure> {
        Ok(Tensor::from_slice(shape, elements)?.into())
    }
}

/// Reading arrays.
impl Array<'_> {
    /// The dimensions.
    ///
    /// # Errors
    /// [`Failure::Internal`] if an operation fails.
    pub fn shape(&self) -> Result<Vec<usize>, Failure> {
        self.with_tensor(Tensor::dims)
    }

    /// The type of the elements.
    ///
    /// # Errors
    /// [`Failure::Internal`] if an operation fails.
    pub fn dtype(&self) -> Result<Dtype, Failure> {
        self.with_tensor(Tensor::dtype)
    }

    /// The elements, copied from the host.
    ///
    /// # Errors
    /// [`Failure::Internal`] if an operation fails, or the dtype is not `T`'s.
    pub fn view<T: Element>(&self) -> Result<View<T>, Failure> {
        let arrays::Elements { dtype, shape, data } = run::read(self)?;
        let shape = shape.into_iter().map(|length| length as usize).collect();
        Elements { dtype, shape, data }.view()
    }

    /// The element of an array of one.
    ///
    /// # Errors
    /// [`Failure::Internal`] if an operation fails, the dtype is not `T`'s, or there is another
    /// number of elements.
    pub fn item<T: Element>(&self) -> Result<T, Failure> {
        let view = self.view::<T>()?;
        match view.as_slice() {
            [one] => Ok(*one),
            _ => Err(Failure::Internal(format!("shape {:?} is not one element", view.shape()))),
        }
    }

    /// The array as a tensor, for a model's input.
    ///
    /// # Errors
    /// [`Failure::Internal`] if an operation fails.
    pub fn into_tensor(self) -> Result<Tensor, Failure> {
        run::tensor(&self)
    }

    /// What `f` says of the tensor, which the host makes if it has not.
    fn with_tensor<T>(&self, f: impl FnOnce(&Tensor) -> T) -> Result<T, Failure> {
        run::make(self)?;
        match &*self.0.state.borrow() {
            State::Given(tensor) => Ok(f(tensor)),
            State::Made(tensor) => Ok(f(tensor)),
            State::Noted(_) | State::Failed(_) => Err(Failure::internal("the array was not made")),
        }
    }
}

impl<'t> From<&'t Tensor> for Array<'t> {
    #[track_caller]
    fn from(tensor: &'t Tensor) -> Self {
        Self::of(State::Given(tensor))
    }
}

impl From<Tensor> for Array<'_> {
    #[track_caller]
    fn from(tensor: Tensor) -> Self {
        Self::of(State::Made(Rc::new(tensor)))
    }
}

impl<'t> From<&Array<'t>> for Array<'t> {
    fn from(array: &Array<'t>) -> Self {
        array.clone()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.state.borrow() {
            State::Noted(step) => write!(formatter, "Array({} at {})", step.name, self.0.place),
            _ => formatter.write_str("Array"),
        }
    }
}

#[cfg(test)]
mod tests;
