//! The capabilities of plugins: one module for each interface of `wit/`.
//!
//! A capability owns its interface in all three lifetimes: `link` adds its functions to the linker,
//! once a process; `grant` makes its [state](States) from what a call was granted; its functions
//! use that state and what all share ([`CallState`]) while the call runs. It refuses to know the
//! others, but for those whose types its interface uses.
//!
//! Every function here runs within the call's turn, so its CPU time is charged to the call. One
//! that takes more than a few hundred nanoseconds first lets other calls go on where the turn was
//! long (`Meter::take_turns`). Large work goes off the serving threads first
//! (`Meter::off_serving_threads`), asks between its parts whether it may go on, and counts its
//! memory before it is allocated.
//!
//! To add an interface: its module, its `mod` line, and its name in the list `capabilities!`. The
//! list says what admission lets plugins import, too.

pub(crate) mod image;
pub(crate) mod log;
pub(crate) mod prepare;
pub(crate) mod tensors;
pub(crate) mod types;

use wasmtime::component::Linker;

use crate::call::CallState;
use crate::grant::Grant;

/// The data of the stores in which plugins run.
pub(crate) type StoreData = CallState<States>;

macro_rules! capabilities {
    ($($name:ident),* $(,)?) => {
        /// The interfaces that a plugin may import.
        pub(crate) const INTERFACES: &[&str] = &[$($name::INTERFACE),*];

        /// The per-call state of each capability.
        pub(crate) struct States {
            $($name: $name::State,)*
        }

        impl States {
            /// The states of a call that may use what `grant` says.
            pub(crate) fn new(grant: &Grant<'_>) -> Self {
                Self { $($name: $name::grant(grant)),* }
            }
        }

        $(impl AsMut<$name::State> for States {
            fn as_mut(&mut self) -> &mut $name::State {
                &mut self.$name
            }
        })*

        /// Link every capability.
        pub(crate) fn link(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
            $($name::link(linker)?;)*
            Ok(())
        }
    };
}

capabilities! { types, tensors, image, log, prepare }
