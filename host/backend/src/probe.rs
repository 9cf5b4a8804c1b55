//! First runs of a model, on zeros and short texts. Dimensions that may vary are 1.
//!
//! A first run costs more than later ones, so models run once before they serve. It also shows
//! faults that do not depend on the inputs.

use std::fmt::Display;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use gristmill_core::{
    BufferPool, Dtype, Model, ModelError, ModelErrorKind, ModelInfo, Tensor, TensorInfo,
    run_guarded,
};

/// The most bytes of the inputs that are made up for a first run.
const INPUT_BYTES_MAX: usize = 64 << 20;

/// The most texts that are made up for an input.
const TEXTS_MAX: usize = 1 << 16;

/// The longest time of a first run in the server.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);

/// Run each instance once with one row, as the child did.
pub(crate) fn warm_up(
    instances: &mut [Box<dyn Model>],
    info: &ModelInfo,
    pool: &BufferPool,
) -> Result<(), ModelError> {
    let one = inputs(info, pool)?;
    instances.iter_mut().try_for_each(|model| run_within(model.as_mut(), &one, RUN_TIME_MAX))
}

/// Run the model once with one row, without a limit on its time.
pub(crate) fn run_once(
    model: &mut dyn Model,
    info: &ModelInfo,
    pool: &BufferPool,
) -> Result<(), ModelError> {
    let inputs = inputs(info, pool)?;
    model.run(&inputs).map(drop)
}

/// Run it once. If the model's runs can be ended, this one ends after `time`.
fn run_within(model: &mut dyn Model, inputs: &[Tensor], time: Duration) -> Result<(), ModelError> {
    let interrupt = model.interrupt();
    let (outcome, ended) = std::thread::scope(|scope| {
        let (running, over) = channel::<()>();
        let ends = interrupt.as_ref();
        let timer = std::thread::Builder::new().spawn_scoped(scope, move || {
            let late = over.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if let Some(interrupt) = ends.filter(|_| late) {
                interrupt.interrupt();
            }
            late
        });
        let outcome = run_guarded(model, inputs);
        drop(running);
        let ended = timer.is_ok_and(|timer| timer.join().unwrap_or(false));
        (outcome, ended)
    });
    if ended {
        interrupt.inspect(|interrupt| interrupt.rearm());
        let why = format!("a first run took longer than {} s", time.as_secs());
        return Err(ModelError::new(why));
    }
    match outcome {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ModelErrorKind::OverLimit => Err(error),
        Err(error) => {
            let text = format!("a first run on zeros failed: {}", error.text);
            Err(ModelError { text, ..error })
        }
    }
}

/// One row for each of the model's inputs.
fn inputs(info: &ModelInfo, pool: &BufferPool) -> Result<Vec<Tensor>, ModelError> {
    let mut left = INPUT_BYTES_MAX;
    info.inputs.iter().map(|input| made_up(input, &mut left, pool)).collect()
}

fn made_up(input: &TensorInfo, left: &mut usize, pool: &BufferPool) -> Result<Tensor, ModelError> {
    let failed = |why: &dyn Display| {
        ModelError::new(format!("input {:?} cannot be made up: {why}", input.name))
    };
    let shape: Vec<usize> = input.dims.iter().map(|dim| dim.unwrap_or(1)).collect();
    let elements = shape.iter().try_fold(1_usize, |all, dim| all.checked_mul(*dim));
    let bytes = elements.and_then(|all| all.checked_mul(input.dtype.size_bytes().unwrap_or(32)));
    let Some((elements, bytes)) = elements.zip(bytes).filter(|(_, bytes)| *bytes <= *left) else {
        return Err(failed(&format_args!("{shape:?} is too large")));
    };
    *left -= bytes;
    let made = match input.dtype {
        Dtype::String if elements > TEXTS_MAX => return Err(failed(&"too many texts")),
        Dtype::String => Tensor::from_strings(pool, shape.as_slice().into(), &vec!["a"; elements]),
        dtype => {
            let zeros = pool.fill(bytes, |bytes| bytes.fill(0));
            Tensor::new(dtype, shape.as_slice().into(), zeros)
        }
    };
    made.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests;
