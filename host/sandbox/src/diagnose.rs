//! Why a guest gave no answer: its own failure, a limit that it reached, or a trap.

use std::fmt::{self, Write};

use wasmtime::component::ResourceTableError;
use wasmtime::{FrameInfo, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::call::CallState;
use crate::capability::models::wit as models;
use crate::capability::types::wit;
use crate::error::{CallError, CallLimit, Failure, PASSED_KEY};
use crate::frames::FUNCTIONS_MAX;
use crate::language::Language;
use crate::limiter::Limited;
use crate::meter::CpuExhausted;
use crate::model_runs::{RunFault, RunFaultKind};

/// The characters of a function's name that are shown.
const NAME_CHARS_MAX: usize = 100;

/// The part of a name that is read, and that is made of it. A plugin's names may be as long as its
/// file, and a short mangled one may stand for a text of a megabyte.
const NAME_BYTES_MAX: usize = 1 << 10;

/// The longest text of a failure or trap that is passed on, in bytes.
const FAILURE_TEXT_MAX: usize = 4 << 10;

/// How Python tells of memory that it does not get, also without asking the host for it.
const MEMORY_ERROR: &str = "MemoryError";

/// The failure that a guest returned. If it says that it got no memory, a limit is the cause.
pub(crate) fn failure<S>(failure: wit::Failure, state: &CallState<S>) -> CallError {
    let with_parts = |text| cut(text) + overlooked(state.unread_parts());
    CallError::Failure(match failure {
        wit::Failure::InvalidInput(text) => Failure::InvalidInput(with_parts(text)),
        wit::Failure::UnsupportedMediaType(text) => Failure::UnsupportedMediaType(with_parts(text)),
        wit::Failure::Unprocessable(text) => Failure::Unprocessable(with_parts(text)),
        wit::Failure::Internal(text) => {
            let is_memory_error = text.starts_with(MEMORY_ERROR);
            match state.limiter.refused() {
                // A tenant's budget may have room later.
                Some(limited @ (Limited::Owner(_) | Limited::Waiting(_))) => return over(limited),
                Some(limited) if speaks_of_memory(&text) => return over(limited),
                None if is_memory_error => {
                    return CallError::OutOfMemory(CallLimit::Memory(state.limits.memory_bytes));
                }
                // If it was refused memory, it went on without, and failed for another reason.
                _ => Failure::Internal(cut(text)),
            }
        }
    })
}

/// The fault of a run that a guest passed on.
pub(crate) fn run_fault(error: models::InferError) -> RunFault {
    let (kind, text) = match error {
        models::InferError::NotGranted(text) => (RunFaultKind::NotGranted, text),
        models::InferError::InvalidInput(text) => (RunFaultKind::InvalidInput, text),
        models::InferError::Overloaded(text) => (RunFaultKind::Overloaded, text),
        models::InferError::Unavailable(text) => (RunFaultKind::Unavailable, text),
        models::InferError::Failed(text) => (RunFaultKind::Failed, text),
    };
    RunFault::new(kind, text)
}

/// Whether a failure's text, without the place in the code that Python puts at its end, speaks of
/// memory.
fn speaks_of_memory(text: &str) -> bool {
    let text = text.rsplit_once(" (").map_or(text, |(before, _)| before).to_ascii_lowercase();
    ["memory", "alloc"].iter().any(|word| text.contains(word))
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

/// The limit that ended a guest, or its own trap. `language` is that of the runtime that it shares,
/// and `authors` gives the functions of the author in which that was, if it knows them.
pub(crate) fn trap<S>(
    error: &wasmtime::Error,
    state: &CallState<S>,
    language: Option<Language>,
    authors: impl FnOnce() -> Vec<String>,
) -> CallError {
    if error.is::<CpuExhausted>() {
        let limit_ms = state.meter.limit().as_millis();
        let mut functions = authors();
        // Those of the engine of JavaScript have no names, and say nothing of the plugin.
        if functions.is_empty() && language != Some(Language::JavaScript) {
            // The interpreter's, or those of a language without one.
            functions = functions_of(error);
        }
        return CallError::OutOfTime { limit_ms, functions };
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
    let why = match error.downcast_ref::<Trap>() {
        Some(Trap::MemoryOutOfBounds) => out_of_bounds(error),
        Some(trap @ Trap::StackOverflow) => format!("{trap}: {NESTED}"),
        Some(Trap::UnreachableCodeReached) if language == Some(Language::JavaScript) => {
            GAVE_UP.to_owned()
        }
        Some(trap @ Trap::UnreachableCodeReached) => format!("{trap}: {ABORTED}"),
        Some(trap) => trap.to_string(),
        None => match error.root_cause().to_string() {
            text if text.contains(TOO_MUCH) => across(state.limits.hostcall_bytes),
            text if text.contains(TOO_MANY) => {
                return CallError::OutOfMemory(CallLimit::Handles(state.limits.handles));
            }
            text => cut(text),
        },
    };
    let functions = match (language, error.downcast_ref()) {
        (Some(_), _) => authors(),
        // Those that make a panic say nothing of the plugin.
        (None, None | Some(Trap::UnreachableCodeReached)) => Vec::new(),
        (None, Some(_)) => functions_of(error),
    };
    CallError::Trapped { why, functions }
}

/// Where the guest read or wrote. The stack of Rust and C begins at address 0 and grows towards it,
/// so that an overflow goes below, which is the end of the addresses.
fn out_of_bounds(error: &wasmtime::Error) -> String {
    let trap = Trap::MemoryOutOfBounds;
    let address = error.chain().find_map(|cause| {
        // One of the causes is told with the names of all functions.
        let text = start_of(format_args!("{cause}"), FAULT.len() + ADDRESS_CHARS_MAX);
        let (address, _) = text.strip_prefix(FAULT)?.split_once(' ')?;
        u64::from_str_radix(address, 16).ok()
    });
    match address {
        // An access adds a fixed offset, without wrapping around.
        Some(address) if (ADDRESSES - BELOW_MAX..ADDRESSES + BELOW_MAX).contains(&address) => {
            format!("the stack overflowed, or a pointer led to before address 0: {STACK}")
        }
        Some(address) => format!("{trap}: address {address:#x}"),
        None => format!("{trap}; a stack that overflows ends so, too: {STACK}"),
    }
}

/// What the guest has done if its calls were nested too deeply, and if it ended itself.
const NESTED: &str = "calls are nested too deeply, mostly by a recursion without an end";
const ABORTED: &str =
    "the plugin panicked or aborted: if it said where, that is its last line in the log";

/// The engine of JavaScript ends itself where it cannot go on.
const GAVE_UP: &str = "the engine of JavaScript gave up, and its last line in the log says why: \
                       mostly the function waits for a promise that nothing resolves, such as one \
                       whose resolve is never called";

/// What to do about a stack that overflows.
const STACK: &str = "the SDKs for Rust and C give it 1 MiB, and their pages say how to give more";

/// The words of wasmtime's fault, before its address. The error's type is private.
const FAULT: &str = "memory fault at wasm address 0x";

/// The digits of an address, and the space behind them.
const ADDRESS_CHARS_MAX: usize = 17;

/// The addresses of a 32-bit guest, and how far below 0 an overflow is looked for: further than any
/// function's own part of the stack.
const ADDRESSES: u64 = 1 << 32;
const BELOW_MAX: u64 = 256 << 20;

/// The words of wasmtime's error for lists and strings that are too long. The error's type is
/// private.
const TOO_MUCH: &str = "fuel allocated for hostcalls has been exhausted";

/// Those of the error for more handles, lent ones included, than a store may have.
const TOO_MANY: &str = "store handle limit exceeded";

fn across(limit: usize) -> String {
    format!(
        "one call between plugin and host passes at most {limit} bytes of lists and strings, \
         counted as the host holds them: pass less, or in several calls, or with a higher \
         {PASSED_KEY}"
    )
}

/// The functions in which the guest was, the innermost one first.
fn functions_of(error: &wasmtime::Error) -> Vec<String> {
    let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
    let name = |frame: &FrameInfo| match frame.func_name() {
        Some(name) => shown(name),
        None => format!("function {}", frame.func_index()),
    };
    frames.iter().take(FUNCTIONS_MAX).map(name).collect()
}

/// A function's name in short, without the hash that Rust puts at its end.
fn shown(name: &str) -> String {
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    let name = format_args!("{:#}", rustc_demangle::demangle(name));
    let name = &*start_of(name, NAME_BYTES_MAX);
    let is_hash =
        |end: &str| end.len() == 17 && end[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match name.rsplit_once("::") {
        Some((before, end)) if end.starts_with('h') && is_hash(end) => before,
        _ => name,
    };
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &name[..at]),
        None => name.to_owned(),
    }
}

/// The first bytes of a text, of which no more is made.
fn start_of(text: fmt::Arguments<'_>, bytes: usize) -> String {
    let mut start = Start { text: String::new(), left: bytes };
    // Its only error is that the text is longer.
    let _ = start.write_fmt(text);
    start.text
}

/// The start of a text that is written into it. To write more is an error.
struct Start {
    text: String,
    left: usize,
}

impl Write for Start {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let fits = &part[..part.floor_char_boundary(self.left)];
        self.text.push_str(fits);
        self.left -= fits.len();
        if fits.len() == part.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

fn over(limited: &Limited) -> CallError {
    match limited {
        Limited::Call(limit) => CallError::OutOfMemory(*limit),
        Limited::Owner(over) => CallError::Busy(*over),
        Limited::Waiting(limit) => CallError::TooManyWait(*limit),
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
    fn with_state(work: impl FnOnce(&CallState<()>)) {
        let limits = PluginLimits::default();
        let account = Account::new(1, 1, ByteBudget::new(1));
        let grant = Grant::new(&limits, &account);
        let meter = Arc::new(Meter::new(limits.cpu));
        work(&CallState::new(grant, meter, BufferPool::new(0), ()));
    }

    #[test]
    fn each_limit_is_told_from_a_trap() {
        with_state(limits_are_told);
    }

    fn limits_are_told(state: &CallState<()>) {
        let text = |error: wasmtime::Error| trap(&error, state, None, Vec::new).to_string();
        let late = "plugin used up its 250 ms of CPU time (limits.cpu_ms of the pipeline)";
        assert_eq!(text(CpuExhausted.into()), late);
        state.meter.raise_limit(state.limits.cpu_decoding);
        assert_eq!(text(CpuExhausted.into()), late.replace("250", "3000"));
        let limited = text(Limited::Call(CallLimit::Memory(7)).into());
        let memory = "plugin went over its limit of 7 bytes of memory (limits.memory_bytes of the \
                      pipeline, up to the server's plugin_memory_bytes)";
        assert_eq!(limited, memory);
        let handles = "plugin went over its limit of 10000 handles";
        assert_eq!(text(ResourceTableError::Full.into()), handles);
        assert!(matches!(
            trap(&Trap::UnreachableCodeReached.into(), state, None, Vec::new),
            CallError::Trapped { .. }
        ));
        let nested = text(Trap::StackOverflow.into());
        assert!(nested.contains("a recursion without an end"), "{nested}");
        let javascript = Some(Language::JavaScript);
        let gave_up = trap(&Trap::UnreachableCodeReached.into(), state, javascript, Vec::new);
        assert!(gave_up.to_string().contains("a promise that nothing resolves"), "{gave_up}");
        let out_of_bounds = |address: Option<u64>| {
            let trap = wasmtime::Error::from(Trap::MemoryOutOfBounds);
            text(match address {
                Some(address) => trap.context(format!("{FAULT}{address:x} in linear memory of ..")),
                None => trap,
            })
        };
        assert!(out_of_bounds(None).contains("a stack that overflows"));
        for below in [0xffff_fe00, 0xf100_0000, 0x1_0000_0010] {
            assert!(out_of_bounds(Some(below)).contains("the stack overflowed"), "{below:x}");
        }
        assert!(out_of_bounds(Some(0x20_0000)).ends_with("memory access: address 0x200000"));
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

    #[test]
    fn a_function_is_named_in_short() {
        for (name, expected) in [
            ("memchr", "memchr"),
            ("app::spin::h0123456789abcdef", "app::spin"),
            ("<app::Spin as app::Work>::run::h0123456789abcdef", "<app::Spin as app::Work>::run"),
            ("app::hashed", "app::hashed"),
        ] {
            assert_eq!(shown(name), expected);
        }
        let long = shown(&"ä".repeat(NAME_CHARS_MAX + 1));
        assert_eq!(long, format!("{}...", "ä".repeat(NAME_CHARS_MAX)));
        assert_eq!(shown(&"n".repeat(1 << 20)), format!("{}...", "n".repeat(NAME_CHARS_MAX)));
    }

    #[test]
    fn no_more_of_a_text_is_made_than_is_wanted() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("xä")?;
                }
            }
        }
        assert_eq!(start_of(format_args!("{Endless}"), 5), "xäx");
        assert_eq!(start_of(format_args!("short"), 5), "short");
    }
}
