//! The GPUs of the machine, as NVIDIA's driver shows them (NVML). Without its library there is
//! nothing to see.

use std::sync::OnceLock;

use gristmill_metrics::{Collected, Family, Value, family};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;

/// The driver's library. Opened once: that takes a while, and a machine gets no driver while the
/// server runs.
static NVML: OnceLock<Option<Nvml>> = OnceLock::new();

/// Add the figures of each GPU that the driver shows. A figure that a GPU does not have is left
/// out.
pub(crate) fn collect(collected: &mut Collected) {
    let opened = NVML.get_or_init(|| {
        Nvml::init().inspect_err(|error| tracing::debug!(%error, "no GPU is observed")).ok()
    });
    let Some(nvml) = opened else { return };
    for index in 0..nvml.device_count().unwrap_or_default() {
        if let Err(error) = collect_device(nvml, index, collected) {
            tracing::debug!(index, %error, "the GPU cannot be observed");
        }
    }
}

fn collect_device(nvml: &Nvml, index: u32, collected: &mut Collected) -> Result<(), NvmlError> {
    let device = nvml.device_by_index(index)?;
    let (number, name) = (index.to_string(), device.name()?);
    let mut add = |family: &'static Family, value: Result<Value, NvmlError>| {
        if let Ok(value) = value {
            collected.add(family, &[&*number, &*name], value);
        }
    };
    let utilization = device.utilization_rates().map(|rates| f64::from(rates.gpu) / 100.0);
    add(family::GPU_UTILIZATION, utilization.map(Value::from));
    if let Ok(memory) = device.memory_info() {
        add(family::GPU_MEMORY, Ok(memory.used.into()));
        add(family::GPU_MEMORY_LIMIT, Ok(memory.total.into()));
    }
    let temperature = device.temperature(TemperatureSensor::Gpu).map(f64::from);
    add(family::GPU_TEMPERATURE, temperature.map(Value::from));
    let power = device.power_usage().map(|milliwatts| f64::from(milliwatts) / 1e3);
    add(family::GPU_POWER, power.map(Value::from));
    Ok(())
}
