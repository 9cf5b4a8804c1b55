#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use wasm_encoder::{
    Alias, ComponentBuilder, ComponentExportKind, ComponentOuterAliasKind, MemorySection,
    MemoryType, Module, ModuleArg, RefType, TableSection, TableType,
};

use super::{Needs, needs_of};

const NONE: [(&str, ModuleArg); 0] = [];
const NO_ITEMS: [(&str, ComponentExportKind, u32); 0] = [];

/// A core module with two memories and a table.
fn module() -> Module {
    let (mut memories, mut tables) = (MemorySection::new(), TableSection::new());
    let memory = MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    };
    memories.memory(memory).memory(memory);
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: 1,
        maximum: None,
        shared: false,
    });
    let mut module = Module::new();
    module.section(&tables).section(&memories);
    module
}

/// A component that instantiates the module so many times.
fn leaf(times: usize) -> ComponentBuilder {
    let mut component = ComponentBuilder::default();
    let module = component.core_module(None, &module());
    for _ in 0..times {
        component.core_instantiate(None, module, NONE);
    }
    component
}

fn needs(times: u64) -> Needs {
    Needs { instances: times, memories: 2 * times, tables: times }
}

#[test]
fn what_is_instantiated_is_counted() {
    assert_eq!(needs_of(&ComponentBuilder::default().finish()).unwrap(), Needs::default());
    assert_eq!(needs_of(&leaf(0).finish()).unwrap(), Needs::default());
    assert_eq!(needs_of(&leaf(3).finish()).unwrap(), needs(3));
}

#[test]
fn nested_components_count_as_often_as_they_are_instantiated() {
    let mut outer = ComponentBuilder::default();
    let inner = outer.component(None, leaf(2));
    outer.instantiate(None, inner, NO_ITEMS);
    outer.instantiate(None, inner, NO_ITEMS);
    // A module that is not instantiated does not count. A module under a second name counts.
    let named = outer.component(None, leaf(5));
    let named = outer.export("named", ComponentExportKind::Component, named, None);
    outer.component(None, leaf(100));
    outer.instantiate(None, named, NO_ITEMS);
    assert_eq!(needs_of(&outer.finish()).unwrap(), needs(9));
}

#[test]
fn items_of_outer_components_are_followed() {
    let mut outer = ComponentBuilder::default();
    outer.core_module(None, &module());
    outer.component(None, leaf(3));
    let mut inner = ComponentBuilder::default();
    let module = Alias::Outer { kind: ComponentOuterAliasKind::CoreModule, count: 1, index: 0 };
    let module = inner.alias(None, module);
    let three = Alias::Outer { kind: ComponentOuterAliasKind::Component, count: 1, index: 0 };
    let three = inner.alias(None, three);
    inner.core_instantiate(None, module, NONE);
    inner.instantiate(None, three, NO_ITEMS);
    let inner = outer.component(None, inner);
    outer.instantiate(None, inner, NO_ITEMS);
    assert_eq!(needs_of(&outer.finish()).unwrap(), needs(4));
}

#[test]
fn a_tower_of_components_is_counted_without_being_built() {
    let mut tower = leaf(2);
    for _ in 0..70 {
        let mut outer = ComponentBuilder::default();
        let inner = outer.component(None, tower);
        outer.instantiate(None, inner, NO_ITEMS);
        outer.instantiate(None, inner, NO_ITEMS);
        tower = outer;
    }
    let needs = needs_of(&tower.finish()).unwrap();
    assert_eq!((needs.instances, needs.memories), (u64::MAX, u64::MAX));
}
