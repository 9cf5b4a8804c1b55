//! Classes in place of outputs: the protocol's classification extension.

use std::sync::Arc;

use gristmill_core::ByteBudget;
use gristmill_oip::{Classes, InferRequest, Output, ParseError, Room};
use gristmill_serve::Caller;
use gristmill_snapshot::TensorNotes;
use gristmill_transport::{INLINE_BYTES_MAX, Problem};

use super::Inference;

/// What the classes of a model's outputs need besides their elements.
pub(super) struct Ranking<'a> {
    pub(super) notes: &'a Arc<TensorNotes>,
    /// Whether the first dimension of the outputs is rows.
    pub(super) has_rows: bool,
}

impl Inference {
    /// The outputs, with classes in place of those of which the request wants them. The classes of
    /// large outputs are made off the serving threads.
    ///
    /// # Errors
    /// An output cannot be classified, or the budget has no room for the classes.
    pub(super) async fn classified(
        &self,
        caller: Caller<'_>,
        Ranking { notes, has_rows }: Ranking<'_>,
        request: &InferRequest,
        mut outputs: Vec<Output>,
    ) -> Result<Vec<Output>, Problem> {
        if request.outputs.iter().all(|asked| asked.classes == 0) {
            return Ok(outputs);
        }
        let wanted = |output: &Output| {
            let asked = request.outputs.iter().find(|asked| *asked.name == *output.name);
            asked.map_or(0, |asked| asked.classes)
        };
        let counts: Vec<_> = outputs.iter().map(wanted).collect();
        let ranked = outputs.iter().zip(&counts).filter(|(_, count)| **count > 0);
        let bytes: usize = ranked.map(|(output, _)| output.data.as_slice().len()).sum();
        let (budget, notes) = (caller.budget().cloned(), notes.clone());
        let work = move || {
            classify(&mut outputs, &counts, has_rows, &notes, budget.as_ref())?;
            Ok::<_, ParseError>(outputs)
        };
        if bytes <= INLINE_BYTES_MAX {
            return Ok(work()?);
        }
        Ok(self.offload().run(caller.name(), work).await??)
    }
}

/// Put so many classes in place of each output; 0 leaves it as it is.
fn classify(
    outputs: &mut [Output],
    counts: &[usize],
    has_rows: bool,
    notes: &TensorNotes,
    budget: Option<&Arc<ByteBudget>>,
) -> Result<(), ParseError> {
    let room = Room::new(budget, usize::MAX);
    for (output, count) in outputs.iter_mut().zip(counts).filter(|(_, count)| **count > 0) {
        let labels = notes.labels.get(&*output.name).map_or(&[][..], |labels| &**labels);
        *output = Classes { count: *count, has_rows, labels }.of(output, &room)?;
    }
    Ok(())
}
