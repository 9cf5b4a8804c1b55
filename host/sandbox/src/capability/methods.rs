//! Linking functions of the contract to methods by hand.

use wasmtime::component::Linker;

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
