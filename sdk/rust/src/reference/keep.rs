//! `keep`: what a preprocessor keeps, for each thread. In tests a postprocessor of the same thread
//! takes it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::image::Pixels;
use super::tensors::Tensor;
use super::types::Blob;

#[derive(Debug)]
pub enum Kept {
    Pixels(Pixels),
    Tensor(Tensor),
    Blob(Blob),
}

thread_local! {
    static KEPT: RefCell<BTreeMap<String, Kept>> = const { RefCell::new(BTreeMap::new()) };
}

/// The most bytes of a name, as in the host.
const NAME_BYTES_MAX: usize = 1024;

pub fn put(name: &str, value: Kept) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        return Err(format!("the name has {bytes} bytes; the limit is {NAME_BYTES_MAX}"));
    }
    KEPT.with_borrow_mut(|kept| kept.insert(name.into(), value));
    Ok(())
}

pub fn take(name: &str) -> Option<Kept> {
    KEPT.with_borrow_mut(|kept| kept.remove(name))
}
