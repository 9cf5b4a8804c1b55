//! What the values of an image's channels are like.

use crate::error::Stopped;
use crate::pixels::Pixels;

/// The values of one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelStatistics {
    /// The smallest.
    pub min: u8,
    /// The largest.
    pub max: u8,
    /// Their mean.
    pub mean: f32,
}

/// The pixels that are read between two checks. Sums of their values fit into a u32.
const PART_PIXELS: usize = 256 << 10;

impl Pixels {
    /// Of each channel the smallest, the largest and the mean value.
    ///
    /// # Errors
    /// [`Stopped`] if `check` refuses. It is called about every millisecond.
    pub fn statistics(
        &self,
        check: &dyn Fn() -> Result<(), Stopped>,
    ) -> Result<Vec<ChannelStatistics>, Stopped> {
        if self.is_gray() {
            summed::<1>(self.data(), check)
        } else {
            summed::<3>(self.data(), check)
        }
    }
}

fn summed<const CHANNELS: usize>(
    data: &[u8],
    check: &dyn Fn() -> Result<(), Stopped>,
) -> Result<Vec<ChannelStatistics>, Stopped> {
    let (mut min, mut max, mut sum) = ([u8::MAX; CHANNELS], [0; CHANNELS], [0_u64; CHANNELS]);
    let (pixels, _) = data.as_chunks::<CHANNELS>();
    for (at, part) in pixels.chunks(PART_PIXELS).enumerate() {
        if at > 0 {
            check()?;
        }
        let mut part_sum = [0_u32; CHANNELS];
        for pixel in part {
            for (channel, value) in pixel.iter().enumerate() {
                min[channel] = min[channel].min(*value);
                max[channel] = max[channel].max(*value);
                part_sum[channel] += u32::from(*value);
            }
        }
        sum.iter_mut().zip(part_sum).for_each(|(sum, part)| *sum += u64::from(part));
    }
    let mean = |channel: usize| (sum[channel] as f64 / pixels.len() as f64) as f32;
    let of =
        |channel| ChannelStatistics { min: min[channel], max: max[channel], mean: mean(channel) };
    Ok((0..CHANNELS).map(of).collect())
}
