//! `prepare`: the record that `preprocess` returns.

use super::tensors::NamedTensor;

#[derive(Debug)]
pub struct Prepared {
    pub inputs: Vec<NamedTensor>,
    pub state: Vec<u8>,
}
