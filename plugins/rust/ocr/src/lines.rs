//! The models `angle` and `read`, for all lines of a page.

use gristmill_plugin::models::{self, Run};
use gristmill_plugin::{Failure, HandleError, Outputs};

use crate::crop::Crop;
use crate::only;

/// The width of a line for the model `angle`.
const ANGLE_WIDTH: usize = 192;
/// Of its outputs, the score of a line that is upside down, and the score from which it is.
const UPSIDE_DOWN: usize = 1;
const UPSIDE_DOWN_MIN: f32 = 0.9;
/// The smallest width of a line for the model `read`, over its height.
const READ_RATIO_MIN: f64 = 320.0 / 48.0;
const READ_HEIGHT: f64 = 48.0;
/// Lines that have one width. A model's answer depends on the width of the empty part, and RapidOCR
/// has six lines in a batch.
const GROUP: usize = 6;
/// The width of all lines that are sent to a model side by side: their inputs take about 14 MiB.
const WIDTH_MAX: usize = 24_000;
/// The class of the model `read` for no character. The space comes after all keys.
const BLANK: usize = 0;

/// Turn the lines that are upside down.
pub(crate) fn turn_upright(crops: &mut [Crop]) -> Result<(), HandleError> {
    let angles = infer_all("angle", crops, &vec![ANGLE_WIDTH; crops.len()], |outputs| {
        let scores = only(outputs)?.view::<f32>()?;
        let [upright, upside_down] = *scores.as_slice() else {
            return Err(Failure::internal("the model \"angle\" does not give two scores"));
        };
        Ok([upright, upside_down])
    })?;
    for (crop, scores) in crops.iter_mut().zip(angles) {
        if scores[UPSIDE_DOWN] > UPSIDE_DOWN_MIN.max(scores[1 - UPSIDE_DOWN]) {
            crop.turn_around();
        }
    }
    Ok(())
}

/// The text of each line and its score.
pub(crate) fn read(crops: &[Crop], keys: &str) -> Result<Vec<(String, f64)>, HandleError> {
    let keys: Vec<&str> = keys.lines().collect();
    infer_all("read", crops, &widths(crops), |outputs| {
        // Of each column of the line, the best class and its score.
        let best = outputs.get("best")?.view::<i64>()?;
        let scores = outputs.get("score")?.view::<f32>()?;
        decoded(best.as_slice(), scores.as_slice(), &keys)
    })
}

/// The width of each line for the model `read`. Lines of about the same ratio have the same.
fn widths(crops: &[Crop]) -> Vec<usize> {
    let mut order: Vec<_> = (0..crops.len()).collect();
    order.sort_by(|a, b| crops[*a].ratio().total_cmp(&crops[*b].ratio()));
    let mut widths = vec![0; crops.len()];
    for group in order.chunks(GROUP) {
        let ratios = group.iter().map(|at| crops[*at].ratio());
        let width = (READ_HEIGHT * ratios.fold(READ_RATIO_MIN, f64::max)) as usize;
        group.iter().for_each(|at| widths[*at] = width);
    }
    widths
}

/// What `result` makes of the outputs for each line, whose width for the model is given.
fn infer_all<T>(
    model: &str,
    crops: &[Crop],
    widths: &[usize],
    result: impl Fn(&Outputs) -> Result<T, Failure>,
) -> Result<Vec<T>, HandleError> {
    let mut results = Vec::with_capacity(crops.len());
    while results.len() < crops.len() {
        let rest = results.len()..crops.len();
        let ends = widths[rest.clone()].iter().scan(0, |sum, width| {
            *sum += width;
            Some(*sum)
        });
        let count = ends.take_while(|end| *end <= WIDTH_MAX).count().max(1);
        let now = rest.start..rest.start + count;
        let strips = now.map(|at| crops[at].strip(widths[at])).collect::<Result<Vec<_>, _>>()?;
        let runs: Vec<_> = strips.iter().map(|strip| Run::new(model).input("x", strip)).collect();
        for outputs in models::infer_all(&runs) {
            results.push(result(&outputs?)?);
        }
    }
    Ok(results)
}

/// The text of the columns' best classes and the mean of their scores: one character for columns
/// side by side with the same class. The class after those of all keys is the space.
fn decoded(best: &[i64], scores: &[f32], keys: &[&str]) -> Result<(String, f64), Failure> {
    let (mut text, mut sum, mut count) = (String::new(), 0.0, 0_u32);
    let mut before = BLANK;
    for (class, score) in best.iter().zip(scores) {
        let class = usize::try_from(*class).unwrap_or(BLANK);
        if class != BLANK && class != before {
            text.push_str(match class - 1 {
                key if key < keys.len() => keys[key],
                key if key == keys.len() => " ",
                _ => return Err(too_few_keys(class, keys.len())),
            });
            sum += f64::from(*score);
            count += 1;
        }
        before = class;
    }
    Ok((text, sum / f64::from(count.max(1))))
}

fn too_few_keys(class: usize, keys: usize) -> Failure {
    Failure::Internal(format!(
        "the model \"read\" gives class {class}, but keys.txt has {keys} lines: it belongs to \
         another model"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_classes_are_one_character_unless_a_blank_is_between() {
        let keys = ["a", "b"];
        let classes = [0, 1, 1, 0, 1, 2, 2, 3, 0];
        let scores = [0.1, 0.9, 0.1, 0.1, 0.7, 0.5, 0.1, 0.3, 0.1];
        let (text, score) = decoded(&classes, &scores, &keys).unwrap();
        assert_eq!(text, "aab ");
        assert!((score - 0.6).abs() < 1e-6, "{score}");
        assert_eq!(decoded(&[0, 0], &[1.0, 1.0], &keys).unwrap(), (String::new(), 0.0));
        let refused = decoded(&[4], &[1.0], &keys).unwrap_err();
        assert!(matches!(&refused, Failure::Internal(text) if text.contains("has 2 lines")));
    }
}
