use wasmparser::{KnownCustom, Name, Parser, Payload, Validator, WasmFeatures};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

use super::join_shim;

const WIT: &str = "
    package test:shim;
    interface host {
        twice: func(text: string) -> string;
        size: func(bytes: list<u8>) -> u32;
        tick: func();
    }
    world guest {
        import host;
        export run: func(text: string) -> string;
    }
";

/// A module for the world above, with these tables.
fn module(tables: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "test:shim/host" "twice" (func $twice (param i32 i32 i32)))
            (import "test:shim/host" "tick" (func $tick))
            (import "test:shim/host" "size" (func $size (param i32 i32) (result i32)))
            {tables}
            (memory (export "memory") 1)
            (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                i32.const 1024)
            (func $run (export "run") (param i32 i32) (result i32)
                call $tick
                local.get 0
                local.get 1
                call $size
                drop
                local.get 0
                local.get 1
                i32.const 16
                call $twice
                i32.const 16))"#
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", WIT).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let encoding = StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut module, &resolve, world, encoding).unwrap();
    module
}

fn encoded(module: &[u8]) -> Vec<u8> {
    ComponentEncoder::default().module(module).unwrap().encode().unwrap()
}

fn modules(component: &[u8]) -> usize {
    let payloads = Parser::new(0).parse_all(component);
    payloads.filter(|payload| matches!(payload, Ok(Payload::ModuleSection { .. }))).count()
}

#[test]
fn the_shim_moves_into_the_main_module() {
    for table in ["(table 2 2 funcref) (elem (i32.const 1) $run)", "(table 0 funcref)"] {
        let component = encoded(&module(table));
        assert_eq!(modules(&component), 3);
        let joined = join_shim(&component).unwrap();
        assert_eq!(modules(&joined), 2);
        Validator::new_with_features(WasmFeatures::default()).validate_all(&joined).unwrap();
    }
}

#[test]
fn functions_keep_their_names() {
    let joined = join_shim(&encoded(&module("(table 1 funcref)"))).unwrap();
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(&joined) {
        let Ok(Payload::CustomSection(section)) = payload else { continue };
        let KnownCustom::Name(section) = section.as_known() else { continue };
        for subsection in section {
            let Name::Function(map) = subsection.unwrap() else { continue };
            names.extend(map.into_iter().map(|name| name.unwrap()).map(|n| (n.index, n.name)));
        }
    }
    // `tick` needs no memory, so the shim does not have it.
    assert_eq!(names, [(0, "tick"), (1, "twice"), (2, "size"), (3, "realloc"), (4, "run")]);
}

#[test]
fn other_forms_are_left_as_they_are() {
    let forms = [
        "",
        "(table 1 funcref) (table 1 funcref)",
        "(table 1 externref)",
        "(table (export \"$imports\") 1 funcref)",
        "(table 1 funcref (ref.func $run))",
        "(table 1 funcref) (func (result i32) table.size)",
    ];
    for tables in forms {
        assert!(join_shim(&encoded(&module(tables))).is_none(), "{tables}");
    }
    let joined = join_shim(&encoded(&module("(table 1 funcref)"))).unwrap();
    assert!(join_shim(&joined).is_none());
    assert!(join_shim(b"\0asm\x0d\0\x01\0").is_none());
    assert!(join_shim(b"nothing").is_none());
}
