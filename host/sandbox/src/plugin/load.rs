//! Making a plugin of a compiled component: what it imports is linked, and its exports have the
//! types of their worlds.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::Linker;
use wasmtime::component::types::ComponentItem;

use super::Plugin;
use crate::artifact::Cached;
use crate::assets::assets_in;
use crate::capability::{StoreData, wasi};
use crate::compile::About;
use crate::config::SandboxConfig;
use crate::engine::PluginEngine;
use crate::load_error::{ComponentError, LoadError};
use crate::runtime::LinkedRuntime;
use crate::worlds::{
    Contract, HandleRequest, Postprocess, Postprocess01, Preprocess, Preprocess01, Roles, World,
};

impl Plugin {
    /// Check a compiled component against the contract and the engine's limits. `uploaded` is the
    /// file that it was compiled from, with the files that it brings.
    ///
    /// # Errors
    /// [`LoadError::Contract`] if an import or an export does not fit, [`LoadError::TooLarge`] if a
    /// size does not fit, [`LoadError::Compile`] if its memory cannot be mapped.
    pub(crate) fn load(
        engine: Arc<PluginEngine>,
        cached: Cached,
        runtime: Option<Arc<LinkedRuntime>>,
        uploaded: &Bytes,
    ) -> Result<Self, LoadError> {
        let Cached { component, about, first_content } = cached;
        let roles = about.roles();
        let About { imports, sources, memory_bytes, assets, .. } = about;
        let assets = assets_in(uploaded, &assets)?;
        let of = engine.clone();
        let linker = match &runtime {
            Some(runtime) => &runtime.linker,
            None => of.linker(),
        };
        let instance = linker.instantiate_pre(&component).map_err(LoadError::Contract)?;
        let needed = component.resources_required();
        let memory_bytes = memory_bytes.unwrap_or_else(|| {
            let pages = needed.as_ref().and_then(|needed| needed.max_initial_memory_size);
            pages.unwrap_or(0).saturating_mul(64 << 10)
        });
        let table = needed.as_ref().and_then(|needed| needed.max_initial_table_size);
        check_size(engine.config(), memory_bytes, table.unwrap_or(0))?;
        component.initialize_copy_on_write_image().map_err(LoadError::Compile)?;
        let index = |name| component.get_export_index(None, name);
        let preprocess = index(Preprocess::EXPORT).filter(|_| roles.pre);
        let postprocess = index(Postprocess::EXPORT).filter(|_| roles.post);
        let handle = index(HandleRequest::EXPORT).filter(|_| roles.handle);
        let contract = Contract::of_imports(&imports);
        let contract = contract.ok_or(LoadError::Admit(ComponentError::SeveralContracts))?;
        let has_wasi = imports.iter().any(|import| wasi::is_wasi(import));
        let mut plugin = Self {
            first_content,
            engine,
            instance,
            preprocess,
            postprocess,
            handle,
            imports,
            contract,
            has_wasi,
            sources,
            runtime: runtime.clone(),
            file_bytes: uploaded.len() as u64,
            memory_bytes,
            assets,
        };
        // An older plugin may export a function of this name for itself.
        if roles.handle
            && let Err(error) = plugin.check::<HandleRequest>(linker)
        {
            plugin.handle = None;
            if !roles.pre && !roles.post {
                return Err(LoadError::Contract(error));
            }
        }
        plugin.check_exports(linker, roles).map_err(LoadError::Contract)?;
        Ok(plugin)
    }

    /// Whether the exports have the types of their worlds.
    fn check_exports(&self, linker: &Linker<StoreData>, roles: Roles) -> wasmtime::Result<()> {
        match self.contract {
            Contract::V0_1 => self.check_pair::<Preprocess01, Postprocess01>(linker, roles),
            Contract::V0_2 | Contract::V0_3 => {
                self.check_pair::<Preprocess, Postprocess>(linker, roles)
            }
        }
    }

    fn check_pair<Pre: World, Post: World>(
        &self,
        linker: &Linker<StoreData>,
        roles: Roles,
    ) -> wasmtime::Result<()> {
        if roles.pre {
            self.check::<Pre>(linker)?;
        }
        if roles.post {
            self.check::<Post>(linker)?;
        }
        Ok(())
    }

    /// Whether the export has the types of its world.
    fn check<W: World>(&self, linker: &Linker<StoreData>) -> wasmtime::Result<()> {
        let component = linker.substituted_component_type(self.instance.component())?;
        match component.get_export(self.engine.engine(), W::EXPORT).map(|export| export.ty) {
            Some(ComponentItem::ComponentFunc(function)) => function
                .typecheck::<W::Params, W::Results>(&component.instance_type())
                .map_err(|error| error.context(format!("export `{}`", W::EXPORT))),
            _ => wasmtime::bail!("`{}` is not a function", W::EXPORT),
        }
    }
}

/// Compare what the component needs with the size of the pool's slots.
fn check_size(config: &SandboxConfig, memory: u64, table: u64) -> Result<(), LoadError> {
    let SandboxConfig { memory_bytes_max, table_elements_max, .. } = config;
    if memory > *memory_bytes_max as u64 {
        let what = format!("its initial memory of {memory} bytes");
        return Err(LoadError::TooLarge { what, limit: *memory_bytes_max });
    }
    if table > *table_elements_max as u64 {
        let what = format!("its table of {table} elements");
        return Err(LoadError::TooLarge { what, limit: *table_elements_max });
    }
    Ok(())
}
