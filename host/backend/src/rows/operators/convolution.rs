//! Convolutions. The rows are their batch; their filters are the same for all.

use super::super::call::{Call, Outputs};
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};
use super::super::layout::only_at;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Conv" => |call| convolve(call, 1),
        "ConvTranspose" => transposed,
        "DeformConv" => deformed,
        _ => return None,
    })
}

/// How a window moves over the spatial dimensions.
pub(super) struct Window {
    pub(super) kernel: Vec<Dim>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
    auto_pad: String,
    rounds_up: bool,
}

impl Window {
    /// The window of a call whose spatial dimensions are those of `kernel`.
    pub(super) fn new(call: &Call, kernel: Vec<Dim>) -> Result<Self, Why> {
        let count = kernel.len();
        let list = |name, default, count| match call.ints(name)? {
            None => Ok(vec![default; count]),
            Some(list) if list.len() == count => Ok(list.to_vec()),
            Some(_) => Err(Why::from(format!("its `{name}` have another length than expected"))),
        };
        Ok(Self {
            strides: list("strides", 1, count)?,
            dilations: list("dilations", 1, count)?,
            pads: list("pads", 0, 2 * count)?,
            auto_pad: call.text("auto_pad", "NOTSET")?.to_owned(),
            rounds_up: call.int("ceil_mode", 0)? != 0,
            kernel,
        })
    }

    /// The dimension that the window makes of spatial dimension `at`, which is `dim`.
    fn size(&self, at: usize, dim: &Dim) -> Option<Dim> {
        let kernel = i64::try_from(self.kernel.get(at)?.as_known()?).ok()?;
        let (stride, dilation) = (*self.strides.get(at)?, *self.dilations.get(at)?);
        let reach = dilation.checked_mul(kernel.checked_sub(1)?)?;
        let ends = self.pads.get(at)?.checked_add(*self.pads.get(at + self.strides.len())?)?;
        let fixed_size = dim.as_known().and_then(|size| i64::try_from(size).ok());
        let size = match &self.auto_pad[..] {
            // Pools and convolutions differ.
            "SAME_UPPER" | "SAME_LOWER" if dilation != 1 => return None,
            "SAME_UPPER" | "SAME_LOWER" if stride == 1 => return Some(dim.clone()),
            "SAME_UPPER" | "SAME_LOWER" => {
                fixed_size?.checked_add(stride.checked_sub(1)?)?.checked_div(stride)?
            }
            "VALID" | "NOTSET" if !self.rounds_up => {
                let ends = if self.auto_pad == "VALID" { 0 } else { ends };
                if stride == 1 && ends == reach {
                    return Some(dim.clone());
                }
                let free = fixed_size?.checked_add(ends)?.checked_sub(reach)?.checked_sub(1)?;
                let steps = free.checked_div(stride).filter(|_| free >= 0 && stride > 0)?;
                steps.checked_add(1)?
            }
            _ => return None,
        };
        Some(Dim::known(u64::try_from(size).ok()?))
    }

    /// The dimensions that the window makes of `spatial`.
    pub(super) fn slide(&self, spatial: &[Dim], call: &Call) -> Vec<Dim> {
        let dims = spatial.iter().enumerate();
        dims.map(|(at, dim)| self.size(at, dim).unwrap_or_else(|| call.fresh())).collect()
    }
}

pub(super) const NOT_BATCH: &str = "the rows are in another dimension than the batch of it";

/// A convolution whose filters are input `filters`.
pub(super) fn convolve(call: &Call, filters: usize) -> Outputs {
    let image = call.input(0)?;
    call.free_from(1)?;
    only_at(image, 0, NOT_BATCH)?;
    let (dims, filters) = (image.dims()?, call.input(filters)?.dims()?);
    call.ignore(&["group", "kernel_shape"]);
    let (Some((batch, [_, spatial @ ..])), [count, _, kernel @ ..]) = (dims.split_first(), filters)
    else {
        return Err("an input has too few dimensions".into());
    };
    if kernel.len() != spatial.len() {
        return Err("its inputs have different numbers of dimensions".into());
    }
    let spatial = Window::new(call, kernel.to_vec())?.slide(spatial, call);
    let shape = [&[batch.clone(), count.clone()], &spatial[..]].concat();
    Ok(vec![Ok(image.reshaped(shape))])
}

fn transposed(call: &Call) -> Outputs {
    let image = call.input(0)?;
    call.free_from(1)?;
    only_at(image, 0, NOT_BATCH)?;
    let (dims, filters) = (image.dims()?, call.input(1)?.dims()?);
    call.ignore(&["kernel_shape", "output_padding", "output_shape", "pads", "strides"]);
    call.ignore(&["dilations", "auto_pad"]);
    let ([batch, _, spatial @ ..], [_, per_group, ..]) = (dims, filters) else {
        return Err("an input has too few dimensions".into());
    };
    let groups = u64::try_from(call.int("group", 1)?).map_err(|_| "its groups are negative")?;
    let channels = per_group.times(&Dim::known(groups)).unwrap_or_else(|| call.fresh());
    let mut shape = vec![batch.clone(), channels];
    shape.extend(spatial.iter().map(|_| call.fresh()));
    Ok(vec![Ok(image.reshaped(shape))])
}

fn deformed(call: &Call) -> Outputs {
    call.ignore(&["dilations", "group", "kernel_shape", "offset_group", "pads", "strides"]);
    let (image, filters) = (call.input(0)?, call.input(1)?);
    // The offsets and their mask belong to the images.
    let parts = [call.input(0)?, call.input(2)?].into_iter().chain(call.optional(4));
    for part in parts {
        let batch = part.dims()?.first();
        if part.rows != image.rows || batch != image.dims()?.first() {
            return Err("its inputs have different rows".into());
        }
        only_at(part, 0, NOT_BATCH)?;
    }
    let is_fixed = filters.is_free() && call.optional(3).is_none_or(Fact::is_free);
    let ([batch, _, spatial @ ..], [count, ..], true) = (image.dims()?, filters.dims()?, is_fixed)
    else {
        return Err("its filters depend on the rows, or have no dimensions".into());
    };
    let mut shape = vec![batch.clone(), count.clone()];
    shape.extend(spatial.iter().map(|_| call.fresh()));
    Ok(vec![Ok(image.reshaped(shape))])
}
