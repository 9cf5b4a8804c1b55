//! A loaded plugin, and the two calls a pipeline makes.

mod answer;

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Name, NamedTensor, PluginLimits};
use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower, Resource,
    types::ComponentItem,
};

use self::answer::{check_prepared, check_response, diagnose, failure};
use crate::bindings::{prepare, tensors, types};
use crate::call::CallState;
use crate::long_calls::{CallFuture, Pace, Work};
use crate::meter::Meter;
use crate::{Account, CallError, LoadError, Sandbox, SandboxConfig};

type PreParams = (types::Request,);
type PreResult = (Result<prepare::Prepared, types::Failure>,);
type PostParams = (Vec<tensors::NamedTensor>, Arc<[u8]>);
type PostResult = (Result<types::Response, types::Failure>,);

/// What a plugin can be in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Exports `preprocess`.
    pub pre: bool,
    /// Exports `postprocess`.
    pub post: bool,
}

impl Roles {
    /// The world's name.
    pub fn world(self) -> &'static str {
        match (self.pre, self.post) {
            (true, true) => "processor",
            (true, false) => "preprocessor",
            (false, _) => "postprocessor",
        }
    }
}

/// A request, as a plugin sees it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub content_type: Option<String>,
    pub headers: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    /// A JSON document.
    pub settings: Arc<str>,
    pub body: Bytes,
    pub parts: Vec<Part>,
}

/// A part of a multipart request.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub body: Bytes,
}

/// A preprocessor's answer.
#[derive(Debug)]
pub struct Prepared {
    pub inputs: Vec<NamedTensor>,
    pub state: Vec<u8>,
}

/// A postprocessor's answer, as the plugin gave it; its status is one of 200 to 599.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub content_type: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a call may use, and whose it is.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    pub limits: &'a PluginLimits,
    pub account: &'a Account,
    /// What log lines call the plugin.
    pub plugin: Option<&'a Name>,
}

/// A loaded plugin. Calls run side by side, each in an instance of its own.
pub struct Plugin {
    sandbox: Arc<Sandbox>,
    instance: InstancePre<CallState>,
    preprocess: Option<Export>,
    postprocess: Option<Export>,
    imports: Vec<String>,
}

/// A function that a plugin exports.
struct Export {
    index: ComponentExportIndex,
    pace: Pace,
}

impl Plugin {
    pub(crate) fn load(
        sandbox: Arc<Sandbox>,
        component: Component,
        roles: Roles,
        imports: Vec<String>,
    ) -> Result<Self, LoadError> {
        let contract = |error: wasmtime::Error| LoadError::Contract(format!("{error:#}"));
        let instance = sandbox.linker().instantiate_pre(&component).map_err(contract)?;
        check_size(&sandbox, &component)?;
        component
            .initialize_copy_on_write_image()
            .map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        let export = |wanted, name| {
            let index = if wanted { component.get_export_index(None, name) } else { None };
            index.map(|index| Export { index, pace: Pace::default() })
        };
        let preprocess = export(roles.pre, "preprocess");
        let postprocess = export(roles.post, "postprocess");
        let plugin = Self { sandbox, instance, preprocess, postprocess, imports };
        if roles.pre {
            plugin.check::<PreParams, PreResult>("preprocess").map_err(contract)?;
        }
        if roles.post {
            plugin.check::<PostParams, PostResult>("postprocess").map_err(contract)?;
        }
        Ok(plugin)
    }

    /// Instantiate once with `limits` and let go: a start function that traps or a memory over the
    /// limit is better found when a plugin is deployed than by its first request.
    pub async fn probe(self: &Arc<Self>, grant: Grant<'_>) -> Result<(), CallError> {
        let plugin = self.clone();
        let call = |mut store: Store<CallState>| -> CallFuture<()> {
            Box::pin(async move {
                let instance = plugin.instance.instantiate_async(&mut store).await;
                let outcome = instance.map(drop).map_err(|error| diagnose(&error, store.data()));
                (store, outcome)
            })
        };
        self.run(call, &Pace::default(), grant).await
    }

    /// What it exports.
    pub fn roles(&self) -> Roles {
        Roles { pre: self.preprocess.is_some(), post: self.postprocess.is_some() }
    }

    /// The largest of the linear memories that an instance begins with.
    pub fn initial_memory_bytes(&self) -> u64 {
        let needed = self.instance.component().resources_required();
        let pages = needed.and_then(|needed| needed.max_initial_memory_size);
        pages.unwrap_or(0).saturating_mul(64 << 10)
    }

    /// The interfaces it imports.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Call `preprocess` in a fresh instance.
    pub async fn preprocess(
        self: &Arc<Self>,
        request: Request,
        grant: Grant<'_>,
    ) -> Result<Prepared, CallError> {
        let export = self.preprocess.as_ref().ok_or(CallError::NotExported("preprocess"))?;
        let (plugin, index) = (self.clone(), export.index);
        let call = move |mut store: Store<CallState>| -> CallFuture<Prepared> {
            Box::pin(async move {
                let outcome = plugin.prepare(&mut store, &index, request).await;
                (store, outcome)
            })
        };
        self.run(call, &export.pace, grant).await
    }

    /// Call `postprocess` in a fresh instance.
    pub async fn postprocess(
        self: &Arc<Self>,
        outputs: Vec<NamedTensor>,
        state: Vec<u8>,
        grant: Grant<'_>,
    ) -> Result<Response, CallError> {
        let export = self.postprocess.as_ref().ok_or(CallError::NotExported("postprocess"))?;
        let (plugin, index) = (self.clone(), export.index);
        let call = move |mut store: Store<CallState>| -> CallFuture<Response> {
            Box::pin(async move {
                let outcome = plugin.respond(&mut store, &index, (outputs, state)).await;
                (store, outcome)
            })
        };
        self.run(call, &export.pace, grant).await
    }

    /// Run one call in a store of its own, on the threads where it belongs.
    async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(Store<CallState>) -> CallFuture<T>,
        pace: &Pace,
        grant: Grant<'_>,
    ) -> Result<T, CallError> {
        let Grant { limits, account, .. } = grant;
        let places = self.sandbox.places(account).await?;
        let meter = Arc::new(Meter::new(limits.cpu));
        let call = call(self.sandbox.store(grant, meter.clone()));
        let long_places = account.long_places.clone();
        self.sandbox.long_calls().run(Work { call, meter, pace, places, long_places }).await
    }

    async fn prepare(
        &self,
        store: &mut Store<CallState>,
        index: &ComponentExportIndex,
        request: Request,
    ) -> Result<Prepared, CallError> {
        let request = lower_request(request, store.data_mut())?;
        let answer = self.call::<PreParams, PreResult>(store, index, (request,)).await?;
        let prepared = answer.0.map_err(failure)?;
        check_prepared(&prepared, &store.data().limits)?;
        let table = &mut store.data_mut().table;
        let inputs = prepared.inputs.into_iter().map(|input| {
            let tensor = table
                .delete(input.tensor)
                .map_err(|error| CallError::InvalidOutput(error.to_string()))?;
            Ok(NamedTensor { name: input.name.into(), tensor })
        });
        Ok(Prepared { inputs: inputs.collect::<Result<_, CallError>>()?, state: prepared.state })
    }

    async fn respond(
        &self,
        store: &mut Store<CallState>,
        index: &ComponentExportIndex,
        (outputs, state): (Vec<NamedTensor>, Vec<u8>),
    ) -> Result<Response, CallError> {
        let outputs = outputs.into_iter().map(|output| {
            let tensor = push(store.data_mut(), output.tensor)?;
            Ok(tensors::NamedTensor { name: output.name.to_string(), tensor })
        });
        let outputs = outputs.collect::<Result<Vec<_>, CallError>>()?;
        let params = (outputs, Arc::from(state));
        let answer = self.call::<PostParams, PostResult>(store, index, params).await?;
        check_response(answer.0.map_err(failure)?, &store.data().limits)
    }

    async fn call<Params, Results>(
        &self,
        store: &mut Store<CallState>,
        index: &ComponentExportIndex,
        params: Params,
    ) -> Result<Results, CallError>
    where
        Params: ComponentNamedList + Lower + Send + Sync + 'static,
        Results: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let outcome = async {
            let instance = self.instance.instantiate_async(&mut *store).await?;
            let function = instance.get_typed_func::<Params, Results>(&mut *store, index)?;
            let results = function.call_async(&mut *store, params).await?;
            // Lifting the results takes time, too.
            store.data().check_cpu()?;
            Ok(results)
        };
        outcome.await.map_err(|error: wasmtime::Error| diagnose(&error, store.data()))
    }

    fn check<Params, Results>(&self, name: &str) -> wasmtime::Result<()>
    where
        Params: ComponentNamedList + Lower,
        Results: ComponentNamedList + Lift,
    {
        let linker = self.sandbox.linker();
        let component = linker.substituted_component_type(self.instance.component())?;
        match component.get_export(self.sandbox.engine(), name).map(|export| export.ty) {
            Some(ComponentItem::ComponentFunc(function)) => function
                .typecheck::<Params, Results>(&component.instance_type())
                .map_err(|error| error.context(format!("export `{name}`"))),
            _ => wasmtime::bail!("`{name}` is not a function"),
        }
    }
}

/// What the component needs, held against the pool's slots.
fn check_size(sandbox: &Sandbox, component: &Component) -> Result<(), LoadError> {
    let SandboxConfig { memory_bytes_max, table_elements_max, .. } = sandbox.config();
    let Some(needed) = component.resources_required() else { return Ok(()) };
    let memory = needed.max_initial_memory_size.unwrap_or(0).saturating_mul(64 << 10);
    if memory > *memory_bytes_max as u64 {
        return Err(LoadError::Contract(format!(
            "its initial memory of {memory} bytes is over the host's limit of {memory_bytes_max}"
        )));
    }
    let table = needed.max_initial_table_size.unwrap_or(0);
    if table > *table_elements_max as u64 {
        return Err(LoadError::Contract(format!(
            "its table of {table} elements is over the host's limit of {table_elements_max}"
        )));
    }
    Ok(())
}

fn push<T: Send + 'static>(state: &mut CallState, value: T) -> Result<Resource<T>, CallError> {
    state.table.push(value).map_err(|error| CallError::Host(error.to_string()))
}

fn lower_request(request: Request, state: &mut CallState) -> Result<types::Request, CallError> {
    let fields = |list: Vec<(String, String)>| {
        list.into_iter().map(|(name, value)| types::Field { name, value }).collect()
    };
    let body = push(state, request.body)?;
    let parts = request.parts.into_iter().map(|part| {
        let body = push(state, part.body)?;
        let Part { name, filename, content_type, .. } = part;
        Ok(types::Part { name, filename, content_type, body })
    });
    let parts = parts.collect::<Result<_, CallError>>()?;
    Ok(types::Request {
        content_type: request.content_type,
        headers: fields(request.headers),
        query: fields(request.query),
        settings: request.settings.to_string(),
        body,
        parts,
    })
}
