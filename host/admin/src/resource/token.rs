//! `GET`, `PUT` and `DELETE /admin/v1/tokens/{token}`, and `POST /admin/v1/tokens/{token}/rotate`:
//! the admin tokens, but for the one that the server was started with.
//!
//! The server makes the secret of a token. The answer to the call that makes or replaces it is the
//! only one that has it.

use std::time::SystemTime;

use gristmill_control::Published;
use gristmill_state::{AskedChange, Change, StateError, Subject, TokenDocument};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{CASCADE, none};
use super::{Answering, Asked, Resource, document, name};
use crate::answer::{AdminAnswer, Noted, Outcome, Released};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Token(String);

/// The token whose secret is replaced.
pub(crate) struct Rotation(String);

/// The answer to a change of a token.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenReleased)]
struct Put {
    /// The number of the release that serves now.
    release: u64,
    /// The secret, if it is new. No other answer has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.into())
    }
}

impl Rotation {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.into())
    }
}

impl Token {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tokens/{token}";
        vec![
            Operation::get(PATH, "Read an admin token").reads::<TokenDocument>().finds(),
            Operation::put(PATH, "Make an admin token, or change its rights")
                .about("The answer has the secret of a new token, and a known one keeps its own.")
                .takes::<TokenDocument>()
                .changes::<Put>(),
            Operation::delete(PATH, "Delete an admin token").flag(CASCADE).changes::<Released>(),
            Operation::post("tokens/{token}/rotate", "Give an admin token another secret")
                .changes::<Put>(),
        ]
    }
}

impl Resource for Token {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            if *method == Method::PUT {
                let (query, options) = (received.query, received.options.clone());
                let keys = received.document(&state.limits).await?;
                none(query)?;
                let token = name("token", &self.0)?;
                let current_end = state
                    .control
                    .serving()
                    .token(&token)
                    .ok()
                    .and_then(|token| token.spec.expires_at_ms);
                let document = TokenDocument::read(keys, SystemTime::now(), current_end);
                let document = document.map_err(StateError::Invalid)?;
                let (secret, hash) = state.tokens.new_secret()?;
                let (published, is_new) =
                    state.control.put_token(&token, document, hash, options).await?;
                return put(published, is_new.then_some(secret));
            }
            let token = name("token", &self.0)?;
            if *method == Method::DELETE {
                let change = Change::DeleteToken { token: token.clone() };
                let deleted = document::delete(state, change, received).await?;
                state.control.blobs().forget_token(&token);
                return Ok(deleted);
            }
            document::get(state, &Subject::Token(token), &received)
        })
    }
}

impl Resource for Rotation {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let token = name("token", &self.0)?;
            let (secret, hash) = state.tokens.new_secret()?;
            let rotate = AskedChange::RotateToken { token, hash };
            put(state.control.change(rotate, received.options).await?, Some(secret))
        })
    }
}

fn put(published: Published, secret: Option<String>) -> Outcome {
    let Published { release, tag, .. } = published;
    let noted = Noted { release: Some(release), digest: None };
    Ok(AdminAnswer::changed(&Put { release, secret }, tag, noted)?.unkept())
}
