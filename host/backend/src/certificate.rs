//! Whether the rows of a model's batches are independent, as far as that is known.

use std::fmt;

use gristmill_core::PaddingFault;
use serde::{Deserialize, Serialize};

use crate::options::ProviderKind;

/// The outcome of testing on a provider whether the rows of a batch influence each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificate {
    /// No row of the trial influenced another, and no operator of the graph can let it.
    Independent {
        /// The largest change of a row by those beside it, relative to its largest element. Small
        /// changes come from rounding.
        influence: f64,
        /// Runs of the trial.
        runs: u32,
    },
    /// Rows influence each other, or their number changes.
    Dependent {
        /// Which output, and how much.
        why: String,
    },
    /// It is not known.
    Undecided {
        /// The reason.
        why: String,
    },
    /// It is not known, because the machine was too busy for the trial. Another trial may decide.
    Unfinished {
        /// The reason.
        why: String,
    },
}

/// A certificate of a model on a provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// The provider.
    pub provider: ProviderKind,
    /// Its certificate.
    pub certificate: Certificate,
}

/// The outcome of testing on a provider whether rows may be padded as the configuration says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaddingProof {
    /// The provider.
    pub provider: ProviderKind,
    /// The largest change of a row by padding, relative to its largest element. Small changes come
    /// from rounding.
    pub influence: f64,
    /// Runs of the trial.
    pub runs: u32,
    /// Why rows are not padded, if they are not.
    pub reason: Option<String>,
    /// Whether the configuration is not true of the model: a change that brings it is refused. If
    /// it is false and there is a reason, it is not known whether it is true.
    pub is_false: bool,
    /// Whether the machine was too busy for the trial. Another one may decide.
    #[serde(default)]
    pub is_unfinished: bool,
}

/// All that is known of a model's rows before it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowProof {
    /// Why they cannot be followed through the graph, if they cannot.
    pub obstacle: Option<String>,
    /// The certificates made in a child process.
    pub certificates: Vec<Certified>,
    /// Whether rows may be padded, if the configuration says so. Made in a child process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub padding: Vec<PaddingProof>,
}

impl RowProof {
    /// The certificate of a provider, if it has one.
    pub(crate) fn of(&self, provider: ProviderKind) -> Option<&Certificate> {
        let mut all = self.certificates.iter();
        all.find(|each| each.provider == provider).map(|each| &each.certificate)
    }

    /// Whether the machine was too busy for a trial, so that another one may prove more.
    pub fn is_unfinished(&self) -> bool {
        let of_rows = |one: &Certified| matches!(one.certificate, Certificate::Unfinished { .. });
        self.certificates.iter().any(of_rows) || self.padding.iter().any(|one| one.is_unfinished)
    }

    /// The certificate with what the graph says: it can keep a trial from proving anything.
    pub(crate) fn judged(&self, trial: Certificate) -> Certificate {
        match (trial, &self.obstacle) {
            (Certificate::Independent { .. }, Some(why)) => {
                Certificate::Undecided { why: why.clone() }
            }
            (other, _) => other,
        }
    }
}

impl PaddingProof {
    /// It is not known, for this reason.
    pub(crate) fn undecided(provider: ProviderKind, why: impl Into<String>) -> Self {
        Self {
            provider,
            influence: 0.0,
            runs: 0,
            reason: Some(why.into()),
            is_false: false,
            is_unfinished: false,
        }
    }

    /// The configuration is not true of the model.
    pub(crate) fn refuted(provider: ProviderKind, fault: &PaddingFault) -> Self {
        Self { is_false: true, ..Self::undecided(provider, fault.to_string()) }
    }

    /// Why the configuration is not true of the model, if it is not.
    pub fn refutation(&self) -> Option<&str> {
        self.reason.as_deref().filter(|_| self.is_false)
    }
}

impl Certificate {
    /// Whether rows may share batches.
    pub fn is_independent(&self) -> bool {
        matches!(self, Self::Independent { .. })
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Independent { influence, runs } => {
                write!(
                    f,
                    "rows are independent: the largest influence was {influence:.0e}, {runs} runs"
                )
            }
            Self::Dependent { why } => write!(f, "rows influence each other: {why}"),
            Self::Undecided { why } | Self::Unfinished { why } => {
                write!(f, "it is not known whether rows are independent: {why}")
            }
        }
    }
}
