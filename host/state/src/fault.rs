//! The parts of the desired state that are not served, and the reasons.

use std::collections::BTreeSet;
use std::fmt;

use gristmill_core::Name;

/// A thing of the desired state: the subject of a change or of a fault. Faults are compared by it,
/// never by their texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A plugin.
    Plugin {
        /// Its tenant.
        tenant: Name,
        /// Its own name.
        plugin: Name,
    },
    /// An asset.
    Asset {
        /// Its tenant.
        tenant: Name,
        /// Its own name.
        asset: Name,
    },
    /// A model.
    Model(Name),
    /// A tenant.
    Tenant(Name),
    /// A pipeline.
    Pipeline {
        /// Its tenant.
        tenant: Name,
        /// Its own name.
        pipeline: Name,
    },
    /// The candidate of a pipeline.
    Candidate {
        /// Its tenant.
        tenant: Name,
        /// Its pipeline.
        pipeline: Name,
    },
    /// The configuration of a model.
    ModelConfig(Name),
    /// An API key.
    Key {
        /// Its tenant.
        tenant: Name,
        /// Its own name.
        key: Name,
    },
    /// An admin token.
    Token(Name),
}

/// A part of the desired state that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The thing.
    pub subject: Subject,
    /// The earlier version of it that is not served, if it is not the thing itself.
    pub version: Option<u64>,
    /// Why it is not served, in words for the client.
    pub reason: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin { tenant, plugin } => {
                write!(f, "tenant {:?}, plugin {:?}", tenant.as_str(), plugin.as_str())
            }
            Self::Asset { tenant, asset } => {
                write!(f, "tenant {:?}, asset {:?}", tenant.as_str(), asset.as_str())
            }
            Self::Model(model) => write!(f, "model {:?}", model.as_str()),
            Self::Tenant(tenant) => write!(f, "tenant {:?}", tenant.as_str()),
            Self::Pipeline { tenant, pipeline } => {
                write!(f, "tenant {:?}, pipeline {:?}", tenant.as_str(), pipeline.as_str())
            }
            Self::Candidate { tenant, pipeline } => {
                let (tenant, pipeline) = (tenant.as_str(), pipeline.as_str());
                write!(f, "tenant {tenant:?}, candidate of pipeline {pipeline:?}")
            }
            Self::ModelConfig(model) => write!(f, "configuration of model {:?}", model.as_str()),
            Self::Key { tenant, key } => {
                write!(f, "tenant {:?}, key {:?}", tenant.as_str(), key.as_str())
            }
            Self::Token(token) => write!(f, "token {:?}", token.as_str()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)?;
        if let Some(version) = self.version {
            write!(f, ", version {version}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// A part of the desired state: a thing, or an earlier version of it.
pub type FaultyPart = (Subject, Option<u64>);

impl Fault {
    /// A fault of a thing.
    pub fn of(subject: Subject, reason: String) -> Self {
        Self { subject, version: None, reason }
    }

    /// The part that is not served.
    pub fn part(&self) -> FaultyPart {
        (self.subject.clone(), self.version)
    }

    /// Whether it may follow from another fault: a pipeline and its candidate fail if their
    /// plugins, their assets or their models fail.
    fn is_consequence(&self) -> bool {
        matches!(self.subject, Subject::Pipeline { .. } | Subject::Candidate { .. })
    }
}

/// The faults for which a change is refused: those of parts without a fault before, and those of
/// the change's own subjects, but for their earlier versions. Faults that only follow from others
/// are left out.
pub fn refusing(
    faults: Vec<Fault>,
    faulty_before: &BTreeSet<FaultyPart>,
    changed: &[Subject],
) -> Vec<Fault> {
    let is_own = |fault: &Fault| fault.version.is_none() && changed.contains(&fault.subject);
    let is_new = |fault: &Fault| !faulty_before.contains(&fault.part()) || is_own(fault);
    let mut new: Vec<_> = faults.into_iter().filter(is_new).collect();
    if new.iter().any(|fault| !fault.is_consequence()) {
        new.retain(|fault| !fault.is_consequence());
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> Fault {
        Fault::of(Subject::Model(name.parse().unwrap()), "broken".into())
    }

    fn pipeline(name: &str, reason: &str) -> Fault {
        let (tenant, pipeline) = ("acme".parse().unwrap(), name.parse().unwrap());
        Fault::of(Subject::Pipeline { tenant, pipeline }, reason.into())
    }

    #[test]
    fn a_known_fault_refuses_nothing_although_its_reason_is_another() {
        let faulty = [pipeline("a", "missing file 1").part()].into();
        assert_eq!(refusing(vec![pipeline("a", "missing file 2")], &faulty, &[]), []);
        let both = vec![pipeline("a", "x"), pipeline("b", "y"), pipeline("c", "z")];
        assert_eq!(refusing(both, &faulty, &[]), [pipeline("b", "y"), pipeline("c", "z")]);
    }

    #[test]
    fn what_a_change_is_about_must_be_whole() {
        let subjects = [pipeline("a", "x").subject];
        let faulty = [pipeline("a", "x").part()].into();
        assert_eq!(refusing(vec![pipeline("a", "x")], &faulty, &subjects), [pipeline("a", "x")]);
    }

    #[test]
    fn an_earlier_version_that_fails_already_refuses_no_new_one() {
        let earlier = Fault { version: Some(14), ..model("m") };
        assert_eq!(earlier.to_string(), "model \"m\", version 14: broken");
        let (faulty, subjects) = ([earlier.part()].into(), [model("m").subject]);
        assert_eq!(refusing(vec![earlier.clone()], &faulty, &subjects), []);
        assert_eq!(refusing(vec![model("m"), earlier.clone()], &faulty, &subjects), [model("m")]);
        assert_eq!(refusing(vec![earlier.clone()], &BTreeSet::new(), &subjects), [earlier]);
    }

    #[test]
    fn consequences_are_left_out_beside_their_cause() {
        let faults = vec![pipeline("a", "model"), model("m"), pipeline("b", "model")];
        assert_eq!(refusing(faults, &BTreeSet::new(), &[]), [model("m")]);
    }
}
