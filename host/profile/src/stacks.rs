//! From a sample to the addresses of its functions: unwinding, away from the signal handler.

use std::collections::HashMap;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64 as Regs, UnwinderAarch64};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Regs, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};

use crate::objects::LoadedObject;
use crate::ring::{Registers, Sample};

#[cfg(target_arch = "aarch64")]
type Native = UnwinderAarch64<Vec<u8>>;
#[cfg(target_arch = "x86_64")]
type Native = UnwinderX86_64<Vec<u8>>;

/// Maximum functions of one stack, from the innermost on.
const DEPTH_MAX: usize = 128;

/// Maximum addresses in all different stacks that are kept; further ones count as lost.
const ADDRESSES_MAX: usize = 400_000;

/// A thread and the addresses on its stack, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Addresses {
    pub(crate) thread: i32,
    pub(crate) addresses: Box<[u64]>,
}

/// How often each stack was seen.
pub(crate) struct Stacks {
    unwinder: Native,
    cache: Cache,
    pub(crate) counts: HashMap<Addresses, u64>,
    pub(crate) lost: u64,
    /// The addresses in all of them.
    addresses: usize,
}

impl Stacks {
    /// Stacks of the code in these files, whose sections it takes. Other code, such as compiled
    /// plugins, is unwound by its frame pointers.
    pub(crate) fn new(objects: &mut [LoadedObject]) -> Self {
        let mut unwinder = Native::new();
        for object in objects {
            let unwinding = std::mem::take(&mut object.unwinding);
            let (eh_frame_svma, eh_frame) = unwinding.eh_frame.unzip();
            let (eh_frame_hdr_svma, eh_frame_hdr) = unwinding.eh_frame_hdr.unzip();
            let sections = ExplicitModuleSectionInfo {
                text_svma: unwinding.text,
                got_svma: unwinding.got,
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..Default::default()
            };
            let addresses = object.addresses.clone();
            unwinder.add_module(Module::new(object.name.clone(), addresses, object.bias, sections));
        }
        Self { unwinder, cache: Cache::new(), counts: HashMap::new(), lost: 0, addresses: 0 }
    }

    /// Count a sample.
    pub(crate) fn add(&mut self, sample: &Sample) {
        let Registers { ip, sp, fp, lr } = sample.registers;
        let stack = &sample.stack[..sample.bytes];
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(sp)).map_err(|_| ())?;
            let bytes = at.checked_add(8).and_then(|end| stack.get(at..end)).ok_or(())?;
            bytes.try_into().map(u64::from_ne_bytes).map_err(|_| ())
        };
        let registers = regs(ip, lr, sp, fp);
        let mut frames = self.unwinder.iter_frames(ip, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::with_capacity(64);
        while addresses.len() < DEPTH_MAX
            && let Ok(Some(frame)) = frames.next()
        {
            addresses.push(match frame {
                FrameAddress::InstructionPointer(address) => address,
                // The call before it: the next instruction may be another function's.
                FrameAddress::ReturnAddress(address) => address.get() - 1,
            });
        }
        let key = Addresses { thread: sample.thread, addresses: addresses.into() };
        let all = self.addresses + key.addresses.len();
        match self.counts.get_mut(&key) {
            Some(count) => *count += 1,
            None if all > ADDRESSES_MAX => self.lost += 1,
            None => {
                self.addresses = all;
                self.counts.insert(key, 1);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn regs(ip: u64, _: u64, sp: u64, fp: u64) -> Regs {
    Regs::new(ip, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn regs(_: u64, lr: u64, sp: u64, fp: u64) -> Regs {
    Regs::new(lr, sp, fp)
}
