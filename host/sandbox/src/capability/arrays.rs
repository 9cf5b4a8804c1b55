//! `arrays`: programs of operations on tensors, which run in the call's turn and on its account.
//!
//! Invariant: the buffer of an array counts as long as the program, or the guest, has an array that
//! keeps it. Those of the tensors that the guest gives are counted already.

mod bindings;

use std::collections::{HashMap, HashSet};

use gristmill_arrays::{Done, Kind, Program, Room, Run, Stop, aligned};
use gristmill_core::{BufferPool, Tensor};
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use super::tensors::wit_dtype_of;
use crate::call::{CallState, INLINE_BYTES_MAX};
use crate::error::PASSED_KEY;

const INTERFACE: &str = "gristmill:plugin/arrays@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

/// A byte of a program takes as long to read as so many to copy, and what is read of it takes at
/// most so many bytes: `0,` is a parameter of 32 bytes, in a list that doubles as it grows.
const PROGRAM_WEIGHT: usize = 64;

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

/// The bounds of one step.
struct Bounds<'a, S> {
    state: &'a mut CallState<S>,
    reserved: usize,
    refused: Option<wasmtime::Error>,
}

impl<S: Send> Room for Bounds<'_, S> {
    fn pool(&self) -> &BufferPool {
        &self.state.pool
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Stop> {
        let limit = self.state.limits.tensor_bytes;
        if bytes > limit {
            let why =
                format!("{bytes} bytes are over the limit of {limit} for one array ({PASSED_KEY})");
            return Err(Stop::Fault(Kind::Value, why));
        }
        self.touch(bytes)?;
        let bytes = BufferPool::bytes_taken(bytes);
        if let Err(limited) = self.state.hold(bytes) {
            self.refused = Some(limited.into());
            return Err(Stop::Host);
        }
        self.reserved += bytes;
        Ok(())
    }

    fn touch(&mut self, bytes: usize) -> Result<(), Stop> {
        if bytes > INLINE_BYTES_MAX && !self.state.meter.is_long() {
            return Err(Stop::Elsewhere);
        }
        Ok(())
    }

    fn go_on(&self) -> Result<(), Stop> {
        self.state.may_go_on().map_err(|_| Stop::Host)
    }
}

impl<S: Send> CallState<S> {
    /// Do one thing within the call's bounds, on another thread if it is large. Returns what it
    /// made and the memory that stays counted for it.
    async fn bounded<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Room) -> Result<T, Stop>,
    ) -> wasmtime::Result<Result<(T, usize), (Kind, String)>> {
        loop {
            let mut bounds = Bounds { state: self, reserved: 0, refused: None };
            let done = work(&mut bounds);
            let Bounds { reserved, refused, .. } = bounds;
            match done {
                Ok(made) => return Ok(Ok((made, reserved))),
                Err(Stop::Elsewhere) => {
                    self.give_back(reserved);
                    self.meter.off_serving_threads().await;
                }
                Err(Stop::Fault(kind, why)) => {
                    self.give_back(reserved);
                    return Ok(Err((kind, why)));
                }
                Err(Stop::Host) => {
                    self.check_cpu()?;
                    return Err(refused.unwrap_or_else(|| wasmtime::Error::msg("stopped")));
                }
            }
        }
    }

    /// Run a program. Returns its results, which are counted.
    async fn run_program(
        &mut self,
        tensors: &[Resource<Tensor>],
        text: &str,
        results: &[u32],
    ) -> wasmtime::Result<Result<Vec<Tensor>, wit::Fault>> {
        self.before_looking_at(text.len().saturating_mul(PROGRAM_WEIGHT)).await?;
        let most = self.limits.handles;
        if tensors.len() > most || results.len() > most {
            let why = format!("more than {most} tensors are given or wanted");
            return Ok(Err(fault(wit::FaultKind::InvalidProgram, 0, why)));
        }
        // What is parsed takes more than its text: a number of two bytes is a value.
        let parsed = text.len() * PROGRAM_WEIGHT;
        self.hold(parsed)?;
        let program = Program::parse(text, tensors.len(), results);
        let program = match program {
            Ok(program) => program,
            Err(why) => {
                self.give_back(parsed);
                return Ok(Err(fault(wit::FaultKind::InvalidProgram, 0, why)));
            }
        };
        let mut held = Held::default();
        let ran = self.run_steps(tensors, &program, results, &mut held).await?;
        let kept = ran.iter().flatten().map(Tensor::buffer_id).collect();
        self.give_back(held.but_those(&kept));
        self.give_back(parsed);
        Ok(ran)
    }

    async fn run_steps(
        &mut self,
        tensors: &[Resource<Tensor>],
        program: &Program,
        results: &[u32],
        held: &mut Held,
    ) -> wasmtime::Result<Result<Vec<Tensor>, wit::Fault>> {
        let mut inputs = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let tensor = self.table.get(tensor)?.clone();
            match self.bounded(|room| aligned(tensor.clone(), room)).await? {
                Ok((tensor, bytes)) => {
                    held.add(Some(&tensor), bytes);
                    inputs.push(tensor);
                }
                Err((kind, why)) => return Ok(Err(fault(kind_of(kind), 0, why))),
            }
        }
        let mut run = Run::new(program, inputs);
        while let Some(step) = run.next_step() {
            self.meter.take_turns().await?;
            match self.bounded(|room| run.step(room)).await? {
                Ok((Done { made, gone }, reserved)) => {
                    let is_new = made.as_ref().is_some_and(|made| !held.has(made));
                    let kept = made
                        .as_ref()
                        .filter(|_| is_new)
                        .map_or(0, |made| BufferPool::bytes_taken(made.buffer_bytes()));
                    match kept.checked_sub(reserved) {
                        Some(more) => self.hold(more)?,
                        None => self.give_back(reserved - kept),
                    }
                    held.add(made.as_ref(), kept);
                    for gone in gone {
                        self.give_back(held.drop_value(gone));
                    }
                }
                Err((kind, why)) => {
                    let why = format!("{}: {why}", program.operation(step));
                    return Ok(Err(fault(kind_of(kind), step, why)));
                }
            }
        }
        let mut found = Vec::with_capacity(results.len());
        for result in results {
            match self.bounded(|room| run.result(*result, room)).await? {
                Ok((tensor, bytes)) => {
                    held.add(Some(&tensor), bytes);
                    found.push(tensor);
                }
                Err((kind, why)) => return Ok(Err(fault(kind_of(kind), 0, why))),
            }
        }
        Ok(Ok(found))
    }
}

/// The buffers of a program's arrays.
#[derive(Default)]
struct Held {
    /// Of each array.
    values: Vec<Option<usize>>,
    /// By its number: the arrays that keep it, and the bytes that count for it.
    buffers: HashMap<usize, (usize, usize)>,
}

impl Held {
    fn has(&self, array: &Tensor) -> bool {
        self.buffers.contains_key(&array.buffer_id())
    }

    /// One more array, whose buffer counts with so many bytes if it is new.
    fn add(&mut self, array: Option<&Tensor>, bytes: usize) {
        let buffer = array.map(Tensor::buffer_id);
        if let Some(buffer) = buffer {
            self.buffers.entry(buffer).or_insert((0, bytes)).0 += 1;
        }
        self.values.push(buffer);
    }

    /// An array is gone. Returns the bytes that count no longer.
    fn drop_value(&mut self, at: usize) -> usize {
        let Some(buffer) = self.values.get_mut(at).and_then(Option::take) else { return 0 };
        match self.buffers.get_mut(&buffer) {
            Some((1, bytes)) => {
                let bytes = *bytes;
                self.buffers.remove(&buffer);
                bytes
            }
            Some((arrays, _)) => {
                *arrays -= 1;
                0
            }
            None => 0,
        }
    }

    /// The bytes of all buffers but these.
    fn but_those(self, kept: &HashSet<usize>) -> usize {
        let gone = self.buffers.into_iter().filter(|(buffer, _)| !kept.contains(buffer));
        gone.map(|(_, (_, bytes))| bytes).sum()
    }
}

fn fault(kind: wit::FaultKind, step: usize, message: String) -> wit::Fault {
    wit::Fault { kind, step: step as u32, message }
}

fn kind_of(kind: Kind) -> wit::FaultKind {
    match kind {
        Kind::Value => wit::FaultKind::InvalidValue,
        Kind::Index => wit::FaultKind::InvalidIndex,
        Kind::Type => wit::FaultKind::InvalidType,
    }
}

fn shape_of(tensor: &Tensor) -> Vec<u32> {
    tensor.shape().iter().map(|dim| *dim as u32).collect()
}

impl<S: Send> wit::Host for CallState<S> {
    async fn evaluate(
        &mut self,
        tensors: Vec<Resource<Tensor>>,
        program: String,
        results: Vec<u32>,
    ) -> wasmtime::Result<Result<Vec<wit::Made>, wit::Fault>> {
        let found = match self.run_program(&tensors, &program, &results).await? {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault)),
        };
        let made = found.into_iter().map(|tensor| {
            let (dtype, shape) = (wit_dtype_of(tensor.dtype()), shape_of(&tensor));
            Ok(wit::Made { tensor: self.table.push(tensor)?, dtype, shape })
        });
        made.collect::<wasmtime::Result<_>>().map(Ok)
    }

    async fn read(
        &mut self,
        tensors: Vec<Resource<Tensor>>,
        program: String,
        result: u32,
    ) -> wasmtime::Result<Result<wit::Elements, wit::Fault>> {
        let before = self.host_bytes_used();
        let mut found = match self.run_program(&tensors, &program, &[result]).await? {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault)),
        };
        let Some(tensor) = found.pop() else { return Err(wasmtime::Error::msg("no result")) };
        let bytes = tensor.as_bytes().len();
        self.before_copying(bytes).await?;
        let (dtype, shape) = (wit_dtype_of(tensor.dtype()), shape_of(&tensor));
        let data = tensor.as_bytes().to_vec();
        // The array goes at once. The bytes that the guest gets count like those that it reads of
        // a tensor.
        drop(tensor);
        self.give_back(self.host_bytes_used().saturating_sub(before + bytes));
        Ok(Ok(wit::Elements { dtype, shape, data }))
    }
}
