//! `arrays`: only the host computes them.

use super::tensors::{Dtype, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    InvalidProgram,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    pub step: u32,
    pub message: String,
}

#[allow(dead_code, reason = "the contract has more fields than the SDK reads")]
pub struct Made {
    pub tensor: Tensor,
    pub dtype: Dtype,
    pub shape: Vec<u32>,
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
    Fault { kind: FaultKind::InvalidProgram, step: u32::MAX, message }
}
