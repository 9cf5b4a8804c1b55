//! Running what was noted.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;

use super::{Array, NUMBER, State, Step};
use crate::bindings::arrays;
use crate::{Failure, Tensor};

/// Longer programs are run in parts.
const STEPS_MAX: usize = 1000;

/// Let the host make an array, and those on the way that the plugin still has.
pub(super) fn make(array: &Array<'_>) -> Result<(), Failure> {
    let mut order = order(array)?;
    let live = live(&order, array);
    while !order.is_empty() {
        let later = order.split_off(order.len().min(STEPS_MAX));
        // A part keeps what a later one reads, but for numbers.
        let read: HashSet<_> = later.iter().flat_map(|(_, step)| &step.operands).map(id).collect();
        let is_kept = |one: &Array<'_>| read.contains(&id(one)) || live.contains(&id(one));
        let wanted = |(one, step): &(Array<'_>, Step<'_>)| {
            id(one) == id(array) || (step.name != NUMBER && is_kept(one))
        };
        let wanted = order.iter().filter(|step| wanted(step)).map(|(one, _)| one.clone());
        let wanted: Vec<_> = wanted.collect();
        evaluate(order, &wanted)?;
        order = later;
    }
    Ok(())
}

/// The steps, and before them the numbers that they read and that stand in an earlier part. A
/// number that was given back would be a tensor, which has a dtype of its own.
fn with_numbers(order: Order<'_>) -> Order<'_> {
    let mut seen: HashSet<_> = order.iter().map(|(array, _)| id(array)).collect();
    let mut numbers = Order::new();
    for operand in order.iter().flat_map(|(_, step)| &step.operands) {
        if let State::Noted(step) = &*operand.0.state.borrow()
            && step.name == NUMBER
            && seen.insert(id(operand))
        {
            numbers.push((operand.clone(), step.clone()));
        }
    }
    numbers.extend(order);
    numbers
}

/// The elements of an array. Alone, it does not become a tensor on the way.
pub(super) fn read(array: &Array<'_>) -> Result<arrays::Elements, Failure> {
    let order = order(array)?;
    if order.is_empty() || order.len() > STEPS_MAX || !live(&order, array).is_empty() {
        return array.with_tensor(|tensor| arrays::Elements {
            dtype: tensor.dtype(),
            shape: tensor.shape(),
            data: tensor.data(),
        });
    }
    let program = Program::of(&order);
    let elements = program.with(|tensors, text| arrays::read(tensors, text, program.number(array)));
    elements.map_err(|fault| failure(&fault, &order))
}

/// A tensor of an array's elements.
pub(super) fn tensor(array: &Array<'_>) -> Result<Tensor, Failure> {
    make(array)?;
    // Others may have it, too: one more step gives a tensor of its own, of the same memory.
    let whole =
        Step { name: "index", operands: vec![array.clone()], params: "[[]]".into(), depth: 1 };
    let copy = Array::of(State::Noted(whole));
    make(&copy)?;
    match Rc::into_inner(copy.0).map(|node| node.state.into_inner()) {
        Some(State::Made(tensor)) => {
            Rc::into_inner(tensor).ok_or_else(|| Failure::internal("the array is still in use"))
        }
        _ => Err(Failure::internal("the array was not made")),
    }
}

type Order<'t> = Vec<(Array<'t>, Step<'t>)>;

fn id(array: &Array<'_>) -> *const () {
    Rc::as_ptr(&array.0).cast()
}

/// The arrays that are to be made for `last`, and it, each after those that it is made of.
fn order<'t>(last: &Array<'t>) -> Result<Order<'t>, Failure> {
    let (mut order, mut seen, mut todo) = (Vec::new(), HashSet::new(), vec![(last.clone(), false)]);
    while let Some((array, is_ready)) = todo.pop() {
        let state = array.0.state.borrow();
        let step = match &*state {
            State::Noted(step) => step,
            State::Failed(failure) => return Err(failure.clone()),
            State::Given(_) | State::Made(_) => continue,
        };
        if is_ready {
            order.push((array.clone(), step.clone()));
        } else if seen.insert(id(&array)) {
            todo.push((array.clone(), true));
            todo.extend(step.operands.iter().map(|operand| (operand.clone(), false)));
        }
    }
    Ok(order)
}

/// Those that the plugin still has, but for `last`.
fn live<'t>(order: &Order<'t>, last: &Array<'t>) -> HashSet<*const ()> {
    // Each step of the order has its operands twice: in itself, and in the array.
    let mut uses = HashMap::<_, usize>::new();
    for (_, step) in order {
        for operand in &step.operands {
            *uses.entry(id(operand)).or_default() += 2;
        }
    }
    let is_live = |array: &Array<'t>, step: &Step<'t>| {
        let own_references = 1 + uses.get(&id(array)).copied().unwrap_or_default();
        let is_held = Rc::strong_count(&array.0) > own_references;
        step.name != NUMBER && id(array) != id(last) && is_held
    };
    order.iter().filter(|(array, step)| is_live(array, step)).map(|(array, _)| id(array)).collect()
}

/// The steps as the host reads them.
struct Program<'t> {
    given: Vec<Array<'t>>,
    numbers: HashMap<*const (), u32>,
    text: String,
}

impl<'t> Program<'t> {
    fn of(order: &Order<'t>) -> Self {
        let steps: HashSet<_> = order.iter().map(|(array, _)| id(array)).collect();
        let mut given = Vec::new();
        let mut numbers = HashMap::new();
        for operand in order.iter().flat_map(|(_, step)| &step.operands) {
            if !steps.contains(&id(operand)) && !numbers.contains_key(&id(operand)) {
                numbers.insert(id(operand), given.len() as u32);
                given.push(operand.clone());
            }
        }
        let mut text = String::from("[");
        for (at, (array, step)) in order.iter().enumerate() {
            numbers.insert(id(array), (given.len() + at) as u32);
            let operands = step.operands.iter().map(|operand| numbers[&id(operand)]);
            let (operands, comma) = (super::params::list(operands), if at == 0 { "" } else { "," });
            let _ = write!(text, "{comma}[\"{}\",{operands},{}]", step.name, step.params);
        }
        text.push(']');
        Self { given, numbers, text }
    }

    fn number(&self, array: &Array<'t>) -> u32 {
        self.numbers[&id(array)]
    }

    fn with<T>(&self, run: impl FnOnce(&[&Tensor], &str) -> T) -> T {
        let states: Vec<_> = self.given.iter().map(|array| array.0.state.borrow()).collect();
        let tensors: Vec<_> = states
            .iter()
            .filter_map(|state| match &**state {
                State::Given(tensor) => Some(*tensor),
                State::Made(tensor) => Some(&**tensor),
                State::Noted(_) | State::Failed(_) => None,
            })
            .collect();
        run(&tensors, &self.text)
    }
}

/// Run the steps. These arrays stay on the host.
fn evaluate<'t>(order: Order<'t>, wanted: &[Array<'t>]) -> Result<(), Failure> {
    let order = with_numbers(order);
    let program = Program::of(&order);
    let results: Vec<_> = wanted.iter().map(|array| program.number(array)).collect();
    let made = program.with(|tensors, text| arrays::evaluate(tensors, text, &results));
    for (array, made) in wanted.iter().zip(made.map_err(|fault| failure(&fault, &order))?) {
        array.0.state.replace(State::Made(Rc::new(made.tensor)));
    }
    Ok(())
}

fn failure(fault: &arrays::Fault, order: &Order<'_>) -> Failure {
    let place = order.get(fault.step as usize).map(|(array, _)| format!(" ({})", array.0.place));
    Failure::Internal(format!("{}{}", fault.message, place.unwrap_or_default()))
}
