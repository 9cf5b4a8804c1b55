//! Boxes of a detector.

use gristmill_core::{Dtype, Tensor};

use crate::array::{Stop, elements, fill, value};
use crate::call::Call;
use crate::order::{sort_in_parts, spare};
use crate::promote::cast;

/// `nms(boxes, scores, iou_threshold, score_threshold, count)`: which boxes stay, best first. A box
/// is `x1, y1, x2, y2`. One goes if it overlaps a better one that stays by more than the threshold:
/// by the area that both share over the area that they cover.
pub(crate) fn nms(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (boxes, scores) = (call.array(0)?, call.array(1)?);
    let threshold = call.float(0, 0.5)? as f32;
    let least = call.float(1, f64::NEG_INFINITY)? as f32;
    let most = call.int(2)?.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    let count = scores.shape().first().copied().unwrap_or(0);
    if scores.shape().len() != 1 || boxes.shape() != [count, 4] {
        let (boxes, scores) = (boxes.shape(), scores.shape());
        return Err(value(format!(
            "boxes have shape {boxes:?} and scores {scores:?}: [n, 4], [n]"
        )));
    }
    let room = &mut *call.room;
    let boxes = cast(&boxes, Dtype::Float32, room)?;
    let scores = cast(&scores, Dtype::Float32, room)?;
    let (boxes, _) = elements::<f32>(&boxes)?.as_chunks::<4>();
    let scores = elements::<f32>(&scores)?;
    // Numbers of boxes, those that stay, and their areas.
    room.reserve(count * (2 * size_of::<usize>() + size_of::<([f32; 4], f32)>()))?;
    let mut more = spare(count, count, 0_usize, room)?;
    // A score that is NaN is below every least score.
    let mut order: Vec<usize> = (0..count).filter(|at| scores[*at] >= least).collect();
    let more = &mut more[..order.len()];
    sort_in_parts(&mut order, more, |a, b| scores[*a] > scores[*b], room)?;
    let area = |b: &[f32; 4]| (b[2] - b[0]).max(0.0) * (b[3] - b[1]).max(0.0);
    let mut kept: Vec<usize> = Vec::with_capacity(order.len());
    let mut kept_boxes: Vec<([f32; 4], f32)> = Vec::with_capacity(order.len());
    let (mut since_asked, mut compared) = (0, 0_usize);
    for at in order {
        if kept.len() >= most {
            break;
        }
        let (one, own_area) = (boxes[at], area(&boxes[at]));
        let overlaps = |(other, area): &([f32; 4], f32)| {
            let width = one[2].min(other[2]) - one[0].max(other[0]);
            let height = one[3].min(other[3]) - one[1].max(other[1]);
            let shared = width.max(0.0) * height.max(0.0);
            shared > threshold * (own_area + area - shared)
        };
        since_asked += kept.len() + 1;
        if since_asked > 16 << 10 {
            compared += since_asked;
            since_asked = 0;
            // A comparison takes as long as to copy some bytes.
            room.touch(compared.saturating_mul(16))?;
            room.go_on()?;
        }
        if !kept_boxes.iter().any(overlaps) {
            kept.push(at);
            kept_boxes.push((one, own_area));
        }
    }
    fill(room, Dtype::Int64, &[kept.len()], |out: &mut [i64], _| {
        out.iter_mut().zip(&kept).for_each(|(out, at)| *out = *at as i64);
        Ok(())
    })
}
