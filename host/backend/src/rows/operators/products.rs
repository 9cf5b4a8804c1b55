//! Sums of products: matrices and Einstein's sums.

use tract_onnx::pb::attribute_proto::AttributeType;

use super::super::call::{Call, Outputs};
use super::super::dependence::Rows;
use super::super::fact::{Fact, RANK_MAX, Why};
use super::super::layout::{Label, broadcast, contract};

/// The labels of a matrix's indices; the axes before them count from the last, from 3.
const ROW: Label = 0;
const INNER: Label = 1;
const COLUMN: Label = 2;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "MatMul" => matmul,
        "Gemm" => gemm,
        "Einsum" => einsum,
        _ => return None,
    })
}

fn matmul(call: &Call) -> Outputs {
    let (rows, shape) = product(call.input(0)?, call.input(1)?, call)?;
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}

/// The product of two matrices, or of arrays of them.
pub(super) fn product(
    left: &Fact,
    right: &Fact,
    call: &Call,
) -> Result<(Rows, Vec<super::super::dim::Dim>), Why> {
    let (left_rank, right_rank) = (left.rank()?, right.rank()?);
    if left_rank == 0 || right_rank == 0 {
        return Err("an input has no dimensions".into());
    }
    let batch = |rank: usize| (0..rank.saturating_sub(2) as Label).rev().map(|each| each + 3);
    let last = |rank: usize, pair: [Label; 2], one: Label| match rank {
        1 => vec![one],
        _ => pair.to_vec(),
    };
    let labels = |rank, pair, one| batch(rank).chain(last(rank, pair, one)).collect::<Vec<_>>();
    let left_labels = labels(left_rank, [ROW, INNER], INNER);
    let right_labels = labels(right_rank, [INNER, COLUMN], INNER);
    let mut output: Vec<Label> = batch(left_rank.max(right_rank)).collect();
    output.extend((left_rank > 1).then_some(ROW));
    output.extend((right_rank > 1).then_some(COLUMN));
    contract(&[(left, left_labels), (right, right_labels)], &output, call)
}

fn gemm(call: &Call) -> Outputs {
    call.ignore(&["alpha", "beta", "broadcast"]);
    let turned = |labels: [Label; 2], is_turned: i64| match is_turned {
        0 => labels.to_vec(),
        _ => vec![labels[1], labels[0]],
    };
    let left = (call.input(0)?, turned([ROW, INNER], call.int("transA", 0)?));
    let right = (call.input(1)?, turned([INNER, COLUMN], call.int("transB", 0)?));
    let (rows, shape) = contract(&[left, right], &[ROW, COLUMN], call)?;
    let product = Fact::new(rows, Some(shape));
    let Some(added) = call.optional(2) else { return Ok(vec![Ok(product)]) };
    let (rows, shape) = broadcast(&[&product, added], call)?;
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}

/// The labels of axes that `...` stands for count from the last, from here.
const OTHERS: Label = 1000;

fn einsum(call: &Call) -> Outputs {
    let equation = call.attributes.get("equation", AttributeType::String)?;
    let equation = equation.ok_or("it has no equation")?;
    let equation: Vec<u8> = equation.s.iter().copied().filter(|byte| *byte != b' ').collect();
    let unclear = || Why::from("its equation is not clear");
    let equation = String::from_utf8(equation).map_err(|_| unclear())?;
    let (terms, output) = equation.split_once("->").ok_or_else(unclear)?;
    let terms: Vec<&str> = terms.split(',').collect();
    let inputs = call.present();
    if terms.len() != inputs.len() || terms.len() != call.inputs.len() {
        return Err(unclear());
    }
    let (mut all, mut others_max) = (Vec::new(), 0);
    for (term, input) in terms.into_iter().zip(inputs) {
        let others = input.rank()?.saturating_sub(term.len().saturating_sub("...".len()));
        let others = if term.contains("...") { others } else { 0 };
        others_max = others_max.max(others);
        all.push((input, labels(term, others).ok_or_else(unclear)?));
    }
    let output = labels(output, others_max).ok_or_else(unclear)?;
    let (rows, shape) = contract(&all, &output, call)?;
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}

/// The labels of a term whose `...` stands for `others` axes.
fn labels(term: &str, others: usize) -> Option<Vec<Label>> {
    let letters = |part: &str| -> Option<Vec<Label>> {
        let is_plain =
            part.len() <= RANK_MAX && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_plain.then(|| part.bytes().map(Label::from).collect())
    };
    let Some((before, after)) = term.split_once("...") else { return letters(term) };
    let others = (0..others as Label).rev().map(|at| OTHERS + at);
    Some(letters(before)?.into_iter().chain(others).chain(letters(after)?).collect())
}
