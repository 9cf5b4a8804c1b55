//! `keep`: what a preprocessor hands to the postprocessor of the same request.

use wasmtime::component::{HasSelf, Linker};

use crate::call::CallState;
use crate::kept::{ENTRY_BYTES, INLINE_DROP_BYTES_MAX, KeptAccess, Thing};
use crate::limiter::Limited;
use crate::queue::Half;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "import gristmill:plugin/keep@0.3.0;",
        imports: { default: trappable },
        with: {
            "gristmill:plugin/types": crate::capability::types::wit,
            "gristmill:plugin/tensors": crate::capability::tensors::wit,
            "gristmill:plugin/image": crate::capability::image::wit,
        },
    });
}

use self::bindings::gristmill::plugin::keep as wit;

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/keep@0.3.0"];

/// Maximum things that a request keeps, and bytes of a name.
const THINGS_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 1024;

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S> wit::Host for CallState<S> {
    fn put(&mut self, name: String, value: wit::Kept) -> wasmtime::Result<Result<(), String>> {
        let thing = match value {
            wit::Kept::Pixels(pixels) => Thing::Pixels(self.table.delete(pixels)?),
            wit::Kept::Tensor(tensor) => Thing::Tensor(self.table.delete(tensor)?),
            wit::Kept::Blob(blob) => Thing::Blob(self.table.delete(blob)?),
        };
        let Some(KeptAccess { kept, half: Half::First }) = &self.kept else {
            return Ok(Err("only a preprocessor keeps something".into()));
        };
        let kept = kept.clone();
        if name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            return Ok(Err(format!("the name has {bytes} bytes; the limit is {NAME_BYTES_MAX}")));
        }
        if kept.others(&name) >= THINGS_MAX {
            return Ok(Err(format!("{name:?} would be one more than {THINGS_MAX}, the limit")));
        }
        self.hold(name.len() + ENTRY_BYTES)?;
        kept.put(name, thing, self.host_bytes_used()).map_err(Limited::Owner)?;
        Ok(Ok(()))
    }

    fn take(&mut self, name: String) -> wasmtime::Result<Option<wit::Kept>> {
        let Some(KeptAccess { kept, half: Half::Second }) = &self.kept else { return Ok(None) };
        let Some(thing) = kept.take(&name) else { return Ok(None) };
        let bytes = thing.bytes();
        if bytes > INLINE_DROP_BYTES_MAX {
            self.meter.set_large();
        }
        self.hold(bytes)?;
        Ok(Some(match thing {
            Thing::Pixels(pixels) => wit::Kept::Pixels(self.table.push(pixels)?),
            Thing::Tensor(tensor) => wit::Kept::Tensor(self.table.push(tensor)?),
            Thing::Blob(blob) => wit::Kept::Blob(self.table.push(blob)?),
        }))
    }
}
