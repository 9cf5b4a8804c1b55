//! Uploads: any bytes as a plugin's file, from the first look at it to its first instance.
//!
//! What must hold: a file that is refused is refused for its own fault, never for one of the
//! host's; the component that the check gives back passes the check again with the same findings;
//! and what is loaded has the roles and imports that the check found.
//!
//! A core module gets an honest component type in place of its own. The library that reads the type
//! recurses without end over some (`host/app/tests/it/support/guests.rs` has one), which ends a
//! server's child process and not the server.

use std::sync::OnceLock;

use gristmill_core::ErrorCode;
use gristmill_sandbox::{CallError, check_component};
use wasm_encoder::{Module, RawSection};
use wasmparser::{Parser, Payload};

use super::guest;
use super::sandboxed::Sandboxed;

/// Larger components are checked and not compiled: a few kilobytes can take seconds, for which the
/// server has a child process and its limits.
const COMPILED_BYTES_MAX: usize = 16 << 10;

/// The target.
pub fn run(bytes: &[u8]) {
    static UPLOADS: OnceLock<Uploads> = OnceLock::new();
    UPLOADS.get_or_init(Uploads::of_nothing).run(bytes);
}

/// Takes files as a server does.
pub struct Uploads {
    sandbox: Sandboxed,
    /// An honest component type.
    type_section: Vec<u8>,
}

impl Uploads {
    /// A sandbox without plugins.
    pub fn of_nothing() -> Self {
        Self { sandbox: Sandboxed::new(), type_section: guest::type_section() }
    }

    /// Take a file.
    pub fn run(&self, bytes: &[u8]) {
        match Parser::is_core_wasm(bytes) {
            true => self.with_honest_type(bytes).iter().for_each(|typed| self.upload(typed)),
            false => self.upload(bytes),
        }
    }

    /// The module with an honest component type; none if the file is not a module.
    fn with_honest_type(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut module = Module::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.ok()?;
            if let Payload::CustomSection(section) = &payload
                && section.name().starts_with("component-type")
            {
                continue;
            }
            if let Some((id, range)) = payload.as_section() {
                module.section(&RawSection { id, data: bytes.get(range)? });
            }
        }
        Some([module.finish(), self.type_section.clone()].concat())
    }

    fn upload(&self, bytes: &[u8]) {
        let Ok(checked) = check_component(bytes) else { return };
        assert!(
            checked.roles.pre || checked.roles.post || checked.roles.handle,
            "it was accepted for nothing"
        );
        let again = check_component(&checked.component).expect("what passed the check passes it");
        assert_eq!((&again.imports, &again.exports), (&checked.imports, &checked.exports));
        assert_eq!((again.roles, again.needs), (checked.roles, checked.needs));
        if checked.component.len() > COMPILED_BYTES_MAX || checked.has_init() {
            return;
        }
        let sandbox = &self.sandbox;
        match sandbox.load(bytes) {
            Ok(plugin) => {
                assert_eq!(plugin.roles(), checked.roles);
                assert_eq!(plugin.imports(), checked.imports);
                if let Err(CallError::Host(fault)) = sandbox.probe(plugin) {
                    panic!("a start function brought about a fault of the host: {fault}");
                }
            }
            Err(error) => {
                let code = error.code();
                assert_eq!(code, ErrorCode::InvalidPlugin, "the host's fault: {}", error.in_full());
            }
        }
        sandbox.forget();
    }
}
