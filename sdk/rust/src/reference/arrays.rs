//! `arrays`: only the host computes them.

use super::tensors::{Dtype, Tensor};

/// Of the contract's fields those that the SDK reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub step: u32,
    pub message: String,
}

/// Of the contract's fields the one that the SDK reads.
pub struct Made {
    pub tensor: Tensor,
}

pub struct Elements {
    pub dtype: Dtype,
    pub shape: Vec<u32>,
    pub data: Vec<u8>,
}

pub fn evaluate(_: &[&Tensor], program: &str, _: &[u32]) -> Result<Vec<Made>, Fault> {
    Err(refused(program))
}

pub fn read(_: &[&Tensor], program: &str, _: u32) -> Result<Elements, Fault> {
    Err(refused(program))
}

fn refused(program: &str) -> Fault {
    let message = format!(
        "arrays are computed by the host: run the plugin with `gristmill plugin test` (the program \
         is {program})"
    );
    Fault { step: u32::MAX, message }
}
