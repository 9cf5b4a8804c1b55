//! Which tensor a name of the graph means.

use std::collections::HashMap;
use std::rc::Rc;

use tract_onnx::pb::OperatorSetIdProto;

use super::attributes::Attributes;
use super::fact::Fact;

/// Versions of the operators of each domain; none if the file names two.
pub(super) struct Opsets<'a>(HashMap<&'a str, Option<i64>>);

/// What the body of a function sees of its caller.
pub(super) struct Frame<'a> {
    pub(super) opsets: Opsets<'a>,
    /// The attributes that the caller gives.
    pub(super) attributes: Attributes<'a>,
}

/// The names of a graph, and of the graphs around it.
pub(super) struct Scope<'a, 's> {
    pub(super) frame: &'s Frame<'a>,
    /// None is an optional input that is not there.
    names: HashMap<&'a str, Option<Rc<Fact>>>,
    around: Option<&'s Scope<'a, 's>>,
}

impl<'a> Opsets<'a> {
    pub(super) fn new(imports: &'a [OperatorSetIdProto]) -> Self {
        let mut versions = HashMap::new();
        for import in imports {
            let version = versions.entry(plain(&import.domain)).or_insert(Some(import.version));
            if *version != Some(import.version) {
                *version = None;
            }
        }
        Self(versions)
    }

    pub(super) fn version(&self, domain: &str) -> Option<i64> {
        *self.0.get(domain)?
    }
}

/// The name of a domain; the standard one has two.
pub(super) fn plain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

impl<'a, 's> Scope<'a, 's> {
    pub(super) fn new(frame: &'s Frame<'a>) -> Self {
        Self { frame, names: HashMap::new(), around: None }
    }

    pub(super) fn within(around: &'s Scope<'a, 's>) -> Self {
        Self { frame: around.frame, names: HashMap::new(), around: Some(around) }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Option<Rc<Fact>>> {
        let mut scope = Some(self);
        while let Some(each) = scope {
            if let Some(fact) = each.names.get(name) {
                return Some(fact);
            }
            scope = each.around;
        }
        None
    }

    /// False if the name has a meaning already.
    pub(super) fn define(&mut self, name: &'a str, fact: Option<Rc<Fact>>) -> bool {
        self.find(name).is_none() && self.names.insert(name, fact).is_none()
    }
}
