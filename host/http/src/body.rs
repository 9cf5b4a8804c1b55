//! Bodies: reading one, bounded in bytes and in time, and answering with one in several parts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gristmill_core::{BufferMut, BufferPool, ByteBudget, Deadline, ErrorCode, HeldBytes, OverBudget, PromisedBytes};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::task::yield_now;

use crate::problem::Problem;

/// What the data plane answers.
pub(crate) type Answer = Response<ResponseBody>;

/// The most that is set aside for a body before any of it is there.
const RESERVED_BYTES_MAX: usize = 8 << 20;

/// From here on a body of known length is put together in a pooled buffer of that length.
pub(crate) const POOLED_BYTES_MIN: usize = 64 << 10;

/// After how much of a body its task lets others go on. tokio itself does so after 128 reads, which can be 32 MB; and
/// not at all where the body's bytes are read from the socket by another task.
const TURN_BYTES_MAX: usize = 256 << 10;

/// After how many turns it also lets its thread look at its sockets.
const TURNS_BETWEEN_SOCKETS: usize = 4;

/// How much of a body that nobody wanted is read, and for how long, for its connection to be used again.
const UNWANTED_BYTES_MAX: usize = 64 << 10;
const UNWANTED_WAIT: Duration = Duration::from_secs(1);

/// What tensors are aligned to in a body that is put together from several reads.
const ALIGNMENT: usize = 64;

/// What is less than this does not count against its tenant's budget.
const HELD_BYTES_MIN: usize = 4 << 10;

/// Bounds on reading a body.
pub(crate) struct Limits<'a> {
    pub(crate) bytes: usize,
    pub(crate) deadline: Deadline,
    /// What its bytes count against, from when they come until the body is dropped.
    pub(crate) budget: Option<&'a Arc<ByteBudget>>,
    /// Where in the body its tensors begin, which are to be aligned.
    pub(crate) aligned_at: usize,
    /// Where a large one has its memory from.
    pub(crate) pool: &'a BufferPool,
}

/// The whole body. What says that it is over the limit is refused unread; what turns out to be, as
/// soon as it does.
pub(crate) async fn read(body: &mut Incoming, limits: Limits<'_>) -> Result<Bytes, Problem> {
    let Limits { bytes: limit, deadline, .. } = limits;
    let too_large = || {
        let detail = format!("the body is over the limit of {limit} bytes");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let held = limits.budget.map(|budget| budget.hold(0));
    let reading = collect(body, &limits, held.as_ref());
    match tokio::time::timeout_at(deadline.instant().into(), reading).await {
        Ok(Ok(Some(bytes))) => Ok(kept(bytes, held)),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(problem)) => Err(problem),
        Err(_) => {
            let detail = "the body did not arrive within the timeout";
            Err(Problem::new(ErrorCode::RequestTimeout, detail))
        }
    }
}

/// Whether the next request can follow a body that is not known to have ended: what is left of one that was not wanted
/// is read, where it is little and on its way.
pub(crate) async fn finish(body: &mut Incoming) -> bool {
    if body.size_hint().lower() > UNWANTED_BYTES_MAX as u64 {
        return false;
    }
    let reading = async {
        let mut read = 0;
        while read <= UNWANTED_BYTES_MAX {
            match next(body, None).await {
                Ok(Some(data)) => read += data.len(),
                // Of one that is sent in chunks, only its end says that it has ended.
                Ok(None) => return body.size_hint().exact().is_none_or(|left| left == 0),
                Err(_) => return false,
            }
        }
        false
    };
    tokio::time::timeout(UNWANTED_WAIT, reading).await.unwrap_or(false)
}

/// The turns of a task that reads a large body: after each, other tasks of its thread go on.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    bytes: usize,
    over: usize,
}

impl Turns {
    /// So many bytes more were read.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// To be asked before more is read: pending once, where the turn is over.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.bytes < TURN_BYTES_MAX {
            return Poll::Ready(());
        }
        self.bytes = 0;
        self.over += 1;
        if self.over.is_multiple_of(TURNS_BETWEEN_SOCKETS) {
            // It wakes the task only after the thread has looked at its sockets, which a busy one seldom does.
            return pin!(yield_now()).poll(context);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    pub(crate) async fn next(&mut self) {
        poll_fn(|context| self.poll_next(context)).await;
    }
}

fn unreadable(error: &hyper::Error) -> Problem {
    // hyper names the cause only in its source.
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let detail = format!("the body could not be read: {error}{cause}");
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// The body's bytes: as they were read, if one read brought them all, else copied together once. None where they are
/// more than the limit.
async fn collect(
    body: &mut Incoming,
    limits: &Limits<'_>,
    held: Option<&HeldBytes>,
) -> Result<Option<Bytes>, Problem> {
    let expected = body.size_hint().exact().unwrap_or(0) as usize;
    let Some(first) = next(body, held).await? else { return Ok(Some(Bytes::new())) };
    if first.len() == expected {
        return Ok(Some(first));
    }
    let mut whole = Whole::begin(limits, expected.max(first.len()));
    let mut turns = Turns::default();
    let mut chunk = first;
    loop {
        let len = whole.len() + chunk.len();
        if len > limits.bytes {
            return Ok(None);
        }
        // A client that sent so much will send the rest.
        whole.push(&chunk, expected.max(len * 2).min(limits.bytes));
        turns.took(chunk.len());
        drop(chunk);
        turns.next().await;
        match next(body, held).await? {
            Some(next) => chunk = next,
            None => return Ok(Some(whole.freeze())),
        }
    }
}

/// A body that is put together, aligned where its tensors begin.
enum Whole {
    /// A large one of known length, in memory of the pool, which its tenant's budget promised.
    Pooled { buffer: BufferMut, padding: usize, _promised: PromisedBytes },
    /// Any other, in memory that grows with what comes.
    Growing(Aligned),
}

impl Whole {
    fn begin(limits: &Limits<'_>, expected: usize) -> Self {
        let padding = limits.aligned_at.wrapping_neg() % ALIGNMENT;
        let len = padding + expected;
        let budget = limits.budget.filter(|_| expected >= POOLED_BYTES_MIN);
        match budget.and_then(|budget| budget.promise(BufferPool::bytes_taken(len))) {
            Some(promised) => {
                let mut buffer = limits.pool.begin(len);
                buffer.append_zeros(padding);
                Self::Pooled { buffer, padding, _promised: promised }
            }
            None => Self::Growing(Aligned::new(limits.aligned_at, expected.min(RESERVED_BYTES_MAX))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Pooled { buffer, padding, .. } => buffer.as_ref().len() - padding,
            Self::Growing(aligned) => aligned.len(),
        }
    }

    /// Append `chunk`; where there is no room for it, make room for `capacity` bytes in all.
    fn push(&mut self, chunk: &[u8], capacity: usize) {
        match self {
            // hyper passes on no more than the Content-Length.
            Self::Pooled { buffer, .. } => buffer.append(chunk),
            Self::Growing(aligned) => aligned.push(chunk, capacity),
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::Pooled { buffer, padding, .. } => Bytes::from_owner(buffer).slice(padding..),
            Self::Growing(aligned) => aligned.freeze(),
        }
    }
}

/// A body that is put together, aligned from a given byte on.
struct Aligned {
    bytes: BytesMut,
    /// Bytes before the body's own.
    padding: usize,
    aligned_at: usize,
}

impl Aligned {
    fn new(aligned_at: usize, capacity: usize) -> Self {
        let mut bytes = BytesMut::with_capacity(capacity + ALIGNMENT);
        let padding = (bytes.as_ptr() as usize).wrapping_add(aligned_at).wrapping_neg() % ALIGNMENT;
        bytes.resize(padding, 0);
        Self { bytes, padding, aligned_at }
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.padding
    }

    /// Append `chunk`; where there is no room for it, make room for `capacity` bytes in all.
    fn push(&mut self, chunk: &[u8], capacity: usize) {
        if self.bytes.capacity() - self.bytes.len() < chunk.len() {
            let mut larger = Self::new(self.aligned_at, capacity);
            larger.bytes.extend_from_slice(&self.bytes[self.padding..]);
            *self = larger;
        }
        self.bytes.extend_from_slice(chunk);
    }

    fn freeze(self) -> Bytes {
        self.bytes.freeze().slice(self.padding..)
    }
}

/// The next data; trailers are passed over.
async fn next(
    body: &mut Incoming,
    held: Option<&HeldBytes>,
) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| unreadable(&error))?.into_data() {
            count(held, data.len())?;
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Count `bytes` more as held, where they count against anything.
pub(crate) fn count(held: Option<&HeldBytes>, bytes: usize) -> Result<(), OverBudget> {
    held.map_or(Ok(()), |held| held.try_add(bytes))
}

/// Bytes of an answer that count against a budget for as long as they are in memory, which for a slow
/// reader is long.
pub(crate) fn held(bytes: Bytes, budget: &Arc<ByteBudget>) -> Bytes {
    let held = (bytes.len() >= HELD_BYTES_MIN).then(|| budget.hold(bytes.len()));
    kept(bytes, held)
}

/// Bytes of a request that count likewise, if the budget has them left.
pub(crate) fn try_held(bytes: Bytes, budget: &Arc<ByteBudget>) -> Result<Bytes, OverBudget> {
    let held = try_reserved(bytes.len(), budget)?;
    Ok(kept(bytes, held))
}

/// The same for bytes that are yet to be made; nothing where they are too few to count.
pub(crate) fn try_reserved(
    bytes: usize,
    budget: &Arc<ByteBudget>,
) -> Result<Option<HeldBytes>, OverBudget> {
    if bytes < HELD_BYTES_MIN {
        return Ok(None);
    }
    let held = budget.hold(0);
    held.try_add(bytes)?;
    Ok(Some(held))
}

/// Bytes that are `held` until they are dropped, where they are enough to count.
pub(crate) fn kept(bytes: Bytes, held: Option<HeldBytes>) -> Bytes {
    match held {
        Some(held) if bytes.len() >= HELD_BYTES_MIN => held.keep(bytes),
        _ => bytes,
    }
}

/// A body in parts, which are sent from where they lie.
#[derive(Debug, Default)]
pub struct ResponseBody {
    first: Bytes,
    rest: VecDeque<Bytes>,
    /// What counts for as long as this does: the head, where there is no body that it could count
    /// with.
    _head: Option<HeldBytes>,
}

impl From<Bytes> for ResponseBody {
    fn from(whole: Bytes) -> Self {
        Self { first: whole, ..Self::default() }
    }
}

impl From<Vec<Bytes>> for ResponseBody {
    fn from(parts: Vec<Bytes>) -> Self {
        let mut rest = VecDeque::from(parts);
        Self { first: rest.pop_front().unwrap_or_default(), rest, _head: None }
    }
}

impl ResponseBody {
    /// With all of it counting against `budget`.
    pub(crate) fn held(self, budget: &Arc<ByteBudget>) -> Self {
        let Self { first, rest, _head } = self;
        let rest = rest.into_iter().map(|part| held(part, budget));
        Self { first: held(first, budget), rest: rest.collect(), _head }
    }

    /// The same for a body in one part, with the `head_bytes` that are sent before it.
    pub(crate) fn held_with_head(mut self, head_bytes: usize, budget: &Arc<ByteBudget>) -> Self {
        let bytes = self.first.len() + head_bytes;
        if bytes >= HELD_BYTES_MIN {
            let held = budget.hold(bytes);
            if self.first.is_empty() {
                self._head = Some(held);
            } else {
                self.first = held.keep(self.first);
            }
        }
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.first.is_empty() {
            self.first = match self.rest.pop_front() {
                Some(part) => part,
                None => return Poll::Ready(None),
            };
        }
        let part = std::mem::take(&mut self.first);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let rest: usize = self.rest.iter().map(Bytes::len).sum();
        SizeHint::with_exact((self.first.len() + rest) as u64)
    }
}
