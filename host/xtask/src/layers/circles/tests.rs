use std::path::Path;

use super::circles;

/// The circles of a made-up crate, each as the files in it.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path)?;
        Some(file.1.to_owned())
    };
    let found = circles(&["lib.rs".to_owned()], &read).unwrap();
    let files = |circle: &String| {
        let first = circle.lines().next().unwrap();
        first.strip_prefix("a circle of ").unwrap().to_owned()
    };
    found.iter().map(files).collect()
}

#[test]
fn one_way_imports_are_not_a_circle() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::B; use crate::c;\nfn f() { c::g() }"),
        ("b.rs", "use super::c::C;"),
        ("c.rs", "use std::fmt; fn g() {}"),
    ];
    assert_eq!(circles_of(&files), [""; 0]);
}

#[test]
fn files_that_import_each_other_are_a_circle_also_by_way_of_others() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "fn f() { crate::c::g(); }"),
        ("c.rs", "use super::{a, d};\nfn g() { a::h(); d::i() }"),
        ("d.rs", ""),
    ];
    assert_eq!(circles_of(&files), ["a.rs, b.rs, c.rs"]);
}

#[test]
fn the_names_of_a_root_lead_to_the_files_that_define_them() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::{A, Other as Renamed}; pub const C: u8 = 0;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::Renamed;"),
    ];
    assert_eq!(circles_of(&files), ["a.rs, b.rs"]);
    let files = [
        ("lib.rs", "mod a; pub use a::A; pub const C: u8 = 0;"),
        ("a.rs", "use crate::C; struct A;"),
    ];
    assert_eq!(circles_of(&files), [""; 0], "a re-export alone is not an import");
}

#[test]
fn a_child_may_import_a_parent_that_only_re_exports_it() {
    let child = ("a/b.rs", "use super::Shared; pub struct B;");
    let crate_of = |parent| [("lib.rs", "mod a;"), ("a.rs", parent), child];
    let shared = "mod b; pub use b::B; pub struct Shared;";
    assert_eq!(circles_of(&crate_of(shared)), [""; 0]);
    let used = "mod b; pub use b::B; pub struct Shared(B);";
    assert_eq!(circles_of(&crate_of(used)), ["a.rs, a/b.rs"]);
    let private = "mod b; use b::B; pub struct Shared;";
    assert_eq!(circles_of(&crate_of(private)), ["a.rs, a/b.rs"]);
    let path = "mod b; pub struct Shared; fn f() { b::g() }";
    assert_eq!(circles_of(&crate_of(path)), ["a.rs, a/b.rs"]);
    let glob = "mod b; use b::*; pub struct Shared;";
    assert_eq!(circles_of(&crate_of(glob)), ["a.rs, a/b.rs"]);
}

#[test]
fn tests_and_inline_modules_do_not_count_as_files() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; #[cfg(test)] mod tests; #[cfg(test)] mod more;"),
        ("b.rs", "mod inner { use super::B; pub struct I; } use inner::I; pub struct B;"),
        ("a/more.rs", "use crate::a::A;"),
    ];
    assert_eq!(circles_of(&files), [""; 0]);
}

#[test]
fn folders_with_mod_rs_are_found_and_missing_files_are_faults() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod c; use crate::b::B;"),
        ("a/c.rs", "pub struct C;"),
        ("b.rs", "use crate::a::c::C;"),
    ];
    assert_eq!(circles_of(&files), [""; 0]);
    let none = |path: &Path| (path == Path::new("lib.rs")).then(|| "mod a;".to_owned());
    assert!(circles(&["lib.rs".to_owned()], &none).is_err());
}
