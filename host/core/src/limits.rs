//! The limits of a plugin's call and of a pipeline's request, with their defaults.

use std::time::Duration;

/// The limits of one call of a plugin. Going over one ends the call, never the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginLimits {
    /// Linear memory, summed over all memories of the call.
    pub memory_bytes: usize,
    /// CPU time, in the guest and in native work done for it.
    pub cpu: Duration,
    /// The same for a call that decodes an image. A photo of a phone takes longer than all else
    /// that most plugins do.
    pub cpu_decoding: Duration,
    /// Elements, summed over all tables of the call.
    pub table_elements: usize,
    /// Core module instances.
    pub instances: usize,
    /// Live handles to host resources.
    pub handles: usize,
    /// Bytes of lists and strings that one call across the border may make the host allocate.
    pub hostcall_bytes: usize,
    /// The largest tensor, in bytes, that a plugin may make of anything but a picture. Must be less
    /// than `hostcall_bytes`, because bytes for a tensor cross the border in one call.
    pub tensor_bytes: usize,
    /// The bytes of all tensors, images and blobs that a call makes, taken together.
    pub host_memory_bytes: usize,
    /// Pixels in an image it decodes or makes.
    pub pixels: u64,
    /// A response's body, and a preprocessor's state.
    pub response_bytes: usize,
    /// Messages and fields logged. If the call fails, its last warning or error is logged all the
    /// same.
    pub log_bytes: usize,
}

/// What `hostcall_bytes` is unless a pipeline asks for more or less.
const HOSTCALL_BYTES: usize = 33 << 20;

impl PluginLimits {
    /// By how much `hostcall_bytes` exceeds its default. The owner is charged for it during a
    /// call, because the host cannot count what it receives before it has allocated it.
    pub fn hostcall_bytes_over_default(&self) -> usize {
        self.hostcall_bytes.saturating_sub(HOSTCALL_BYTES)
    }
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_millis(250),
            cpu_decoding: Duration::from_secs(3),
            table_elements: 20_000,
            instances: 64,
            handles: 10_000,
            hostcall_bytes: HOSTCALL_BYTES,
            tensor_bytes: 32 << 20,
            host_memory_bytes: 256 << 20,
            pixels: 50_000_000,
            response_bytes: 4 << 20,
            log_bytes: 64 << 10,
        }
    }
}

/// The limits of one request of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineLimits {
    /// From the request's arrival to its answer.
    pub timeout: Duration,
    /// The request's body.
    pub body_bytes: usize,
    /// Each plugin call.
    pub plugin: PluginLimits,
}

impl Default for PipelineLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            body_bytes: 16 << 20,
            plugin: PluginLimits::default(),
        }
    }
}
