//! The host's functions: any calls of them that a guest can make, in any order, with any words.
//!
//! The bytes are the guest's program (`guest`). Most of the functions make tensors, or take them.
//! What must hold: each call ends as the guest's own failure or answer, never as a fault of the
//! host, and gives back what it held.

use std::sync::OnceLock;

use bytes::Bytes;
use gristmill_sandbox::{CallError, Part, PluginPair, Request};

use super::guest;
use super::sandboxed::Sandboxed;

/// The target.
pub fn run(bytes: &[u8]) {
    static GUEST: OnceLock<(Sandboxed, PluginPair)> = OnceLock::new();
    let (sandbox, pair) = GUEST.get_or_init(|| {
        let sandbox = Sandboxed::new();
        let pair = sandbox.pair(sandbox.load(&guest::file()).expect("the guest"));
        (sandbox, pair)
    });
    let text = |text: &str| text.to_owned();
    let body = Bytes::copy_from_slice(bytes);
    let part = Part {
        name: text("part"),
        filename: Some(text("file")),
        content_type: None,
        body: body.clone(),
    };
    let request = Request {
        content_type: Some(text("image/png")),
        headers: vec![(text("x-name"), text("value"))],
        query: vec![(text("name"), text("value"))],
        body,
        parts: vec![part],
    };
    if let Err(CallError::Host(fault)) = sandbox.preprocess(pair, request) {
        panic!("a guest brought about a fault of the host: {fault}");
    }
}
