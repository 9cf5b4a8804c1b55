//! Why the rows of a model are not shown to be independent.

use std::fmt;
use std::sync::Arc;

/// A node that the rows cannot be followed through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) node: String,
    pub(super) operator: String,
    pub(super) why: String,
}

/// The first thing in a graph that may let rows influence each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The output of the graph that is concerned; none if all are.
    pub output: Option<String>,
    /// The node's name, or its first output if it has none; none if no node is the cause.
    pub node: Option<String>,
    /// The node's operator, with its domain if it is not the standard one.
    pub operator: Option<String>,
    /// The cause, in words.
    pub why: String,
}

impl Obstacle {
    pub(super) fn of_model(why: impl Into<String>) -> Self {
        Self { output: None, node: None, operator: None, why: why.into() }
    }

    pub(super) fn of_output(output: &str, why: impl Into<String>) -> Self {
        Self { output: Some(start_of(output)), ..Self::of_model(why) }
    }

    pub(super) fn of_node(output: &str, reason: &Arc<Reason>) -> Self {
        let node = Some(reason.node.clone());
        let operator = Some(reason.operator.clone());
        Self { node, operator, ..Self::of_output(output, &reason.why) }
    }
}

/// A name, cut if it is very long.
pub(super) fn start_of(name: &str) -> String {
    name.chars().take(200).collect()
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(output) = &self.output {
            write!(f, "output `{output}`: ")?;
        }
        if let (Some(node), Some(operator)) = (&self.node, &self.operator) {
            write!(f, "node `{node}` ({operator}): ")?;
        }
        f.write_str(&self.why)
    }
}
