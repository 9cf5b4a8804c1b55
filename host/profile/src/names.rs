//! Names of addresses: functions of the files that are loaded, and of code that the caller names.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use gristmill_core::{Code, Function};

use crate::objects::LoadedObject;

/// Maximum bytes of a name: plugins choose theirs, and a short mangled name can stand for a very
/// long one.
const NAME_BYTES_MAX: usize = 120;

/// Shows functions one by one, as [`Functions`](gristmill_core::Functions), but borrowed.
type Show<'a> = dyn Fn(&mut dyn FnMut(Function)) + 'a;

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    /// The function.
    pub(crate) function: Arc<str>,
    /// The file or the code that it is in.
    pub(crate) object: Arc<str>,
}

/// The names of these addresses. Functions are looked at one by one, and only the names of those
/// that were seen are kept.
pub(crate) fn names_of(
    addresses: &BTreeSet<u64>,
    loaded: &[LoadedObject],
    code: &[Code],
) -> HashMap<u64, Named> {
    let unknown: Arc<str> = "unknown".into();
    let unknown = Named { function: unknown.clone(), object: unknown };
    let mut names: HashMap<u64, Named> =
        addresses.iter().map(|address| (*address, unknown.clone())).collect();
    let mut add = |name: &str, range: &Range<u64>, functions: &Show<'_>| {
        let seen: Vec<u64> = addresses.range(range.clone()).copied().collect();
        if seen.is_empty() {
            return;
        }
        let object: Arc<str> = name.into();
        let nameless: Arc<str> = format!("[{name}]").into();
        for address in seen {
            let named = Named { function: nameless.clone(), object: object.clone() };
            names.insert(address, named);
        }
        functions(&mut |Function { addresses: around, name }| {
            let mut seen = addresses.range(around).peekable();
            if seen.peek().is_none() {
                return;
            }
            let function: Arc<str> = readable(&name).into();
            for address in seen {
                let named = Named { function: function.clone(), object: object.clone() };
                names.insert(*address, named);
            }
        });
    };
    for object in loaded {
        add(&object.name, &object.addresses, &|show| object.functions(show));
    }
    for code in code {
        add(&code.name, &code.addresses, &*code.functions);
    }
    names
}

/// The name as people know it, cut.
fn readable(name: &str) -> String {
    /// Ends the writing when it is full.
    struct Bounded(String);

    impl Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = NAME_BYTES_MAX - self.0.len();
            self.0.push_str(&text[..text.floor_char_boundary(room)]);
            if text.len() > room { Err(fmt::Error) } else { Ok(()) }
        }
    }

    let mut readable = Bounded(String::new());
    // An error says that it was cut.
    let _ = write!(readable, "{:#}", rustc_demangle::demangle(name));
    readable.0
}

#[cfg(test)]
mod tests {
    use gristmill_core::Functions;

    use super::{Code, Function, names_of};

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let function = |addresses, name: &str| Function { addresses, name: name.into() };
        let functions = [
            function(0x1030..0x1040, "post"),
            function(0x1010..0x1020, "_ZN5acme_3pre17h0123456789abcdefE"),
            function(0x1050..0x1060, &"long".repeat(100)),
        ];
        let functions: Functions =
            Box::new(move |show| functions.iter().cloned().for_each(&mut *show));
        let code = Code { name: "acme/digits".into(), addresses: 0x1000..0x2000, functions };
        let not_seen = Code {
            name: "other".into(),
            addresses: 0x3000..0x4000,
            functions: Box::new(|_| panic!("it is not asked")),
        };
        let addresses = [0x1010, 0x101f, 0x1020, 0x1035, 0x1058, 0x5000];
        let names = names_of(&addresses.into(), &[], &[code, not_seen]);
        let named = addresses.map(|address| &*names[&address].function);
        let long = "long".repeat(30);
        let expected = ["acme_::pre", "acme_::pre", "[acme/digits]", "post", &long, "unknown"];
        assert_eq!(named, expected);
        assert_eq!(&*names[&0x1035].object, "acme/digits");
    }
}
