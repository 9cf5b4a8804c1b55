//! The interfaces of WASI that link, so that components of stock tools can be loaded, and of which
//! every function ends the call.

use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{Component, Linker, ResourceType};
use wasmtime::{Engine, bail};

use super::wasi::is_named;

const INTERFACES: &[&str] = &["wasi:http/types@0.2", "wasi:http/outgoing-handler@0.2"];

/// A resource of such an interface. No guest ever has one.
struct Refused;

/// Whether an import is such an interface.
pub(crate) fn is_refused(import: &str) -> bool {
    INTERFACES.iter().any(|interface| is_named(import, interface))
}

/// Link these interfaces as `component` imports them.
///
/// A resource that one of them uses from another interface, such as a stream, is that interface's,
/// and is not linked again.
///
/// # Errors
/// The linker has one of the names already.
pub(crate) fn link<T: 'static>(
    linker: &mut Linker<T>,
    component: &Component,
) -> wasmtime::Result<()> {
    let (engine, component) = (component.engine(), component.component_type());
    let imports = component.imports(engine).filter_map(|(name, import)| match import.ty {
        ComponentItem::ComponentInstance(instance) => Some((name, instance)),
        _ => None,
    });
    let (refused, others): (Vec<_>, Vec<_>) = imports.partition(|(name, _)| is_refused(name));
    let mut defined: Vec<_> =
        others.iter().flat_map(|(_, instance)| resources(instance, engine)).collect();
    for (name, instance) in refused {
        let mut interface = linker.instance(name)?;
        for (export, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    let called = format!("{name}#{export}");
                    interface.func_new(export, move |_, _, _, _| {
                        bail!("plugin called `{called}`, which plugins may not use")
                    })?;
                }
                ComponentItem::Resource(resource) if !defined.contains(&resource) => {
                    defined.push(resource);
                    let refused_type = ResourceType::host::<Refused>();
                    interface.resource(export, refused_type, |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn resources(instance: &ComponentInstance, engine: &Engine) -> Vec<ResourceType> {
    let exports = instance.exports(engine);
    let resource = |item| match item {
        ComponentItem::Resource(resource) => Some(resource),
        _ => None,
    };
    exports.filter_map(|(_, export)| resource(export.ty)).collect()
}
