//! The capabilities of plugins: one module for each interface of `wit/`.
//!
//! A capability owns its interface in three phases. `link` adds its functions to the linker, once
//! in a process. Its `CapabilityState`, if it has one, is made for each call from the call's grant
//! ([`PerCall`]). Its functions use that state, and the state that all capabilities share
//! ([`CallState`]), while the call runs. It refuses to know other capabilities, except those whose
//! types its interface uses.
//!
//! Every function here runs within the call's turn, so its CPU time is charged to the call. A
//! function that takes more than a few hundred nanoseconds must first let other calls go on if the
//! turn was long (`Meter::take_turns`). Large work must first leave the serving threads
//! (`Meter::off_serving_threads`), ask between its parts whether it may go on, and count its memory
//! before allocating it.
//!
//! To add an interface, add its module, its `mod` line, and its name in `capabilities!`. Plugins
//! may import the interfaces named there.

/// The value, or return the error to the guest.
macro_rules! or_tell {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

pub(crate) mod arrays;
pub(crate) mod assets;
pub(crate) mod http;
mod ids;
pub(crate) mod image;
pub(crate) mod json;
pub(crate) mod keep;
pub(crate) mod keyvalue;
pub(crate) mod log;
pub(crate) mod methods;
pub(crate) mod models;
pub(crate) mod nn;
pub(crate) mod prepare;
mod reading;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod tensors;
pub(crate) mod tokenizer;
pub(crate) mod types;
pub(crate) mod v0_1;
pub(crate) mod v0_2;
pub(crate) mod wasi;

use wasmtime::component::Linker;

use crate::call::CallState;
use crate::grant::{Grant, PerCall};

/// The data of the stores in which plugins run.
pub(crate) type StoreData = CallState<States>;

macro_rules! capabilities {
    (stateless: $($stateless:ident),*; with_state: $($name:ident),*;) => {
        /// The interfaces that a plugin may import. Those of WASI 0.2 have only the first two
        /// numbers of their version, because later versions add to earlier ones.
        pub(crate) fn interfaces() -> impl Iterator<Item = &'static str> {
            [$($stateless::INTERFACES,)* $($name::INTERFACES),*].into_iter().flatten().copied()
        }

        /// Whether a plugin may import this interface.
        pub(crate) fn is_provided(import: &str) -> bool {
            interfaces().any(|interface| wasi::is_named(import, interface))
        }

        /// The per-call state of each capability that has one.
        pub(crate) struct States {
            $($name: $name::CapabilityState,)*
        }

        impl PerCall for States {
            fn grant(grant: &Grant<'_>) -> Self {
                Self { $($name: PerCall::grant(grant)),* }
            }

            fn end(&mut self, failed: bool) {
                $(self.$name.end(failed);)*
            }

            fn renew(&mut self, grant: &Grant<'_>) {
                $(self.$name.renew(grant);)*
            }
        }

        $(impl AsMut<$name::CapabilityState> for States {
            fn as_mut(&mut self) -> &mut $name::CapabilityState {
                &mut self.$name
            }
        })*

        /// Link every capability.
        pub(crate) fn link(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
            $($stateless::link(linker)?;)*
            $($name::link(linker)?;)*
            Ok(())
        }
    };
}

capabilities! {
    // `tokenizer` and `tables` read the files of `assets`, `keyvalue` asks the stores of `store`,
    // and `http` sends what `wasi` may send.
    stateless: types, tensors, arrays, image, json, keep, models, nn, prepare, tokenizer, tables,
        keyvalue, http, v0_1, v0_2;
    // `log` is after `wasi`, which ends its lines when the call ends.
    with_state: wasi, log, store, assets;
}
