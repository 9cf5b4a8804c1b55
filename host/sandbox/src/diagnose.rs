//! Why a guest gave no answer: its own failure, a limit that it reached, or a trap.

use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::call::CallState;
use crate::capability::types::wit;
use crate::error::{CallError, CallLimit, Failure};
use crate::limiter::Limited;
use crate::meter::CpuExhausted;

/// The longest text of a failure or trap that is passed on, in bytes.
const FAILURE_TEXT_MAX: usize = 4 << 10;

/// The failure that a guest returned. If it is its own fault, and it was refused memory before, the
/// limit is the cause: runtimes tell their program of it, as Python does by `MemoryError`.
pub(crate) fn failure<S>(failure: wit::Failure, state: &CallState<S>) -> CallError {
    let shown = |text| cut(text) + overlooked(state.unread_parts());
    CallError::Failure(match failure {
        wit::Failure::InvalidInput(text) => Failure::InvalidInput(shown(text)),
        wit::Failure::UnsupportedMediaType(text) => Failure::UnsupportedMediaType(shown(text)),
        wit::Failure::Unprocessable(text) => Failure::Unprocessable(shown(text)),
        wit::Failure::Internal(text) => match state.limiter.refused() {
            Some(limited) => return over(limited),
            None => Failure::Internal(cut(text)),
        },
    })
}

/// What the author of a guest that refused the request may have overlooked.
fn overlooked(unread_parts: usize) -> &'static str {
    match unread_parts {
        0 => "",
        _ => {
            "; the request is a form (multipart/form-data): its body is empty, and the plugin did \
             not look at its parts"
        }
    }
}

/// The limit that ended a guest, or its own trap.
pub(crate) fn trap<S>(error: &wasmtime::Error, state: &CallState<S>) -> CallError {
    if error.is::<CpuExhausted>() {
        return CallError::OutOfTime(state.limits.cpu.as_millis());
    }
    if let Some(limited) = error.downcast_ref::<Limited>() {
        return over(limited);
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return CallError::OutOfMemory(CallLimit::Handles(state.limits.handles));
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return CallError::Exited(*status);
    }
    if let Some(refused) = state.limiter.refused() {
        return over(refused);
    }
    CallError::Trapped(match error.downcast_ref::<Trap>() {
        Some(Trap::MemoryOutOfBounds) => format!("{}; {STACK}", Trap::MemoryOutOfBounds),
        Some(trap) => trap.to_string(),
        None => match error.root_cause().to_string() {
            text if text.contains(TOO_MUCH) => across(state.limits.hostcall_bytes),
            text => cut(text),
        },
    })
}

/// Where a guest's stack lies, and what to do about it.
const STACK: &str = "a stack that overflows ends so, too: the SDKs for Rust and C give it 64 KiB, and \
    their pages say how to give more";

/// The words of wasmtime's error for lists and strings that are too long. The error's type is
/// private.
const TOO_MUCH: &str = "fuel allocated for hostcalls has been exhausted";

fn across(limit: usize) -> String {
    format!(
        "one call between plugin and host passes at most {limit} bytes of lists and strings, \
         counted as the host holds them: pass less, or in several calls"
    )
}

fn over(limited: &Limited) -> CallError {
    match limited {
        Limited::Call(limit) => CallError::OutOfMemory(*limit),
        Limited::Owner(over) => CallError::Busy(*over),
    }
}

/// The text, at most [`FAILURE_TEXT_MAX`] bytes of it.
fn cut(mut text: String) -> String {
    if text.len() > FAILURE_TEXT_MAX {
        text.truncate(text.floor_char_boundary(FAILURE_TEXT_MAX));
        text.push_str(" [cut]");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gristmill_core::{BufferPool, ByteBudget, PluginLimits};

    use super::*;
    use crate::account::Account;
    use crate::grant::Grant;
    use crate::meter::Meter;

    /// Looks at the state of a call with the default limits.
    fn with_state(look: impl FnOnce(&CallState<()>)) {
        let limits = PluginLimits::default();
        let account = Account::new(1, 1, ByteBudget::new(1));
        let grant = Grant { limits: &limits, account: &account, lines: None, usage: None };
        let meter = Arc::new(Meter::new(limits.cpu));
        look(&CallState::new(grant, meter, BufferPool::new(0), ()));
    }

    #[test]
    fn each_limit_is_told_from_a_trap() {
        with_state(limits_are_told);
    }

    fn limits_are_told(state: &CallState<()>) {
        let told = |error: wasmtime::Error| trap(&error, state).to_string();
        assert_eq!(told(CpuExhausted.into()), "plugin used up its 250 ms of CPU time");
        let limited = Limited::Call(CallLimit::Memory(7));
        let memory = "plugin went over its limit of 7 bytes of memory (limits.memory_bytes)";
        assert_eq!(told(limited.into()), memory);
        let handles = "plugin went over its limit of 10000 handles";
        assert_eq!(told(ResourceTableError::Full.into()), handles);
        assert!(matches!(trap(&Trap::UnreachableCodeReached.into(), state), CallError::Trapped(_)));
        assert!(told(Trap::MemoryOutOfBounds.into()).contains("a stack that overflows"));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        with_state(|state| {
            let long = wit::Failure::Internal("ä".repeat(FAILURE_TEXT_MAX));
            let CallError::Failure(Failure::Internal(text)) = failure(long, state) else {
                panic!("another failure");
            };
            assert_eq!(text, format!("{} [cut]", "ä".repeat(FAILURE_TEXT_MAX / 2)));
        });
    }
}
