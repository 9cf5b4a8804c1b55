//! The padding of a model's rows, in its status.

use std::collections::BTreeMap;

use gristmill_snapshot::{PaddingProof, ServedModel};
use serde::Serialize;
use utoipa::ToSchema;

/// How rows of different lengths share batches.
#[derive(Serialize, ToSchema)]
#[schema(as = PaddingStatus)]
pub(super) struct PaddingDocument<'a> {
    /// The sizes to which inputs are filled up, by input. Empty if it is not proven on each
    /// provider that padding changes no answer.
    #[schema(value_type = BTreeMap<String, Vec<usize>>)]
    buckets: BTreeMap<&'a str, &'a [usize]>,
    /// Why rows are not padded any more, if a run showed that padding changes an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// The trials of padding, by provider.
    #[schema(value_type = Vec<PaddingProofDocument<'_>>)]
    proofs: Vec<PaddingProofDocument<'a>>,
}

/// Whether padding was found to change no answer on a provider.
#[derive(Serialize, ToSchema)]
#[schema(as = PaddingProof)]
struct PaddingProofDocument<'a> {
    /// `cuda`, `cpu` or `tract`.
    provider: &'static str,
    /// The largest change of a row by padding in the trial, relative to the row's largest element.
    influence: f64,
    /// Runs of the trial.
    runs: u32,
    /// Why rows are not padded, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> PaddingDocument<'a> {
    /// None if nothing was said of padding, or if requests share no batches.
    pub(super) fn of(ServedModel { lane, padding_proofs, .. }: &'a ServedModel) -> Option<Self> {
        let mut buckets = BTreeMap::new();
        for length in &lane.config().padding.lengths {
            for padded in &length.inputs {
                let name = &*lane.info().inputs[padded.input].name;
                buckets.insert(name, &length.buckets[..]);
            }
        }
        let proof = |proof: &'a PaddingProof| PaddingProofDocument {
            provider: proof.provider.as_str(),
            influence: proof.influence,
            runs: proof.runs,
            reason: proof.reason.as_deref(),
        };
        let proofs = padding_proofs.iter().map(proof).collect();
        let ended = lane.padding_ended().map(|why| why.to_string());
        (!padding_proofs.is_empty()).then_some(Self { buckets, ended, proofs })
    }
}
