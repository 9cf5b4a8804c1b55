//! Names of addresses: functions of the files that are loaded, and of code that the caller names.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::objects::{Function, LoadedObject};

/// The most characters of a name: plugins choose theirs.
const NAME_CHARS_MAX: usize = 200;

/// Code that is not in a file that the system loaded, such as a compiled plugin. It must stay
/// loaded as long as this lives.
pub struct Code {
    /// Its name, which stands for its file.
    pub name: String,
    /// Its addresses in this process.
    pub addresses: Range<u64>,
    /// Its functions, in any order. This is asked only if it was seen running.
    pub functions: Box<dyn Fn() -> Vec<Function> + Send>,
}

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    /// The function.
    pub(crate) function: Arc<str>,
    /// The file or the code that it is in.
    pub(crate) object: Arc<str>,
}

/// The names of these addresses. If two codes have an address, because one was unloaded, the later
/// one of the list names it.
pub(crate) fn names_of(
    addresses: &BTreeSet<u64>,
    loaded: &[LoadedObject],
    code: &[Code],
) -> HashMap<u64, Named> {
    let unknown: Arc<str> = "unknown".into();
    let unknown = Named { function: unknown.clone(), object: unknown };
    let mut names: HashMap<u64, Named> =
        addresses.iter().map(|address| (*address, unknown.clone())).collect();
    let mut add = |name: &str, own: &Range<u64>, functions: &dyn Fn() -> Vec<Function>| {
        let mut seen = addresses.range(own.clone()).peekable();
        if seen.peek().is_none() {
            return;
        }
        let mut functions = functions();
        functions.sort_unstable_by_key(|function| function.addresses.start);
        let object: Arc<str> = name.into();
        for address in seen {
            let function = name_in(&functions, *address).unwrap_or_else(|| format!("[{name}]"));
            let named = Named { function: function.into(), object: object.clone() };
            names.insert(*address, named);
        }
    };
    for object in loaded {
        add(&object.name, &object.addresses, &|| object.functions());
    }
    for code in code {
        add(&code.name, &code.addresses, &*code.functions);
    }
    names
}

/// The name of the function at `address`, of functions that are sorted.
fn name_in(functions: &[Function], address: u64) -> Option<String> {
    let after = functions.partition_point(|function| function.addresses.start <= address);
    let function = functions[..after].last()?;
    let is_in = function.addresses.is_empty() || function.addresses.contains(&address);
    is_in.then(|| {
        let name = format!("{:#}", rustc_demangle::demangle(&function.name));
        name.chars().take(NAME_CHARS_MAX).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{Code, Function, names_of};

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let function = |addresses, name: &str| Function { addresses, name: name.into() };
        let functions = vec![
            function(0x1030..0x1040, "post"),
            function(0x1010..0x1020, "_ZN5acme_3pre17h0123456789abcdefE"),
            function(0x1050..0x1050, "without an end"),
        ];
        let functions = Box::new(move || functions.clone());
        let code = Code { name: "acme/digits".into(), addresses: 0x1000..0x2000, functions };
        let not_seen = Code {
            name: "other".into(),
            addresses: 0x3000..0x4000,
            functions: Box::new(|| panic!("it is not asked")),
        };
        let addresses = [0x1010, 0x101f, 0x1020, 0x1035, 0x1060, 0x5000];
        let names = names_of(&addresses.into(), &[], &[code, not_seen]);
        let named = addresses.map(|address| &*names[&address].function);
        let expected =
            ["acme_::pre", "acme_::pre", "[acme/digits]", "post", "without an end", "unknown"];
        assert_eq!(named, expected);
        assert_eq!(&*names[&0x1035].object, "acme/digits");
    }
}
