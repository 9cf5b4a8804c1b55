use super::{Import, Source, read};

fn import(path: &str, name: &str, is_export: bool) -> Import {
    let path = path.split("::").map(str::to_owned).collect();
    Import { path, name: name.into(), is_export }
}

fn paths(source: &Source) -> Vec<String> {
    source.paths.iter().map(|path| path.join("::")).collect()
}

#[test]
fn trees_of_imports_come_apart_into_names() {
    let source = read(
        "use crate::a::{self, B, c::{D as E, F}};\n\
         pub(crate) use super::g::*;\n\
         pub use h::I;\n\
         use ::std::fmt;",
    );
    let expected = [
        import("crate::a", "a", false),
        import("crate::a::B", "B", false),
        import("crate::a::c::D", "E", false),
        import("crate::a::c::F", "F", false),
        import("super::g", "*", true),
        import("h::I", "I", true),
        import("std::fmt", "fmt", false),
    ];
    assert_eq!(source.imports, expected);
}

#[test]
fn paths_are_found_and_methods_are_not() {
    let source =
        read("fn f(x: crate::a::B) -> impl T + use<> { x.collect::<Vec<u8>>(); c::d(x.e) }");
    assert_eq!(paths(&source), ["crate::a::B", "c::d"]);
    assert!(source.imports.is_empty() && source.names.contains("collect"));
}

#[test]
fn comments_texts_and_characters_hold_no_paths() {
    let source = read(
        r####"// a::b
        /* c::d /* e::f */ g::h */
        const A: &str = "i::j \" k::l";
        const B: &str = r##"m::n "# o::p"##;
        fn f<'a>(x: &'a str) -> char { '"' } fn g() -> char { '\'' }
        type T = q::R;"####,
    );
    assert_eq!(paths(&source), ["q::R"]);
}

#[test]
fn what_only_tests_have_is_left_out() {
    let source = read(
        "#[cfg(test)]\nmod tests;\n\
         #[cfg(test)] #[allow(dead_code)] fn f(a: [u8; 2], b: a::B) { c::d() }\n\
         struct S { #[cfg(test)] e: f::G, h: i::J }\n\
         #[cfg(test)] mod more { use k::L; }\n\
         #[cfg(not(test))] use m::N;\n\
         mod shipped;",
    );
    assert_eq!(source.files, ["shipped"]);
    assert_eq!(paths(&source), ["i::J"]);
    assert_eq!(source.imports, [import("m::N", "N", false)]);
    assert!(source.inline.is_empty());
}

#[test]
fn inline_modules_have_sources_of_their_own() {
    let source = read("mod a { use super::B; fn f() { { c::d() } } } mod e; fn g() { h::i() }");
    let [(name, inner)] = &source.inline[..] else { panic!("{source:?}") };
    assert_eq!((name.as_str(), paths(inner)), ("a", vec!["c::d".to_owned()]));
    assert_eq!(inner.imports, [import("super::B", "B", false)]);
    assert_eq!(
        (source.files.as_slice(), paths(&source)),
        (&["e".to_owned()][..], vec!["h::i".to_owned()])
    );
}
