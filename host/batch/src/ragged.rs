//! Requests whose rows are shorter than they look: their client has filled each of them up to the
//! longest, as tokenizers do.
//!
//! A row that ends with the values that `pad` names is its beginning, filled up: that is what the
//! trial of the model has shown. So the places at its end are left out, and rows run with those of
//! their own length: a text of five tokens does not run at the length of the longest text beside
//! it. Only models without an output of that length are served so. The others give the client what
//! they make of its padding.
//!
//! Invariant: the rows of the parts are those of the whole, each once.

use gristmill_core::{BufferPool, Lengths, NamedTensor, PaddedInput, Padding, Tensor};

use crate::split::{PartRow, RequestPart, RequestParts};

/// Maximum bytes of a request that is looked at: it is read and copied by the task that submits it.
const BYTES_MAX: usize = 1 << 20;

/// A request is taken apart if the places that are left out are at least one in so many.
const SAVED_SHARE: usize = 4;

/// The parts of a request whose rows have different buckets without their ends. None if it is to
/// stay whole.
pub(crate) fn by_length(
    whole: &RequestPart,
    padding: &Padding,
    pool: &BufferPool,
) -> Option<RequestParts> {
    let bytes: usize = whole.inputs.iter().map(|input| input.tensor.as_bytes().len()).sum();
    let mut padded = padding.lengths.iter().flat_map(|length| &length.inputs);
    let is_served = !padding.is_none()
        && padding.outputs.is_empty()
        && padded.all(|input| input.axis == 1)
        && whole.optional.is_empty()
        && bytes <= BYTES_MAX;
    if !is_served {
        return None;
    }
    let before: usize = padding.lengths_of(&whole.inputs)?.iter().sum();
    let lengths = |row| lengths_of_row(&whole.inputs, padding, row);
    let rows: Vec<Lengths> = (0..whole.rows).map(lengths).collect::<Option<_>>()?;
    let buckets = rows.iter().map(|lengths| padding.padded(lengths));
    let buckets: Vec<Lengths> = buckets.collect::<Option<_>>()?;
    let after: usize = buckets.iter().flatten().sum();
    let before = before.saturating_mul(whole.rows);
    if before.saturating_sub(after) < before.div_ceil(SAVED_SHARE) {
        return None;
    }
    let mut order: Vec<usize> = (0..whole.rows).collect();
    order.sort_by(|a, b| buckets[*a].cmp(&buckets[*b]));
    let mut places = vec![PartRow::default(); whole.rows];
    let mut parts = RequestParts::default();
    for rows_alike in order.chunk_by(|a, b| buckets[*a] == buckets[*b]) {
        let mut longest = rows[rows_alike[0]].clone();
        for (at, row) in rows_alike.iter().enumerate() {
            places[*row] = PartRow { part: parts.list.len(), row: at };
            longest.iter_mut().zip(&rows[*row]).for_each(|(all, one)| *all = (*all).max(*one));
        }
        let inputs = (0..whole.inputs.len()).map(|index| {
            let tensor = part_of(&whole.inputs[index].tensor, rows_alike, pool)?;
            let tensor = match padding.of_input(index) {
                Some((length, padded)) => tensor.cut(pool, padded.axis, longest[length])?,
                None => tensor,
            };
            Some(NamedTensor { name: whole.inputs[index].name.clone(), tensor })
        });
        let inputs = inputs.collect::<Option<_>>()?;
        parts.list.push(RequestPart::new(inputs, Vec::new(), rows_alike.len()));
    }
    // Rows of one bucket keep their order.
    parts.places = (parts.list.len() > 1).then_some(places);
    Some(parts)
}

/// The lengths of a row without what fills it up. None if nothing would be left of it.
fn lengths_of_row(inputs: &[NamedTensor], padding: &Padding, row: usize) -> Option<Lengths> {
    let of_input = |PaddedInput { input, element, .. }: &PaddedInput| {
        let tensor = &inputs.get(*input)?.tensor;
        let row_bytes = tensor.as_bytes().len() / tensor.rows().max(1);
        let bytes = tensor.as_bytes().get(row * row_bytes..(row + 1) * row_bytes)?;
        let place_bytes = row_bytes / tensor.shape().get(1).copied()?.max(1);
        let mut places = bytes.chunks_exact(place_bytes.max(1));
        let fills = |place: &[u8]| place.chunks(element.len()).all(|one| one == &element[..]);
        Some(places.rposition(|place| !fills(place)).map_or(0, |last| last + 1))
    };
    let longest = |inputs: &[PaddedInput]| {
        let length = inputs.iter().map(of_input).try_fold(0, |all, one| Some(one?.max(all)))?;
        (length > 0).then_some(length)
    };
    padding.lengths.iter().map(|length| longest(&length.inputs)).collect()
}

/// A tensor of these `rows` of another one. None if they cannot be taken.
fn part_of(tensor: &Tensor, rows: &[usize], pool: &BufferPool) -> Option<Tensor> {
    if rows.len() == tensor.rows() {
        return Some(tensor.clone());
    }
    let rows = rows.iter().map(|row| tensor.slice_rows(*row..row + 1));
    let rows: Vec<Tensor> = rows.collect::<Option<_>>()?;
    Tensor::stack(pool, rows.iter()).ok()
}
