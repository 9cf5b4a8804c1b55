//! `wasi:nn` 0.2: runs of models, for components that are written for other hosts of it.
//!
//! A graph is a model that the pipeline's document names. A computation is a run as `models` has
//! it, with the same bounds, charges and waiting. A component brings no models of its own: those
//! of a server are proven, and shared by all.

mod bindings;
mod resources;
mod tensor;

use gristmill_core::NamedTensor;
use tokio::sync::oneshot;
use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker, Resource, WasmList};

use self::bindings::wit;
use self::bindings::wit::errors::ErrorCode;
use self::resources::{Error, ErrorKind, ExecutionContext, Graph, NnTensor, RESOURCE_BYTES};
use self::tensor::type_of;
use super::methods::link_instead;
use super::models::{OVER, check_model, check_names, input_bytes, no_models};
use crate::call::CallState;
use crate::model_runs::{RunFault, RunFaultKind, WantedRun};

const TENSOR: &str = "wasi:nn/tensor@0.2.0-rc-2024-10-28";
const GRAPH: &str = "wasi:nn/graph@0.2.0-rc-2024-10-28";

/// The interfaces that it links.
pub(crate) const INTERFACES: &[&str] =
    &[TENSOR, GRAPH, "wasi:nn/inference@0.2.0-rc-2024-10-28", "wasi:nn/errors@0.2.0-rc-2024-10-28"];

const NO_LOADING: &str = "a plugin loads no models of its own: upload the model to the server, \
    name it in the pipeline's document under \"models\", and load it by that name with \
    `load-by-name`";

/// An outcome as the guest gets it.
type Told<T> = Result<T, Resource<Error>>;

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::tensor::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    wit::graph::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    wit::inference::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    wit::errors::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    link_instead(linker, |linker| {
        tensor::link_instead(&mut linker.instance(TENSOR)?)?;
        // Refuses before the parts of a model are copied.
        type Parts =
            (WasmList<WasmList<u8>>, wit::graph::GraphEncoding, wit::graph::ExecutionTarget);
        linker.instance(GRAPH)?.func_wrap(
            "load",
            |mut store: StoreContextMut<'_, CallState<S>>, _: Parts| {
                Ok((store.data_mut().refused_load()?,))
            },
        )
    })
}

impl<S: Send> CallState<S> {
    /// The error, counted, as the guest gets it.
    fn nn_error<T>(&mut self, kind: ErrorKind, data: String) -> wasmtime::Result<Told<T>> {
        self.hold(RESOURCE_BYTES + data.len())?;
        Ok(Err(self.table.push(Error { kind, data })?))
    }

    fn nn_fault<T>(&mut self, RunFault { kind, text }: RunFault) -> wasmtime::Result<Told<T>> {
        self.nn_error(ErrorKind::Run(kind), text)
    }

    fn refused_load(&mut self) -> wasmtime::Result<Told<Resource<Graph>>> {
        self.nn_error(ErrorKind::Unsupported, NO_LOADING.into())
    }

    /// Ask whether the call may run the model.
    fn ask_for(&self, model: &str) -> Result<oneshot::Receiver<Result<(), RunFault>>, RunFault> {
        check_model(model)?;
        let models = self.models.as_ref().ok_or_else(no_models)?;
        Ok(models.runs.ask_for(model.to_owned()))
    }

    /// The outputs as the guest gets them.
    fn nn_outputs(
        &mut self,
        model: &str,
        outputs: Vec<NamedTensor>,
    ) -> wasmtime::Result<Told<Vec<wit::inference::NamedTensor>>> {
        let untyped = |output: &&NamedTensor| type_of(output.tensor.dtype()).is_none();
        if let Some(NamedTensor { name, tensor }) = outputs.iter().find(untyped) {
            let why = format!(
                "model {model:?}: wasi:nn has no type for its output {name:?} of {}: run it with \
                 gristmill:plugin/models",
                tensor.dtype()
            );
            return self.nn_error(ErrorKind::Unsupported, why);
        }
        let outputs = outputs.into_iter().map(|NamedTensor { name, tensor }| {
            Ok((name.to_string(), self.table.push(NnTensor::of_model(tensor))?))
        });
        Ok(Ok(outputs.collect::<wasmtime::Result<_>>()?))
    }
}

impl<S: Send> wit::graph::Host for CallState<S> {
    fn load(
        &mut self,
        _: Vec<Vec<u8>>,
        _: wit::graph::GraphEncoding,
        _: wit::graph::ExecutionTarget,
    ) -> wasmtime::Result<Told<Resource<Graph>>> {
        self.refused_load()
    }

    async fn load_by_name(&mut self, name: String) -> wasmtime::Result<Told<Resource<Graph>>> {
        self.meter.take_turns().await?;
        let granted = match self.ask_for(&name) {
            Ok(granted) => granted.await.map_err(|_| wasmtime::Error::msg(OVER))?,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = granted {
            return self.nn_fault(fault);
        }
        self.hold(RESOURCE_BYTES)?;
        Ok(Ok(self.table.push(Graph { model: name })?))
    }
}

impl<S: Send> wit::graph::HostGraph for CallState<S> {
    fn init_execution_context(
        &mut self,
        graph: Resource<Graph>,
    ) -> wasmtime::Result<Told<Resource<ExecutionContext>>> {
        self.hold(RESOURCE_BYTES)?;
        let model = self.table.get(&graph)?.model.clone();
        Ok(Ok(self.table.push(ExecutionContext { model })?))
    }

    fn drop(&mut self, graph: Resource<Graph>) -> wasmtime::Result<()> {
        self.table.delete(graph)?;
        Ok(())
    }
}

impl<S: Send> wit::inference::Host for CallState<S> {}

impl<S: Send> wit::inference::HostGraphExecutionContext for CallState<S> {
    async fn compute(
        &mut self,
        context: Resource<ExecutionContext>,
        inputs: Vec<wit::inference::NamedTensor>,
    ) -> wasmtime::Result<Told<Vec<wit::inference::NamedTensor>>> {
        let model = self.table.get(&context)?.model.clone();
        // They are the host's now, whatever becomes of the run.
        let inputs =
            inputs.into_iter().map(|(name, tensor)| Ok((name, self.table.delete(tensor)?)));
        let inputs = inputs.collect::<wasmtime::Result<Vec<_>>>()?;
        let bytes = input_bytes(inputs.iter().map(|(name, _)| name.as_str()));
        if let Err(fault) = self.begin_runs(1, bytes).await? {
            return self.nn_fault(fault);
        }
        let run = match wanted(&model, inputs) {
            Ok(run) => run,
            Err(fault) => return self.nn_fault(fault),
        };
        let outcome = self.run_models(vec![run]).await?.pop();
        match outcome.ok_or_else(|| wasmtime::Error::msg("a run has no outcome"))? {
            Ok(outputs) => {
                let outputs = self.counted(outputs)?;
                self.nn_outputs(&model, outputs)
            }
            Err(fault) => self.nn_fault(fault),
        }
    }

    fn drop(&mut self, context: Resource<ExecutionContext>) -> wasmtime::Result<()> {
        self.table.delete(context)?;
        Ok(())
    }
}

impl<S: Send> wit::errors::Host for CallState<S> {}

impl<S: Send> wit::errors::HostError for CallState<S> {
    fn code(&mut self, error: Resource<Error>) -> wasmtime::Result<ErrorCode> {
        Ok(code_of(self.table.get(&error)?.kind))
    }

    fn data(&mut self, error: Resource<Error>) -> wasmtime::Result<String> {
        Ok(self.table.get(&error)?.data.clone())
    }

    fn drop(&mut self, error: Resource<Error>) -> wasmtime::Result<()> {
        self.table.delete(error)?;
        Ok(())
    }
}

/// The run with these inputs.
fn wanted(model: &str, inputs: Vec<(String, NnTensor)>) -> Result<WantedRun, RunFault> {
    check_names(model, inputs.iter().map(|(name, _)| name.as_str()))?;
    let inputs = inputs.into_iter().map(|(name, tensor)| match tensor.into_tensor() {
        Ok(tensor) => Ok(NamedTensor { name: name.into(), tensor }),
        Err(why) => {
            let text = format!("model {model:?}: input {name:?}: {why}");
            Err(RunFault::new(RunFaultKind::InvalidInput, text))
        }
    });
    Ok(WantedRun { model: model.to_owned(), inputs: inputs.collect::<Result<_, _>>()? })
}

/// The code of an error. Its text says the rest.
fn code_of(kind: ErrorKind) -> ErrorCode {
    match kind {
        ErrorKind::Unsupported => ErrorCode::UnsupportedOperation,
        ErrorKind::Run(RunFaultKind::NotGranted) => ErrorCode::NotFound,
        ErrorKind::Run(RunFaultKind::InvalidInput) => ErrorCode::InvalidArgument,
        ErrorKind::Run(
            RunFaultKind::Overloaded | RunFaultKind::Unavailable | RunFaultKind::Failed,
        ) => ErrorCode::RuntimeError,
    }
}
