//! Deeds with inputs that the model does not have or cannot take.

use gristmill_plugin::{Failure, Prepared, Tensor};

use crate::{BLANK, Deed, blank};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("wrong-name", |_| Ok(Prepared::new().input("inptu", blank()?))),
    ("wrong-dtype", |_| input(Tensor::from_slice(&[1, 1, 28, 28], &[0_i64; 784])?)),
    ("wrong-shape", |_| input(Tensor::from_slice(&[1, 784], &BLANK)?)),
    ("wrong-length", |_| input(Tensor::from_slice(&[1, 1, 28, 29], &BLANK)?)),
    ("no-rows", |_| input(Tensor::from_slice::<f32>(&[0, 1, 28, 28], &[])?)),
    ("no-inputs", |_| Ok(Prepared::new())),
    ("long-name", |_| Ok(Prepared::new().input(&"n".repeat(8_000_000), blank()?))),
    ("many-inputs", |_| many_inputs()),
];

fn input(tensor: Tensor) -> Result<Prepared, Failure> {
    Ok(Prepared::new().input("input", tensor))
}

/// Gives nearly as many inputs as a call may have tensors, each with a name of 1 KB.
fn many_inputs() -> Result<Prepared, Failure> {
    let name = "n".repeat(1 << 10);
    let add = |prepared: Prepared, _| {
        Ok::<_, Failure>(prepared.input(&name, Tensor::from_slice(&[1], &[0_u8])?))
    };
    (0..9_000).try_fold(Prepared::new(), add)
}
