//! `GET /admin/v1/events`: the status and the metrics, and then each second what has changed.
//!
//! A client that does not ask for `text/event-stream` gets the first event alone. A stream ends
//! when its token no longer allows what it did, and when the server stops.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use gristmill_core::ErrorCode;
use gristmill_state::TokenScope;
use gristmill_transport::Allowed;
use http::header::ACCEPT;
use http::{HeaderMap, Method};

use super::query::none;
use super::{Answering, Asked, Resource, Status};
use crate::answer::AdminAnswer;
use crate::caller::Caller;
use crate::events::{Listener, Shown};
use crate::operation::Operation;
use crate::permission::Permission;
use crate::state::AdminState;

const MEDIA_TYPE: &str = "text/event-stream";

pub(crate) struct Events;

/// A stream of events.
struct Following {
    state: Arc<AdminState>,
    caller: Caller,
    listener: Listener,
}

impl Events {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let operation = Operation::get("events", "Follow the status and the metrics")
            .about(
                "The first event, `all`, has the `status` and, for tokens of the whole server, the \
                 `metrics` as text. Each second an event `changes` has what has changed: of the \
                 status a merge patch (RFC 7396), of the metrics the lines. A client that misses \
                 one gets `all` again. With `Accept: text/event-stream` the answer does not end; \
                 otherwise it is the first event.",
            )
            .answers_events(MEDIA_TYPE)
            .problems(&[ErrorCode::TokenBusy]);
        vec![operation]
    }
}

impl Resource for Events {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let caller = received.caller.clone();
            let tenants = match caller.token_scope() {
                TokenScope::Server => None,
                TokenScope::Tenants { tenants, .. } => Some(tenants),
            };
            let listener = state.feeds.listen(tenants, caller.guest())?;
            let following = Following { state: state.clone(), caller, listener };
            let events = unfold(following, |mut following| async move {
                let event = following.next().await?;
                Some((event, following))
            });
            let most = if is_followed(received.headers) { usize::MAX } else { 1 };
            Ok(AdminAnswer::events(events.take(most).boxed(), MEDIA_TYPE).unkept())
        })
    }
}

/// Whether the client asks for a stream.
fn is_followed(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let media_type = one.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case(MEDIA_TYPE)
    })
}

impl Following {
    /// The next event. None at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let (state, caller) = (&self.state, &self.caller);
        let token_scope = caller.token_scope();
        let next = self.listener.next(|| shown(state, &token_scope));
        let event = tokio::select! {
            event = next => event?,
            () = state.shutdown.begun() => return None,
        };
        let desired = state.control.desired();
        caller.is_still_valid(&desired, SystemTime::now()).then_some(event)
    }
}

/// What is shown now. None if it cannot be read.
async fn shown(state: &AdminState, token_scope: &TokenScope) -> Option<Shown> {
    let status = Status::read(state, token_scope).await.ok()?;
    let metrics = match token_scope.is_server() {
        true => Some(state.scrapes.text().await?),
        false => None,
    };
    Some(Shown { status, metrics })
}
