//! Decompressing the messages of a call. They are inflated off the serving threads and passed on as
//! uncompressed messages.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use gristmill_core::{ByteBudget, Name};
use gristmill_serve::Caller;
use gristmill_transport::{Encoding, Problem};
use http::{HeaderMap, HeaderName};
use hyper::body::{Body, Frame};
use tonic::Status;

use super::metered::{MeteredCall, PREFIX_BYTES};
use super::status::status_of;
use crate::inference::Inference;

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The size of the pieces in which an inflated message is passed on.
const PIECE_BYTES: usize = 256 << 10;

/// A call's body with uncompressed messages.
pub(super) struct InflatedCall {
    body: MeteredCall,
    inflating: Option<Inflating>,
}

/// The state of inflating a call's messages.
struct Inflating {
    inflater: Inflater,
    /// The bytes that have arrived of the next message.
    read: BytesMut,
    /// The bytes of an uncompressed message that are not passed on yet.
    plain: usize,
    has_ended: bool,
    work: Option<InflateFuture>,
    /// Pieces that are not passed on yet.
    pieces: VecDeque<Bytes>,
}

type InflateFuture = Pin<Box<dyn Future<Output = Result<Bytes, Problem>> + Send>>;

/// Inflates the messages of one call.
pub(super) struct Inflater {
    encoding: Encoding,
    inference: Inference,
    /// The tenant that the work and the bytes count for.
    tenant: Option<Name>,
    budget: Option<Arc<ByteBudget>>,
    /// The most bytes of a message, compressed or not.
    limit: usize,
}

impl InflatedCall {
    /// A body whose messages are inflated. Without an inflater they are passed on as they come.
    pub(super) fn new(body: MeteredCall, inflater: Option<Inflater>) -> Self {
        let inflating = inflater.map(|inflater| Inflating {
            inflater,
            read: BytesMut::new(),
            plain: 0,
            has_ended: false,
            work: None,
            pieces: VecDeque::new(),
        });
        Self { body, inflating }
    }
}

impl Inflating {
    /// Take the next message out of the bytes read. A compressed message is taken when all of it
    /// has arrived; of an uncompressed one, the part that has arrived is taken.
    fn next(&mut self) {
        if self.plain == 0 {
            let Some([flag, len @ ..]) = self.read.first_chunk::<PREFIX_BYTES>() else { return };
            let len = u32::from_be_bytes(*len) as usize;
            let is_too_long = len > self.inflater.limit;
            if *flag == 1 && !is_too_long {
                if self.read.len() >= PREFIX_BYTES + len {
                    let message = self.read.split_to(PREFIX_BYTES + len).freeze();
                    self.work = Some(self.inflater.inflate(message.slice(PREFIX_BYTES..)));
                }
                return;
            }
            // tonic refuses a message that is too long by its length, and reads nothing after it.
            self.plain = if is_too_long { usize::MAX } else { PREFIX_BYTES + len };
            self.read[0] = 0;
        }
        let len = self.plain.min(self.read.len());
        if len > 0 {
            self.plain -= len;
            self.pieces.push_back(self.read.split_to(len).freeze());
        }
    }

    /// Pass on an inflated message.
    fn pass(&mut self, message: &Bytes) {
        let len = (message.len() as u32).to_be_bytes();
        self.pieces.push_back([&[0], &len[..]].concat().into());
        let ends = (0..message.len()).step_by(PIECE_BYTES);
        let pieces = ends.map(|at| message.slice(at..message.len().min(at + PIECE_BYTES)));
        self.pieces.extend(pieces);
    }
}

impl Inflater {
    /// The inflater for a call of `caller` with these `headers`, if its messages are compressed in
    /// a way that this module knows. The header that says so is removed, so that tonic does not
    /// decompress them.
    pub(super) fn of(
        headers: &mut HeaderMap,
        inference: &Inference,
        caller: Caller<'_>,
    ) -> Option<Self> {
        let encoding = Encoding::of(headers.get(GRPC_ENCODING)?.as_bytes())?;
        headers.remove(GRPC_ENCODING);
        Some(Self {
            encoding,
            inference: inference.clone(),
            tenant: caller.name().cloned(),
            budget: caller.budget().cloned(),
            limit: inference.message_bytes_max(),
        })
    }

    fn inflate(&self, message: Bytes) -> InflateFuture {
        let (encoding, limit, budget) = (self.encoding, self.limit, self.budget.clone());
        let (inference, tenant) = (self.inference.clone(), self.tenant.clone());
        Box::pin(async move {
            let inflate = move || encoding.decompress(&message, limit, budget.as_ref());
            inference.offload().run(tenant.as_ref(), inflate).await?
        })
    }
}

impl Body for InflatedCall {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Self { body, inflating } = &mut *self;
        let Some(inflating) = inflating else { return Pin::new(body).poll_frame(context) };
        loop {
            if let Some(piece) = inflating.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let Some(work) = &mut inflating.work {
                let message = ready!(work.as_mut().poll(context));
                inflating.work = None;
                inflating.pass(&message.map_err(|problem| status_of(&problem))?);
                continue;
            }
            inflating.next();
            if inflating.work.is_some() || !inflating.pieces.is_empty() {
                continue;
            }
            if inflating.has_ended {
                // A message that is cut short. tonic refuses it.
                let rest = inflating.read.split().freeze();
                let rest = (!rest.is_empty()).then(|| Ok(Frame::data(rest)));
                return Poll::Ready(rest);
            }
            match ready!(Pin::new(&mut *body).poll_frame(context)).transpose()? {
                None => inflating.has_ended = true,
                Some(frame) => {
                    if let Ok(data) = frame.into_data() {
                        inflating.read.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
