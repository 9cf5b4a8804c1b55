//! No circle between the files of a crate: a file is not imported by a file that it imports,
//! directly or through others.
//!
//! The rule:
//! - a file imports the files that define what its paths mean, in `use` and in the code. A path
//!   that goes by way of a re-export, such as `crate::Name` of `lib.rs`, leads to the file that
//!   defines the item, and the file with the re-export is not imported;
//! - `mod name;` is not an import, and neither is `pub use` (`pub(crate) use`) of what lies within
//!   the module, unless the module's own code uses the name, too;
//! - a child may import its parent, but then its parent may not import the child. Types that both
//!   need stand in a file of their own;
//! - tests do not count: all under `#[cfg(test)]`.
//!
//! Calls of methods do not count, because they need no path to the file with the `impl`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::source::Import;
use super::tree::{Resolved, Tree};

/// For each file the files that it imports, each with one of the paths by which it does.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// The circles between the files under `source`, the `src` folder of a crate, in words.
///
/// # Errors
/// A declared module has no file.
pub(super) fn of_crate(source: &Path) -> Result<Vec<String>> {
    let read = |file: &Path| std::fs::read_to_string(source.join(file)).ok();
    let mut roots: Vec<String> = ["lib.rs", "main.rs"].map(str::to_owned).into();
    if let Ok(programs) = std::fs::read_dir(source.join("bin")) {
        for program in programs {
            let name = program?.file_name().to_string_lossy().into_owned();
            let file = if name.ends_with(".rs") { name } else { format!("{name}/main.rs") };
            roots.push(format!("bin/{file}"));
        }
    }
    roots.retain(|root| source.join(root).is_file());
    circles(&roots, &read)
}

fn circles(roots: &[String], read: &dyn Fn(&Path) -> Option<String>) -> Result<Vec<String>> {
    let mut imports = Imports::new();
    for root in roots {
        add_imports(&Tree::read(root, read)?, &mut imports);
    }
    Ok(knots(&imports).iter().map(|knot| describe(knot, &imports)).collect())
}

/// Add what each file of `tree` imports.
fn add_imports(tree: &Tree, imports: &mut Imports) {
    for (index, module) in tree.modules.iter().enumerate() {
        let mut add = |path: &[String], target: usize| {
            let (from, to) = (&module.file, &tree.modules[target].file);
            if from != to {
                let imports = imports.entry(from.clone()).or_default();
                imports.entry(to.clone()).or_insert_with(|| path.join("::"));
            }
        };
        for import in &module.source.imports {
            if let Some(target) = imported(tree, index, import) {
                add(&import.path, target);
            }
        }
        for path in &module.source.paths {
            if let Some(Resolved::Item(target)) = tree.resolve(index, path) {
                add(path, target);
            }
        }
    }
}

/// The module whose item this `use` imports, if it imports an item.
fn imported(tree: &Tree, module: usize, import: &Import) -> Option<usize> {
    let target = match tree.resolve(module, &import.path)? {
        Resolved::Item(target) => target,
        Resolved::Module(target) if import.name == "*" => target,
        // The paths that begin with its name count by themselves.
        Resolved::Module(_) => return None,
    };
    let is_re_export = import.is_export
        && tree.is_within(target, module)
        && !tree.modules[module].source.names.contains(&import.name);
    (!is_re_export).then_some(target)
}

/// The circles: groups of files in which each imports all others, directly or by way of others.
fn knots(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reach(imports, file))).collect();
    let mut knots: Vec<BTreeSet<&str>> = Vec::new();
    for (file, reached) in &reachable {
        if !reached.contains(file) || knots.iter().any(|knot| knot.contains(file)) {
            continue;
        }
        let returns = |other: &&&str| reachable.get(*other).is_some_and(|back| back.contains(file));
        knots.push(reached.iter().filter(returns).copied().collect());
    }
    knots
}

/// What `file` imports, directly or by way of others; itself only if it is in a circle.
fn reach<'a>(imports: &'a Imports, file: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(file) = next.pop() {
        for imported in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(imported.as_str()) {
                next.push(imported);
            }
        }
    }
    reached
}

/// The files of a circle, and every import between them.
fn describe(knot: &BTreeSet<&str>, imports: &Imports) -> String {
    let files: Vec<_> = knot.iter().copied().collect();
    let mut text = format!("a circle of {}", files.join(", "));
    for file in knot {
        for (imported, path) in imports.get(*file).into_iter().flatten() {
            if knot.contains(imported.as_str()) {
                text.push_str(&format!("\n    {file} -> {imported} ({path})"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
