//! The attributes of a node.
//!
//! Invariant: it is known which of them a rule has read. One that no rule reads may change what the
//! operator does.

use std::cell::Cell;

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto};

use super::fact::Why;

/// Nodes with more attributes are not followed.
const COUNT_MAX: usize = 64;

/// Attributes by name.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    all: Vec<(&'a str, &'a AttributeProto)>,
    /// A bit for each that has not been read.
    unread: Cell<u64>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a node, with those of `caller` that it refers to.
    pub(super) fn new(node: &'a NodeProto, caller: &Attributes<'a>) -> Result<Self, Why> {
        if node.attribute.len() > COUNT_MAX {
            return Err("it has too many attributes".into());
        }
        let mut all = Vec::new();
        for attribute in &node.attribute {
            let name = &attribute.name[..];
            if all.iter().any(|(each, _)| *each == name) {
                return Err(unclear(name));
            }
            let referred = &attribute.ref_attr_name;
            let value = if referred.is_empty() {
                Some(attribute)
            } else {
                // It may have a default, which tract does not read.
                caller.find(referred)
            };
            all.push((name, value.ok_or_else(|| unclear(name))?));
        }
        let unread = Cell::new((0..all.len()).fold(0, |bits, at| bits | 1 << at));
        Ok(Self { all, unread })
    }

    fn find(&self, name: &str) -> Option<&'a AttributeProto> {
        self.all.iter().find(|(each, _)| *each == name).map(|(_, attribute)| *attribute)
    }

    /// Attributes that do not matter.
    pub(super) fn ignore(&self, names: &[&str]) {
        for (at, (name, _)) in self.all.iter().enumerate() {
            if names.contains(name) {
                self.unread.set(self.unread.get() & !(1 << at));
            }
        }
    }

    pub(super) fn ignore_all(&self) {
        self.unread.set(0);
    }

    /// An attribute that has not been read.
    pub(super) fn unread(&self) -> Option<&'a str> {
        let first = self.all.get(self.unread.get().trailing_zeros() as usize);
        first.map(|(name, _)| *name)
    }

    /// None if there is none of this name.
    pub(super) fn get(
        &self,
        name: &str,
        kind: AttributeType,
    ) -> Result<Option<&'a AttributeProto>, Why> {
        self.ignore(&[name]);
        match self.find(name) {
            Some(attribute) if attribute.r#type() != kind => Err(unclear(name)),
            attribute => Ok(attribute),
        }
    }

    pub(super) fn graph(&self, name: &str) -> Result<&'a GraphProto, Why> {
        let graph = self.get(name, AttributeType::Graph)?;
        graph.and_then(|graph| graph.g.as_ref()).ok_or_else(|| unclear(name))
    }
}

fn unclear(name: &str) -> Why {
    let name: String = name.chars().take(40).collect();
    format!("its attribute `{name}` is not clear").into()
}
