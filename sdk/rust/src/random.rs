//! The crate `getrandom` gets its random bytes from the host, as it would under WASI.
//!
//! So `rand`, `uuid`, `tokenizers` and other crates that draw random numbers link. Versions 0.3 and
//! 0.4 call a function of ours because of `--cfg getrandom_backend="custom"`, 0.2 because its
//! feature `custom` is on. `gristmill plugin build` sets that cfg and `gristmill_random` if the
//! plugin depends on `getrandom`. Other plugins do not import WASI's random numbers.

#![cfg(all(target_arch = "wasm32", target_os = "unknown", gristmill_random))]

use core::num::NonZeroI32;

mod wasi {
    wit_bindgen::generate!({
        inline: "
            package gristmill:random;

            world random {
                import wasi:random/random@0.2.0;
            }

            package wasi:random@0.2.0 {
                interface random {
                    get-random-bytes: func(len: u64) -> list<u8>;
                }
            }
        ",
        generate_all,
    });
}

/// In place of the error of `getrandom` 0.3 and 0.4, a struct with only this. No error is ever
/// returned: without random bytes the call ends. So it matters only that both results have the same
/// layout.
type Error = NonZeroI32;

/// What `getrandom` 0.3 and 0.4 call.
///
/// # Safety
/// `bytes` has room for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(bytes: *mut u8, len: usize) -> Result<(), Error> {
    let random = wasi::wasi::random::random::get_random_bytes(len as u64);
    assert_eq!(random.len(), len, "the host gave another number of random bytes");
    // SAFETY: the caller promised room for `len` bytes, which `random` has.
    unsafe { bytes.copy_from_nonoverlapping(random.as_ptr(), len) };
    Ok(())
}

/// What `getrandom` 0.2 calls.
///
/// # Safety
/// `bytes` has room for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_custom(bytes: *mut u8, len: usize) -> u32 {
    // SAFETY: as the caller promised.
    let filled = unsafe { __getrandom_v03_custom(bytes, len) };
    u32::from(filled.is_err())
}
