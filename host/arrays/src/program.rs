//! A program: a list of steps, each of which makes one array of earlier ones.
//!
//! It is a text in JSON, `[[operation, [operands], [parameters]], ..]`. An operand is the number of
//! an array: first those that the plugin gives, then what the steps made, in their order.

use gristmill_core::Tensor;

use crate::array::{Room, Stop, value};
use crate::call::Call;
use crate::param::Param;
use crate::promote::Value;
use crate::{boxes, create, elementwise, index, order, product, reduce, shapes};

/// Maximum steps of a program.
const STEPS_MAX: usize = 4096;

/// Maximum operands of a step, and bytes of its operation's name.
const OPERANDS_MAX: usize = 1024;
const NAME_MAX: usize = 64;

/// Maximum bytes of a program.
const BYTES_MAX: usize = 1 << 20;

/// The steps of a program.
#[derive(Debug)]
pub struct Program {
    steps: Vec<Step>,
    /// For each array, the last step that reads it.
    last_uses: Vec<usize>,
}

type Step = (String, Vec<usize>, Vec<Param>);

/// A program under way.
pub struct Run<'a> {
    program: &'a Program,
    values: Vec<Option<Value>>,
    inputs: usize,
    next: usize,
}

/// What a step has done.
#[derive(Debug, Default)]
pub struct Done {
    /// Its array; none if it is a number.
    pub made: Option<Tensor>,
    /// The arrays that no later step reads. They are gone.
    pub gone: Vec<usize>,
}

impl Program {
    /// Read a program for so many arrays, of which `results` are read at its end.
    ///
    /// # Errors
    /// What is wrong with its text.
    pub fn parse(text: &str, inputs: usize, results: &[u32]) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("{} bytes are over the limit of {BYTES_MAX}", text.len()));
        }
        let steps: Vec<Step> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if steps.len() > STEPS_MAX {
            return Err(format!("{} steps are over the limit of {STEPS_MAX}", steps.len()));
        }
        let count = inputs + steps.len();
        let mut last_uses = vec![0; count];
        for (at, (op, operands, _)) in steps.iter().enumerate() {
            if op.len() > NAME_MAX || operands.len() > OPERANDS_MAX {
                return Err(format!("step {at} has more than {OPERANDS_MAX} operands"));
            }
            for operand in operands {
                if *operand >= inputs + at {
                    return Err(format!(
                        "step {at}, {op}, reads array {operand} before it is made"
                    ));
                }
                last_uses[*operand] = at;
            }
        }
        for result in results {
            match last_uses.get_mut(*result as usize) {
                Some(last) => *last = usize::MAX,
                None => {
                    return Err(format!("there is no array {result}: the program has {count}"));
                }
            }
        }
        Ok(Self { steps, last_uses })
    }

    /// The name of a step's operation.
    pub fn operation(&self, step: usize) -> &str {
        self.steps.get(step).map_or("", |(op, _, _)| op)
    }
}

impl<'a> Run<'a> {
    /// Begin a program with these arrays.
    pub fn new(program: &'a Program, inputs: Vec<Tensor>) -> Self {
        let count = inputs.len();
        let values = inputs.into_iter().map(|array| Some(Value::Array(array))).collect();
        Self { program, values, inputs: count, next: 0 }
    }

    /// The step that is next; none at the end.
    pub fn next_step(&self) -> Option<usize> {
        (self.next < self.program.steps.len()).then_some(self.next)
    }

    /// Run the next step.
    ///
    /// # Errors
    /// [`Stop`]. After [`Stop::Elsewhere`] the step can be run again.
    pub fn step(&mut self, room: &mut dyn Room) -> Result<Done, Stop> {
        let Some((op, operands, params)) = self.program.steps.get(self.next) else {
            return Ok(Done::default());
        };
        let gone = || value("an operand is gone");
        let read = operands
            .iter()
            .map(|at| self.values.get(*at).and_then(Option::as_ref).ok_or_else(gone));
        let read = read.collect::<Result<Vec<_>, _>>()?;
        room.touch(read.iter().map(|value| value.work()).fold(0, usize::saturating_add))?;
        let made = run(op, &mut Call { operands: read, params, room })?;
        let kept = match &made {
            Value::Array(array) => Some(array.clone()),
            Value::Number(_) => None,
        };
        self.values.push(Some(made));
        let mut gone = Vec::new();
        let at = self.next;
        let unread = self.inputs + at;
        for operand in operands.iter().copied().chain([unread]) {
            // An array that no later step reads is dropped at once.
            let is_last = self.program.last_uses[operand] <= at;
            if is_last && self.values[operand].take().is_some() {
                gone.push(operand);
            }
        }
        self.next += 1;
        Ok(Done { made: kept, gone })
    }

    /// An array at the end.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn result(&self, at: u32, room: &mut dyn Room) -> Result<Tensor, Stop> {
        let found = self.values.get(at as usize).and_then(Option::as_ref);
        found.ok_or_else(|| value("no such result"))?.array(room)
    }
}

fn run(op: &str, call: &mut Call<'_>) -> Result<Value, Stop> {
    if op == "number" {
        let read = call.params.first().and_then(Param::number);
        return read.map(Value::Number).ok_or_else(|| value("the number is missing"));
    }
    if call.operands.is_empty() && matches!(op, "concat" | "stack") {
        return Err(value(format!("{op} needs at least one array")));
    }
    let made = match op {
        "literal" => create::literal(call),
        "full" => create::full(call),
        "arange" => create::arange(call),
        "linspace" => create::linspace(call),
        "eye" => create::eye(call),
        "one_hot" => create::one_hot(call),
        "astype" => create::astype(call),
        "round" => elementwise::round(call),
        "where" => elementwise::choose(call),
        "cumulative_sum" => reduce::cumulative(call, false),
        "cumulative_prod" => reduce::cumulative(call, true),
        "softmax" => reduce::softmax(call),
        "normalize" => reduce::normalize(call),
        "sort" => order::sort(call),
        "argsort" => order::argsort(call),
        "argtopk" => order::argtopk(call),
        "unique_values" => order::unique(call, false),
        "unique_counts" => order::unique(call, true),
        "nonzero" => order::nonzero(call),
        "searchsorted" => order::searchsorted(call, false),
        "searchsorted_right" => order::searchsorted(call, true),
        "take_along_axis" => order::take_along_axis(call),
        "flip" => order::flip(call),
        "index" => index::index(call),
        "take" => index::take(call),
        "reshape" => shapes::reshape(call),
        "permute_dims" => shapes::permute(call),
        "broadcast_to" => shapes::broadcast_to(call),
        "concat" => shapes::concat(call),
        "stack" => shapes::stack(call),
        "repeat" => shapes::repeat(call),
        "matmul" => product::matmul(call),
        "nms" => boxes::nms(call),
        _ => elementwise::binary(op, call)
            .or_else(|| elementwise::unary(op, call))
            .or_else(|| reduce::reduction(op, call))
            .unwrap_or_else(|| Err(value(format!("there is no operation {op:?}")))),
    };
    made.map(Value::Array)
}
