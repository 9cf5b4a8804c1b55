//! A request's inputs as tensors.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{BufferPool, ByteBudget, ErrorCode, NamedTensor, Tensor};
use gristmill_oip::{InferRequest, Input};
use gristmill_serve::Caller;
use gristmill_snapshot::ServedModel;
use gristmill_transport::{INLINE_BYTES_MAX, Problem, body};

use super::Inference;

/// The most names of inputs in a message. Some exporters make an optional input of each weight.
const NAMES_SHOWN: usize = 64;

impl Inference {
    /// The request's tensors, with the model's own names. Large ones are made off the serving
    /// threads.
    ///
    /// # Errors
    /// An input is unknown to the model or is not a tensor, or the budget has no room.
    pub(super) async fn inputs(
        &self,
        served: &ServedModel,
        caller: Caller<'_>,
        request: &mut InferRequest,
    ) -> Result<Vec<NamedTensor>, Problem> {
        let info = served.lane.info();
        let known_inputs = || info.inputs.iter().chain(&info.optional);
        let names = || known_inputs().take(NAMES_SHOWN).map(|info| &*info.name).collect::<Vec<_>>();
        let inputs = &mut request.inputs;
        if inputs.len() > info.inputs.len() + info.optional.len() {
            let (given_count, names) = (inputs.len(), names());
            let detail =
                format!("{given_count} inputs are given: the model's inputs are {names:?}");
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        let named = |input: &Input| {
            let info = known_inputs().find(|info| *info.name == *input.name);
            info.map(|info| info.name.clone()).ok_or_else(|| {
                let (name, names) = (&input.name, names());
                let detail = format!("unknown input {name:?}: the model's inputs are {names:?}");
                Problem::new(ErrorCode::InvalidRequest, detail)
            })
        };
        let long: usize = inputs.iter().filter(|i| i.takes_work()).map(|i| i.data.len()).sum();
        if long <= INLINE_BYTES_MAX {
            let tensor = |input: &mut Input| {
                let name = named(input)?;
                let tensor = made(input, caller.budget(), self.pool())?;
                Ok(NamedTensor { name, tensor })
            };
            return inputs.iter_mut().map(tensor).collect();
        }
        let names: Vec<_> = inputs.iter().map(named).collect::<Result<_, _>>()?;
        let mut inputs = std::mem::take(inputs);
        let (budget, pool) = (caller.budget().cloned(), self.pool().clone());
        let make = move || {
            let tensors = inputs.iter_mut().map(|input| made(input, budget.as_ref(), &pool));
            tensors.collect::<Result<Vec<_>, _>>()
        };
        let tensors = self.offload().run(caller.name(), make).await??;
        let named = names.into_iter().zip(tensors);
        Ok(named.map(|(name, tensor)| NamedTensor { name, tensor }).collect())
    }
}

/// An input's tensor. If its bytes must be copied, the copy counts instead of them. The backend's
/// copy of texts counts, too.
fn made(
    input: &mut Input,
    budget: Option<&Arc<ByteBudget>>,
    pool: &BufferPool,
) -> Result<Tensor, Problem> {
    let (len, is_aligned) = (input.data.len(), input.is_aligned());
    let copied = if is_aligned { 0 } else { len };
    let reserve = |budget| body::try_reserved(copied + input.run_bytes(), budget);
    if let Some(held) = budget.map(reserve).transpose()?.flatten() {
        let mut data = std::mem::take(&mut input.data);
        if !is_aligned {
            let mut copy = pool.begin(len);
            copy.append(&data);
            data = Bytes::from_owner(copy);
        }
        input.data = held.attach_to(data);
    }
    Ok(input.tensor(pool)?)
}
