#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use wasm_encoder::{
    CanonicalOption, CodeSection, ComponentBuilder, ComponentExportKind, ComponentTypeRef,
    ComponentValType, ExportKind, ExportSection, Function, FunctionSection, InstanceType, Module,
    ModuleArg, NameMap, NameSection, TypeSection,
};

use super::*;
use crate::capability::wasi::VERSION;

const NONE: [(&str, ModuleArg); 0] = [];
const NO_PARAMS: [(&str, ComponentValType); 0] = [];
const BOUNDS: Bounds = Bounds { instances: 2, memories: 2, tables: 8 };

/// A core module that exports a function `f` with so many bytes of code.
fn module(code_bytes: usize) -> Module {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    let (mut exports, mut codes) = (ExportSection::new(), CodeSection::new());
    types.ty().function([], []);
    functions.function(0);
    exports.export("f", ExportKind::Func, 0);
    let mut body = Function::new([]);
    for _ in 0..code_bytes {
        body.instructions().nop();
    }
    body.instructions().end();
    codes.function(&body);
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&exports).section(&codes);
    module
}

/// The parts of a test's component.
#[derive(Clone, Copy, Default)]
struct Made<'a> {
    imports: &'a [&'a str],
    exports: &'a [&'a str],
    code_bytes: usize,
    options: &'a [CanonicalOption],
}

impl Made<'_> {
    fn file(self) -> Vec<u8> {
        let mut component = ComponentBuilder::default();
        for name in self.imports {
            let empty = component.type_instance(None, &InstanceType::new());
            component.import(*name, ComponentTypeRef::Instance(empty));
        }
        let module = component.core_module(None, &module(self.code_bytes));
        let instance = component.core_instantiate(None, module, NONE);
        let core = component.core_alias_export(None, instance, "f", ExportKind::Func);
        let (ty, mut function) = component.type_function(None);
        function.params(NO_PARAMS).result(None);
        let lifted = component.lift_func(None, core, ty, self.options.iter().copied());
        for name in self.exports {
            component.export(*name, ComponentExportKind::Func, lifted, None);
        }
        component.finish()
    }

    fn checked(self) -> Result<CheckedComponent, ComponentError> {
        check_within(&self.file(), &BOUNDS)
    }
}

#[test]
fn exports_give_a_component_its_roles() {
    for (exports, [pre, post, handle], world) in [
        (&["preprocess"][..], [true, false, false], "preprocessor"),
        (&["postprocess", "something-else"], [false, true, false], "postprocessor"),
        (&["preprocess", "postprocess"], [true, true, false], "processor"),
        (&["handle"], [false, false, true], "handler"),
        (&["preprocess", "postprocess", "handle"], [true; 3], "processor and handler"),
    ] {
        let CheckedComponent { roles, imports, .. } =
            Made { exports, ..Made::default() }.checked().unwrap();
        assert_eq!((roles, roles.world()), (Roles { pre, post, handle }, world));
        assert!(imports.is_empty());
    }
    let error = Made { exports: &["process"], ..Made::default() }.checked().unwrap_err();
    assert!(
        matches!(&error, ComponentError::NoWorld(exported) if exported == "process"),
        "{error}"
    );
    let error = Made::default().checked().unwrap_err();
    assert!(
        matches!(&error, ComponentError::NoWorld(exported) if exported == "it exports nothing"),
        "{error}"
    );
}

#[test]
fn only_interfaces_of_the_host_can_be_imported() {
    let exports = &["preprocess"][..];
    let imports: Vec<_> = interfaces().filter(|name| !is_of_older_contract(name)).collect();
    let full = |name: &&str| match name.ends_with(VERSION) {
        true => format!("{name}.3"),
        false => (*name).to_owned(),
    };
    let full: Vec<String> = imports.iter().map(full).collect();
    let imports: Vec<&str> = full.iter().map(String::as_str).collect();
    let checked = Made { imports: &imports, exports, ..Made::default() }.checked().unwrap();
    assert_eq!(checked.imports, full);
    let imports = &["gristmill:plugin/log@0.3.0", "acme:store/keys@1.0.0"];
    match (Made { imports, exports, ..Made::default() }).checked().unwrap_err() {
        ComponentError::UnknownImports { unknown, allowed } => {
            assert_eq!(unknown, ["acme:store/keys@1.0.0"]);
            assert!(allowed.iter().map(String::as_str).eq(interfaces()));
        }
        error => panic!("{error}"),
    }
    for name in [
        "wasi:keyvalue/store@0.2.0",
        "wasi:keyvalue/store@0.2.0-draft2.1",
        "wasi:nn/graph@0.2.0-rc-2024-06-25",
        "wasi:nn/graph@0.2.0-rc-2024-10-28.1",
    ] {
        let imports = &[name, "acme:store/keys@1.0.0"];
        let error = (Made { imports, exports, ..Made::default() }).checked().unwrap_err();
        let named = format!("it imports {name}, acme:store/keys@1.0.0, which plugins do not get");
        assert!(error.to_string().starts_with(&named), "{error}");
    }
    for [one, other] in [["0.1.0", "0.2.0"], ["0.2.0", "0.3.0"], ["0.3.0", "0.1.0"]] {
        let names =
            [format!("gristmill:plugin/log@{one}"), format!("gristmill:plugin/types@{other}")];
        let imports = &names.each_ref().map(String::as_str)[..];
        let error = (Made { imports, exports, ..Made::default() }).checked().unwrap_err();
        assert!(matches!(error, ComponentError::SeveralContracts), "{error}");
    }
}

#[test]
fn a_component_has_the_contract_of_its_imports() {
    for (version, expected) in [("0.1.0", "0.1"), ("0.2.0", "0.2"), ("0.3.0", "0.3")] {
        let names = ["log", "types"].map(|name| format!("gristmill:plugin/{name}@{version}"));
        let imports = &names.each_ref().map(String::as_str)[..];
        let made = Made { imports, exports: &["preprocess"], ..Made::default() };
        assert_eq!(made.checked().unwrap().contract(), expected);
    }
}

fn is_of_older_contract(name: &str) -> bool {
    name.ends_with("@0.1.0") || name.ends_with("@0.2.0")
}

#[test]
fn files_that_are_not_components_are_named_by_what_they_lack() {
    let refused = |file: &[u8]| check_within(file, &BOUNDS).unwrap_err();
    assert!(matches!(refused(b""), ComponentError::NotWasm(head) if head == "nothing at all"));
    assert!(
        matches!(refused(b"PK\x03\x04"), ComponentError::NotWasm(head) if head == "50 4b 03 04")
    );
    assert!(matches!(refused(&module(0).finish()), ComponentError::NoComponentType));
    let mut cut = Made { exports: &["preprocess"], ..Made::default() }.file();
    cut.truncate(cut.len() - 1);
    assert!(matches!(refused(&cut), ComponentError::Invalid(_)));
}

#[test]
fn code_that_would_hold_a_serving_thread_is_refused() {
    let made = Made { exports: &["preprocess"], ..Made::default() };
    Made { code_bytes: FUNCTION_BYTES_MAX / 2, ..made }.checked().unwrap();
    let error = Made { code_bytes: FUNCTION_BYTES_MAX, ..made }.checked().unwrap_err();
    assert!(
        matches!(error, ComponentError::LongFunction { limit: FUNCTION_BYTES_MAX, .. }),
        "{error}"
    );
    let error = Made { options: &[CanonicalOption::UTF16], ..made }.checked().unwrap_err();
    assert!(matches!(error, ComponentError::NotUtf8), "{error}");
    let none = Bounds { instances: 0, ..BOUNDS };
    match check_within(&made.file(), &none).unwrap_err() {
        ComponentError::TooMany { count, limit, setting, .. } => {
            assert_eq!((count, limit, setting), (1, 0, " (plugin_instances)"));
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_functions_name_is_not_too_long() {
    for (bytes, is_refused) in
        [(FUNCTION_NAME_BYTES_MAX, false), (FUNCTION_NAME_BYTES_MAX + 1, true)]
    {
        let (mut names, mut functions) = (NameSection::new(), NameMap::new());
        functions.append(0, &"n".repeat(bytes));
        names.functions(&functions);
        let mut module = module(1);
        module.section(&names);
        let checked = check_code(&module.finish());
        let long = matches!(checked, Err(ComponentError::LongFunctionName { bytes: found, .. }) if found == bytes);
        assert_eq!(long, is_refused, "{bytes}");
    }
}
