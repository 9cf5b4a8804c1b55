//! The host's functions: any calls of them that a guest can make, in any order, with any words.
//!
//! The bytes are the guest's program (`guest`). Most of the functions make tensors, or take them.
//! What must hold: each call ends as the guest's own failure or answer, never as a fault of the
//! host, and gives back what it held. A change of the contract gives the functions other numbers,
//! so kept programs then do something else.

use std::sync::OnceLock;

use bytes::Bytes;
use gristmill_sandbox::{CallError, FormPart, PluginPair, Request};

use super::guest;
use super::sandboxed::Sandboxed;

/// The target.
pub fn run(bytes: &[u8]) {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    GUEST.get_or_init(Guest::loaded).run(bytes);
}

/// The guest, loaded.
pub struct Guest {
    sandbox: Sandboxed,
    pair: PluginPair,
}

impl Guest {
    /// Compile it.
    pub fn loaded() -> Self {
        let sandbox = Sandboxed::new();
        let pair = sandbox.pair(sandbox.load(&guest::file()).expect("the guest"));
        Self { sandbox, pair }
    }

    /// Run a program.
    pub fn run(&self, program: &[u8]) {
        if let Err(CallError::Host(fault)) =
            self.sandbox.preprocess(&self.pair, request_with(program))
        {
            panic!("a guest brought about a fault of the host: {fault}");
        }
    }
}

/// A request with this body, and something of everything else.
fn request_with(program: &[u8]) -> Request {
    let text = |text: &str| text.to_owned();
    let body = Bytes::copy_from_slice(program);
    let part = FormPart {
        name: text("part"),
        filename: Some(text("file")),
        content_type: None,
        body: body.clone(),
    };
    Request {
        content_type: Some(text("image/png")),
        headers: vec![(text("x-name"), text("value"))],
        query: vec![(text("name"), text("value"))],
        body,
        parts: vec![part],
    }
}
