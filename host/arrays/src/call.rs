//! One step under way: its operands, its parameters and the caller's bounds.

use gristmill_core::{Dtype, Tensor};

use crate::array::{Room, Stop, check_rank, flat, value, wrong_type};
use crate::param::Param;
use crate::promote::{Number, Value, cast, common_of, float_of, name_of};

pub(crate) struct Call<'a> {
    pub(crate) operands: Vec<&'a Value>,
    pub(crate) params: &'a [Param],
    pub(crate) room: &'a mut dyn Room,
}

impl<'a> Call<'a> {
    pub(crate) fn operand(&self, at: usize) -> Result<&'a Value, Stop> {
        let count = self.operands.len();
        let found = self.operands.get(at).copied();
        found.ok_or_else(|| value(format!("the operation needs more than {count} operands")))
    }

    /// An operand as an array.
    pub(crate) fn array(&mut self, at: usize) -> Result<Tensor, Stop> {
        self.operand(at)?.array(self.room)
    }

    /// All operands as arrays of the dtype in which they meet.
    pub(crate) fn arrays(&mut self) -> Result<(Dtype, Vec<Tensor>), Stop> {
        let dtype = common_of(&self.operands)?;
        let arrays = self.operands.iter().map(|operand| operand.in_dtype(dtype, self.room));
        Ok((dtype, arrays.collect::<Result<_, _>>()?))
    }

    /// The first operand as an array of floats.
    pub(crate) fn floats(&mut self) -> Result<Tensor, Stop> {
        let array = self.array(0)?;
        cast(&array, float_of(array.dtype()), self.room)
    }

    /// A parameter; none if it is null or is not there.
    fn param(&self, at: usize) -> Option<&'a Param> {
        self.params.get(at).filter(|param| **param != Param::Null)
    }

    pub(crate) fn flag(&self, at: usize) -> bool {
        self.param(at) == Some(&Param::Number(Number::Bool(true)))
    }

    pub(crate) fn number(&self, at: usize) -> Result<Option<Number>, Stop> {
        let read = |param: &Param| param.number().ok_or_else(|| unread("a number"));
        self.param(at).map(read).transpose()
    }

    pub(crate) fn float(&self, at: usize, default: f64) -> Result<f64, Stop> {
        Ok(self.number(at)?.map_or(default, Number::float))
    }

    pub(crate) fn int(&self, at: usize) -> Result<Option<i64>, Stop> {
        self.param(at).map(as_int).transpose()
    }

    /// A number of things. The fault of any other parameter is `why`.
    pub(crate) fn count(&self, at: usize, why: &str) -> Result<usize, Stop> {
        let count = self.int(at)?.and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| value(why))
    }

    /// A list of integers, one for each dimension, or one.
    pub(crate) fn ints(&self, at: usize) -> Result<Option<Vec<i64>>, Stop> {
        let read = |param: &Param| match param {
            Param::List(list) => {
                check_rank(list.len())?;
                list.iter().map(as_int).collect()
            }
            one => Ok(vec![as_int(one)?]),
        };
        self.param(at).map(read).transpose()
    }

    pub(crate) fn shape(&self, at: usize) -> Result<Vec<usize>, Stop> {
        let ints = self.ints(at)?.unwrap_or_default();
        let dimension = |int| usize::try_from(int).map_err(|_| negative(int));
        ints.into_iter().map(dimension).collect()
    }

    pub(crate) fn dtype(&self, at: usize) -> Result<Option<Dtype>, Stop> {
        let read = |param: &Param| {
            let is_named = |dtype: &&Dtype| param.text() == Some(name_of(**dtype));
            let named = Dtype::ALL.iter().find(is_named).copied();
            named.ok_or_else(|| unread("a dtype"))
        };
        self.param(at).map(read).transpose()
    }

    /// An axis of an array of so many dimensions. The last one is -1.
    pub(crate) fn axis(&self, at: usize, rank: usize) -> Result<Option<usize>, Stop> {
        self.int(at)?.map(|axis| axis_of(axis, rank)).transpose()
    }

    /// The array and the axis of it that a parameter names. Without one, the array flat.
    pub(crate) fn axis_or_flat(&self, at: usize, array: Tensor) -> Result<(Tensor, usize), Stop> {
        match self.axis(at, array.shape().len())? {
            Some(axis) => Ok((array, axis)),
            None => Ok((flat(&array)?, 0)),
        }
    }

    /// Different axes in order; none if all are meant.
    pub(crate) fn axes(&self, at: usize, rank: usize) -> Result<Option<Vec<usize>>, Stop> {
        let Some(axes) = self.ints(at)? else { return Ok(None) };
        let mut axes = axes_of(&axes, rank)?;
        axes.sort_unstable();
        if axes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(value("duplicate value in 'axis'"));
        }
        Ok(Some(axes))
    }
}

fn axis_of(axis: i64, rank: usize) -> Result<usize, Stop> {
    let from_end = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(from_end).ok().filter(|axis| *axis < rank).ok_or_else(|| {
        value(format!("axis {axis} is out of bounds for an array of {rank} dimensions"))
    })
}

pub(crate) fn axes_of(axes: &[i64], rank: usize) -> Result<Vec<usize>, Stop> {
    axes.iter().map(|axis| axis_of(*axis, rank)).collect()
}

fn as_int(param: &Param) -> Result<i64, Stop> {
    param.int().ok_or_else(|| unread("an integer"))
}

fn unread(wanted: &str) -> Stop {
    wrong_type(format!("a parameter is not {wanted}"))
}

fn negative(int: i64) -> Stop {
    value(format!("negative dimensions are not allowed: {int}"))
}
