//! Counts the core instances, memories and tables of a component's instance, from the file and
//! before anything is compiled.
//!
//! Counts what a component instantiates, including all nested components. The numbers saturate:
//! nested components that each instantiate the next one twice have more instances than the file has
//! bytes. Modules and components that come from another instance are not followed: such a module
//! counts as one instance, such a component as none. That is safe, because the limits of compiling
//! and of calls apply anyway; this check refuses early and names the number.

use serde::{Deserialize, Serialize};
use wasmparser::{
    BinaryReaderError, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentTypeRef, Encoding, Instance, Parser, Payload,
};

/// The needs of one instance of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Instances of core modules.
    pub instances: u64,
    /// Memories that they define.
    pub memories: u64,
    /// Tables that they define.
    pub tables: u64,
}

impl Needs {
    const UNKNOWN_MODULE: Self = Self { instances: 1, memories: 0, tables: 0 };
    const UNKNOWN_COMPONENT: Self = Self { instances: 0, memories: 0, tables: 0 };

    fn add(&mut self, other: Self) {
        self.instances = self.instances.saturating_add(other.instances);
        self.memories = self.memories.saturating_add(other.memories);
        self.tables = self.tables.saturating_add(other.tables);
    }
}

/// A component or module that is being read.
#[derive(Default)]
struct Frame {
    is_module: bool,
    needs: Needs,
    /// The index spaces. Each entry is the needs of one instance.
    modules: Vec<Needs>,
    components: Vec<Needs>,
}

impl Frame {
    fn module(&self, index: u32) -> Needs {
        self.modules.get(index as usize).copied().unwrap_or(Needs::UNKNOWN_MODULE)
    }

    fn component(&self, index: u32) -> Needs {
        self.components.get(index as usize).copied().unwrap_or(Needs::UNKNOWN_COMPONENT)
    }

    fn name(&mut self, kind: ComponentExternalKind, needs: impl Fn(&Self) -> Option<Needs>) {
        match kind {
            ComponentExternalKind::Module => {
                let needs = needs(self).unwrap_or(Needs::UNKNOWN_MODULE);
                self.modules.push(needs);
            }
            ComponentExternalKind::Component => {
                let needs = needs(self).unwrap_or(Needs::UNKNOWN_COMPONENT);
                self.components.push(needs);
            }
            _ => {}
        }
    }
}

/// The needs of an instance of this valid component.
pub(crate) fn needs_of(component: &[u8]) -> Result<Needs, BinaryReaderError> {
    let mut stack: Vec<Frame> = Vec::new();
    let mut whole = Needs::default();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        if let Payload::Version { encoding, .. } = payload {
            let is_module = encoding == Encoding::Module;
            let instances = is_module.into();
            let needs = Needs { instances, ..Needs::default() };
            stack.push(Frame { is_module, needs, ..Frame::default() });
            continue;
        }
        if let Payload::End(_) = payload {
            let Some(done) = stack.pop() else { break };
            match stack.last_mut() {
                Some(outer) if done.is_module => outer.modules.push(done.needs),
                Some(outer) => outer.components.push(done.needs),
                None => whole = done.needs,
            }
            continue;
        }
        if let Payload::ComponentAliasSection(section) = payload {
            for alias in section {
                follow(&mut stack, &alias?);
            }
        } else if let Some(frame) = stack.last_mut() {
            read(frame, payload)?;
        }
    }
    Ok(whole)
}

fn follow(stack: &mut [Frame], alias: &ComponentAlias<'_>) {
    let outer = |count: u32| (stack.len()).checked_sub(1 + count as usize).map(|at| &stack[at]);
    match *alias {
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
            let needs = outer(count).map_or(Needs::UNKNOWN_MODULE, |frame| frame.module(index));
            stack.iter_mut().next_back().into_iter().for_each(|frame| frame.modules.push(needs));
        }
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
            let needs = outer(count).map(|frame| frame.component(index));
            let needs = needs.unwrap_or(Needs::UNKNOWN_COMPONENT);
            stack.iter_mut().next_back().into_iter().for_each(|frame| frame.components.push(needs));
        }
        ComponentAlias::InstanceExport { kind, .. } => {
            stack.iter_mut().next_back().into_iter().for_each(|frame| frame.name(kind, |_| None));
        }
        _ => {}
    }
}

fn read(frame: &mut Frame, payload: Payload<'_>) -> Result<(), BinaryReaderError> {
    match payload {
        Payload::MemorySection(section) => {
            frame.needs.memories = frame.needs.memories.saturating_add(section.count().into());
        }
        Payload::TableSection(section) => {
            frame.needs.tables = frame.needs.tables.saturating_add(section.count().into());
        }
        Payload::ComponentImportSection(section) => {
            for import in section {
                match import?.ty {
                    ComponentTypeRef::Module(_) => frame.modules.push(Needs::UNKNOWN_MODULE),
                    ComponentTypeRef::Component(_) => {
                        frame.components.push(Needs::UNKNOWN_COMPONENT);
                    }
                    _ => {}
                }
            }
        }
        Payload::ComponentExportSection(section) => {
            for export in section {
                let export = export?;
                let needs = |frame: &Frame| match export.kind {
                    ComponentExternalKind::Module => Some(frame.module(export.index)),
                    _ => Some(frame.component(export.index)),
                };
                // An export is another name for the thing that it exports.
                frame.name(export.kind, needs);
            }
        }
        Payload::InstanceSection(section) => {
            for instance in section {
                if let Instance::Instantiate { module_index, .. } = instance? {
                    frame.needs.add(frame.module(module_index));
                }
            }
        }
        Payload::ComponentInstanceSection(section) => {
            for instance in section {
                if let ComponentInstance::Instantiate { component_index, .. } = instance? {
                    frame.needs.add(frame.component(component_index));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
