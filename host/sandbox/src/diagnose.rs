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

/// The failure that a guest returned.
pub(crate) fn failure(failure: wit::Failure) -> CallError {
    CallError::Failure(match failure {
        wit::Failure::InvalidInput(text) => Failure::InvalidInput(cut(text)),
        wit::Failure::UnsupportedMediaType(text) => Failure::UnsupportedMediaType(cut(text)),
        wit::Failure::Unprocessable(text) => Failure::Unprocessable(cut(text)),
        wit::Failure::Internal(text) => Failure::Internal(cut(text)),
    })
}

/// The limit that ended a guest, or its own trap.
pub(crate) fn trap<S>(error: &wasmtime::Error, state: &CallState<S>) -> CallError {
    if error.is::<CpuExhausted>() {
        return CallError::OutOfTime(state.meter.limit().as_millis());
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
    let text = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    CallError::Trapped(cut(text))
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

    #[test]
    fn each_limit_is_told_from_a_trap() {
        let limits = PluginLimits::default();
        let account = Account::new(1, 1, ByteBudget::new(1));
        let grant = Grant { limits: &limits, account: &account, lines: None, usage: None };
        let meter = Arc::new(Meter::new(limits.cpu));
        let state = CallState::new(grant, meter, BufferPool::new(0), ());
        let told = |error: wasmtime::Error| trap(&error, &state).to_string();
        let late = "plugin used up its 250 ms of CPU time (limits.cpu_ms of the pipeline)";
        assert_eq!(told(CpuExhausted.into()), late);
        state.meter.raise_limit(limits.cpu_decoding);
        assert_eq!(told(CpuExhausted.into()), late.replace("250", "3000"));
        let limited = told(Limited::Call(CallLimit::Memory(7)).into());
        let memory = "plugin went over its limit of 7 bytes of memory (limits.memory_bytes of the \
                      pipeline, up to the server's plugin_memory_bytes)";
        assert_eq!(limited, memory);
        let handles = "plugin went over its limit of 10000 handles";
        assert_eq!(told(ResourceTableError::Full.into()), handles);
        assert!(matches!(
            trap(&Trap::UnreachableCodeReached.into(), &state),
            CallError::Trapped(_)
        ));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let CallError::Failure(Failure::Internal(text)) =
            failure(wit::Failure::Internal("ä".repeat(FAILURE_TEXT_MAX)))
        else {
            panic!("another failure");
        };
        assert_eq!(text, format!("{} [cut]", "ä".repeat(FAILURE_TEXT_MAX / 2)));
    }
}
