//! Connects a submitter with the batch of its request. A ticket is one allocation with one small
//! lock.
//!
//! Invariant: a ticket is answered once, or its submitter is gone. A [`Reply`] that is dropped
//! unanswered answers that the lane is closed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gristmill_core::{Late, ModelUse};
use parking_lot::Mutex;

use crate::error::SubmitError;
use crate::submission::Answered;

pub(crate) type AnswerResult = Result<Answered, SubmitError>;

enum Progress {
    Queued(Option<Waker>),
    /// In a batch that runs. The request can no longer be withdrawn.
    Taken(Option<Waker>),
    Answered(AnswerResult),
    /// The submitter has its answer, or has taken its request back.
    Gone,
    /// The submitter has left while a batch has the request. This takes the charge.
    Left(Late),
}

struct Ticket(Mutex<Progress>);

/// The batch's end of a ticket.
pub(crate) struct Reply(Arc<Ticket>);

/// The submitter's end: a future of the answer. Dropping it withdraws the request.
pub(crate) struct PendingReply(Arc<Ticket>);

/// A new ticket's two ends.
pub(crate) fn ticket() -> (Reply, PendingReply) {
    let ticket = Arc::new(Ticket(Mutex::new(Progress::Queued(None))));
    (Reply(ticket.clone()), PendingReply(ticket))
}

impl Reply {
    /// Whether the submitter is gone.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(*self.0.0.lock(), Progress::Gone | Progress::Left(_))
    }

    /// Note that the request goes into a batch now. Returns false if the submitter is gone.
    pub(crate) fn take(&self) -> bool {
        let mut progress = self.0.0.lock();
        match &mut *progress {
            Progress::Queued(waker) => {
                *progress = Progress::Taken(waker.take());
                true
            }
            Progress::Taken(_) => true,
            Progress::Answered(_) | Progress::Gone | Progress::Left(_) => false,
        }
    }

    pub(crate) fn answer(self, answer: AnswerResult) {
        self.settle(answer);
    }

    fn settle(&self, answer: AnswerResult) {
        let mut progress = self.0.0.lock();
        if matches!(*progress, Progress::Answered(_)) {
            return;
        }
        let waker = match std::mem::replace(&mut *progress, Progress::Gone) {
            Progress::Queued(waker) | Progress::Taken(waker) => waker,
            Progress::Left(late) => {
                drop(progress);
                return late.ran(used_of(&answer));
            }
            Progress::Answered(_) | Progress::Gone => return,
        };
        *progress = Progress::Answered(answer);
        drop(progress);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.settle(Err(SubmitError::Closed));
    }
}

impl PendingReply {
    /// Whether it was answered.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(*self.0.0.lock(), Progress::Answered(_))
    }

    /// Take the request back if no batch has it yet. Returns whether it was taken back.
    pub(crate) fn withdraw(&self) -> bool {
        let mut progress = self.0.0.lock();
        let queued = matches!(*progress, Progress::Queued(_));
        if queued {
            *progress = Progress::Gone;
        }
        queued
    }

    /// Leave. If a batch has the request, `late` is charged for it when the batch has run.
    pub(crate) fn leave(&self, late: Late) {
        let mut progress = self.0.0.lock();
        match std::mem::replace(&mut *progress, Progress::Gone) {
            Progress::Taken(_) => *progress = Progress::Left(late),
            Progress::Answered(answer) => {
                drop(progress);
                late.ran(used_of(&answer));
            }
            Progress::Queued(_) | Progress::Gone | Progress::Left(_) => {}
        }
    }
}

/// The use that a request made of the model.
fn used_of(answer: &AnswerResult) -> ModelUse {
    match answer {
        Ok(answered) => answered.used,
        Err(error) => error.used(),
    }
}

impl Future for PendingReply {
    type Output = AnswerResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AnswerResult> {
        let mut progress = self.0.0.lock();
        match &mut *progress {
            Progress::Queued(waker) | Progress::Taken(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            Progress::Answered(_) => match std::mem::replace(&mut *progress, Progress::Gone) {
                Progress::Answered(answer) => Poll::Ready(answer),
                _ => Poll::Pending,
            },
            Progress::Gone | Progress::Left(_) => Poll::Ready(Err(SubmitError::Closed)),
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let mut progress = self.0.0.lock();
        if !matches!(*progress, Progress::Left(_)) {
            *progress = Progress::Gone;
        }
    }
}
