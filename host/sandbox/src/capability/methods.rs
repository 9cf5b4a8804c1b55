//! Linking functions of the contract to methods by hand.

use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};

use crate::call::CallState;

/// Replace linked functions by hand-written ones.
pub(crate) fn link_instead<T: 'static>(
    linker: &mut Linker<T>,
    link: impl FnOnce(&mut Linker<T>) -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let linked = link(linker);
    linker.allow_shadowing(false);
    linked
}

/// Link the resource `name`, whose values are in the call's table.
pub(crate) fn resource<S: Send + 'static, T: Send + 'static>(
    instance: &mut LinkerInstance<'_, CallState<S>>,
    name: &str,
) -> wasmtime::Result<()> {
    instance.resource(name, ResourceType::host::<T>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<T>::new_own(rep))?;
        Ok(())
    })
}

/// Link methods of `CallState` under these names. `sync` and `async` say how they are declared.
macro_rules! link_methods {
    ($instance:expr, $($kind:tt $name:literal = $method:path, ($($param:ident: $ty:ty),*);)*) => {
        $(link_methods!(@$kind $instance, $name, $method, ($($param: $ty),*));)*
    };
    (@sync $instance:expr, $name:literal, $method:path, ($($param:ident: $ty:ty),*)) => {
        $instance.func_wrap(
            $name,
            |mut store: wasmtime::StoreContextMut<'_, CallState<S>>, ($($param,)*): ($($ty,)*)| {
                Ok(($method(store.data_mut(), $($param),*)?,))
            },
        )?;
    };
    (@async $instance:expr, $name:literal, $method:path, ($($param:ident: $ty:ty),*)) => {
        $instance.func_wrap_async(
            $name,
            |mut store: wasmtime::StoreContextMut<'_, CallState<S>>, ($($param,)*): ($($ty,)*)| {
                Box::new(async move { Ok(($method(store.data_mut(), $($param),*).await?,)) })
            },
        )?;
    };
}

pub(crate) use link_methods;
