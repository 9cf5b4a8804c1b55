//! Pools over the spatial dimensions of images.

use super::super::call::{Call, Outputs};
use super::super::dim::Dim;
use super::super::fact::Why;
use super::super::layout::not_at;
use super::convolution::Window;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "AveragePool" | "LpPool" | "MaxPool" => pool,
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => global,
        _ => return None,
    })
}

fn pool(call: &Call) -> Outputs {
    call.ignore(&["count_include_pad", "p", "storage_order"]);
    let image = call.input(0)?;
    spatial_is_free(call)?;
    let kernel = call.ints("kernel_shape")?.ok_or("it has no kernel_shape")?;
    let size = |size: &i64| u64::try_from(*size).map(Dim::known).map_err(|_| "its kernel is empty");
    let kernel = kernel.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let [batch, channels, spatial @ ..] = image.dims()? else {
        return Err("its input has too few dimensions".into());
    };
    if kernel.len() != spatial.len() {
        return Err("its kernel has another number of dimensions than its input".into());
    }
    let spatial = Window::new(call, kernel)?.slide(spatial, call);
    let shape = [&[batch.clone(), channels.clone()], &spatial[..]].concat();
    let places = Err("the places that it gives count from the first row".into());
    Ok(vec![Ok(image.reshaped(shape)), places])
}

fn global(call: &Call) -> Outputs {
    call.ignore(&["p"]);
    let image = call.input(0)?;
    spatial_is_free(call)?;
    let dims = image.dims()?.iter().enumerate();
    let shape = dims.map(|(at, dim)| if at < 2 { dim.clone() } else { Dim::known(1) });
    Ok(vec![Ok(image.reshaped(shape.collect()))])
}

fn spatial_is_free(call: &Call) -> Result<(), Why> {
    let image = call.input(0)?;
    let spatial: Vec<usize> = (2..image.rank()?).collect();
    not_at(image, &spatial, "it pools over the rows")
}
