//! The component without its shim.

use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, component_utils};
use wasm_encoder::{
    Alias, Component, ComponentAliasSection, ExportKind, InstanceSection, Module, ModuleSection,
};
use wasmparser::{
    ComponentAlias, ComponentAliasSectionReader, CustomSectionReader, ExternalKind, Instance,
    InstanceSectionReader, Parser,
};

use super::fixup;
use super::main_module::MainModule;
use super::parts::{FIXUP, MAIN, SHIM, SHIM_INSTANCE, ShimParts, TABLE};

/// Reads the component and writes it anew.
pub(super) struct Joined<'a> {
    parts: &'a ShimParts<'a>,
    main: MainModule<'a>,
    /// The number of modules so far.
    modules: u32,
    /// The number of core instances so far.
    instances: u32,
}

/// The component does not have the expected form.
#[derive(Debug, thiserror::Error)]
#[error("another form of component")]
pub(super) struct OtherForm;

type Outcome = Result<(), Error<OtherForm>>;

impl<'a> Joined<'a> {
    pub(super) fn new(parts: &'a ShimParts<'a>) -> Option<Self> {
        Some(Self { parts, main: MainModule::new(parts)?, modules: 0, instances: 0 })
    }

    pub(super) fn encode(mut self, component: &[u8]) -> Option<Vec<u8>> {
        let mut joined = Component::new();
        self.parse_component(&mut joined, Parser::new(0), component).ok()?;
        Some(joined.finish())
    }

    /// The module with this number in the joined component.
    fn changed(&mut self, number: u32, module: &[u8]) -> Option<Module> {
        match number {
            MAIN => self.main.encode(),
            FIXUP => fixup::encode(module, self.parts, &self.main),
            _ => None,
        }
    }

    /// Whether this core function of the component is an alias of the shim's.
    fn is_shims(&self, function: u32) -> bool {
        self.parts.aliases.binary_search(&function).is_ok()
    }
}

impl Reencode for Joined<'_> {
    type Error = OtherForm;

    /// The core functions of the component. The shim's are gone.
    fn function_index(&mut self, function: u32) -> Result<u32, Error<OtherForm>> {
        if self.is_shims(function) {
            return Err(Error::UserError(OtherForm));
        }
        let gone = self.parts.aliases.partition_point(|alias| *alias < function);
        Ok(function - gone as u32)
    }
}

impl ReencodeComponent for Joined<'_> {
    fn module_index(&mut self, module: u32) -> u32 {
        module - u32::from(module > SHIM)
    }

    fn instance_index(&mut self, instance: u32) -> u32 {
        instance - u32::from(instance > SHIM_INSTANCE)
    }

    fn parse_component_submodule(
        &mut self,
        component: &mut Component,
        _: Parser,
        module: &[u8],
    ) -> Outcome {
        let number = self.modules;
        self.modules += 1;
        if number != SHIM {
            let changed = self.changed(number, module).ok_or(Error::UserError(OtherForm))?;
            component.section(&ModuleSection(&changed));
        }
        Ok(())
    }

    fn parse_instance_section(
        &mut self,
        instances: &mut InstanceSection,
        section: InstanceSectionReader<'_>,
    ) -> Outcome {
        for instance in section {
            let number = self.instances;
            self.instances += 1;
            match instance? {
                _ if number == SHIM_INSTANCE => {}
                Instance::FromExports(exports) => {
                    let is_kept = |export: &wasmparser::Export<'_>| {
                        export.kind != ExternalKind::Func || !self.is_shims(export.index)
                    };
                    let kept = exports.into_iter().filter(is_kept).collect();
                    component_utils::parse_instance(self, instances, Instance::FromExports(kept))?;
                }
                instance => component_utils::parse_instance(self, instances, instance)?,
            }
        }
        Ok(())
    }

    fn parse_component_alias_section(
        &mut self,
        aliases: &mut ComponentAliasSection,
        section: ComponentAliasSectionReader<'_>,
    ) -> Outcome {
        for alias in section {
            let alias = match alias? {
                ComponentAlias::CoreInstanceExport {
                    kind, instance_index: SHIM_INSTANCE, ..
                } => {
                    if kind == ExternalKind::Func {
                        continue;
                    }
                    let instance = self.instance_index(self.parts.main_instance);
                    Alias::CoreInstanceExport { instance, kind: ExportKind::Table, name: TABLE }
                }
                alias => self.component_alias(alias)?,
            };
            aliases.alias(alias);
        }
        Ok(())
    }

    /// The names of the parts would be those of others.
    fn parse_component_custom_section(
        &mut self,
        component: &mut Component,
        section: CustomSectionReader<'_>,
    ) -> Outcome {
        match section.name() {
            "component-name" => Ok(()),
            _ => component_utils::parse_component_custom_section(self, component, section),
        }
    }
}
