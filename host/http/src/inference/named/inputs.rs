//! The requests for a pipeline that rows of its named inputs are.
//!
//! Invariant: the memory of a request's body counts before it is made.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, Dtype, ErrorCode, TensorInfo, Texts};
use gristmill_oip::{Input, PipelineParameters};
use gristmill_sandbox::{Request, base64_bytes_max, decode_base64};
use gristmill_serve::edge::{media_type, query};
use gristmill_snapshot::{BodyInput, Inputs, MemberInput, Signature, row_dims};
use gristmill_transport::Problem;

use super::json_body::JsonBody;
use super::row::in_row;
use super::time::TimeLeft;

/// The inputs of a request, in the order of the signature.
pub(super) struct Rows {
    /// The number of rows.
    pub(super) count: usize,
    inputs: Vec<Input>,
}

impl Rows {
    /// Check the names, datatypes and shapes of a request's inputs.
    ///
    /// # Errors
    /// An input is unknown, missing or given twice, or it does not fit.
    pub(super) fn of(signature: &Signature, inputs: Vec<Input>) -> Result<Self, Problem> {
        let known_inputs = signature.inputs();
        let names = || known_inputs.iter().map(|info| &*info.name).collect::<Vec<_>>();
        let mut ordered: Vec<Option<Input>> = known_inputs.iter().map(|_| None).collect();
        for input in inputs {
            let name = &input.name;
            let Some(at) = known_inputs.iter().position(|info| *info.name == **name) else {
                let names = names();
                let detail = format!("unknown input {name:?}: the pipeline's inputs are {names:?}");
                return Err(invalid(detail));
            };
            if ordered[at].is_some() {
                return Err(invalid(format!("input {name:?} is given twice")));
            }
            check(&input, known_inputs[at])?;
            if matches!(signature.inputs, Inputs::Members(_)) {
                check_parameters(&input)?;
            }
            ordered[at] = Some(input);
        }
        if let Some(at) = ordered.iter().position(Option::is_none) {
            let (name, names) = (&known_inputs[at].name, names());
            let detail = format!("input {name:?} is missing: the pipeline's inputs are {names:?}");
            return Err(invalid(detail));
        }
        let inputs: Vec<Input> = ordered.into_iter().flatten().collect();
        let Some(first) = inputs.first() else {
            return Err(invalid("the pipeline has no inputs".into()));
        };
        let count = rows_of(first);
        if let Some(other) = inputs.iter().find(|input| rows_of(input) != count) {
            let (first, other, rows) = (&first.name, &other.name, rows_of(other));
            return Err(invalid(format!(
                "input {first:?} has {count} rows, and input {other:?} has {rows}"
            )));
        }
        let most = Signature::ROWS_MAX;
        if !(1..=most).contains(&count) {
            let detail = format!("the request has {count} rows: a pipeline takes 1 to {most}");
            return Err(invalid(detail));
        }
        Ok(Self { count, inputs })
    }

    /// The bytes that have to be looked at.
    pub(super) fn bytes(&self) -> usize {
        self.inputs.iter().map(|input| input.data.len()).sum()
    }

    /// The request of each row, with a body of at most `limit` bytes.
    ///
    /// # Errors
    /// An element cannot be read, a body is too long, the budget has no room for it, or the time is
    /// over.
    pub(super) fn requests(
        self,
        signature: &Signature,
        limit: usize,
        budget: &Arc<ByteBudget>,
        time: TimeLeft,
    ) -> Result<Vec<Request>, Problem> {
        match (&signature.inputs, &self.inputs[..]) {
            (Inputs::Body(form), [input]) => bodies(form, input, limit, budget, time),
            (Inputs::Body(_), _) => Err(invalid("the pipeline has one input".into())),
            (Inputs::Members(forms), inputs) => {
                let members = forms.iter().zip(inputs);
                let mut members: Vec<_> = members
                    .map(|(form, input)| Member::of(form, input))
                    .collect::<Result<_, _>>()?;
                let mut requests = Vec::with_capacity(self.count);
                for row in 0..self.count {
                    time.check()?;
                    let body = json_body(&mut members, JsonBody::new(limit, budget));
                    requests.push(Request {
                        content_type: Some("application/json".into()),
                        body: body.map_err(|problem| in_row(problem, row, self.count))?,
                        ..Request::default()
                    });
                }
                members.iter().try_for_each(Member::ended)?;
                Ok(requests)
            }
        }
    }
}

fn invalid(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}

fn rows_of(input: &Input) -> usize {
    input.shape.first().copied().unwrap_or_default()
}

/// Check the datatype and the shape of an input.
fn check(input: &Input, info: &TensorInfo) -> Result<(), Problem> {
    let (name, datatype, wanted) = (&input.name, input.datatype, info.dtype);
    if datatype != wanted {
        return Err(invalid(format!(
            "input {name:?} has datatype {datatype}: the pipeline takes {wanted}"
        )));
    }
    let fits = |(size, dim): (&usize, &Option<usize>)| dim.is_none_or(|dim| dim == *size);
    if input.shape.len() != info.dims.len() || !input.shape.iter().zip(&info.dims).all(fits) {
        let (shape, wanted) = (&input.shape[..], info.shape_text());
        return Err(invalid(format!(
            "input {name:?} has shape {shape:?}: the pipeline takes {wanted}"
        )));
    }
    Ok(())
}

/// Check that an input that is a value of a JSON object has no parameters of a body.
fn check_parameters(input: &Input) -> Result<(), Problem> {
    let PipelineParameters { content_type, query } = &input.parameters;
    let given_members = [("content_type", content_type.is_some()), ("query", query.is_some())];
    match given_members.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((parameter, _)) => Err(invalid(format!(
            "input {:?} has the parameter {parameter:?}, which is for an input that is the body: \
             this one becomes a value of a JSON object; leave the parameter out",
            input.name
        ))),
    }
}

/// The requests whose bodies are the elements of one input.
fn bodies(
    form: &BodyInput,
    input: &Input,
    limit: usize,
    budget: &Arc<ByteBudget>,
    time: TimeLeft,
) -> Result<Vec<Request>, Problem> {
    let PipelineParameters { content_type, query: parameters } = &input.parameters;
    let content_type = content_type.as_deref().or(form.content_type.as_deref()).map(media_type);
    let parameters = parameters.as_deref().map(query).unwrap_or_default();
    let (texts, name) = (input.texts()?, &input.name);
    let count = texts.len();
    let mut requests = Vec::with_capacity(count);
    for (row, text) in texts.into_iter().enumerate() {
        time.check()?;
        let body = match form.is_base64 {
            true => decoded(name, &text, budget).map_err(|error| in_row(error, row, count))?,
            false => text,
        };
        if body.len() > limit {
            let detail = format!("input {name:?} is over the pipeline's limit of {limit} bytes");
            return Err(in_row(Problem::new(ErrorCode::BodyTooLarge, detail), row, count));
        }
        requests.push(Request {
            content_type: content_type.clone(),
            query: parameters.clone(),
            body,
            ..Request::default()
        });
    }
    Ok(requests)
}

fn decoded(name: &str, text: &[u8], budget: &Arc<ByteBudget>) -> Result<Bytes, Problem> {
    let wrong = |why: &str| invalid(format!("input {name:?}: {why}"));
    let text = std::str::from_utf8(text).map_err(|_| wrong("it is not a text in base64"))?;
    let (held, most) = (budget.hold(0), base64_bytes_max(text.len()));
    held.try_add(most)?;
    let Ok(decoded) = decode_base64(text, || Ok::<_, Infallible>(()));
    let mut bytes = decoded.map_err(|why| wrong(&why))?;
    // White space made room that nothing fills.
    bytes.shrink_to_fit();
    held.give_back(most - bytes.len());
    Ok(held.attach_to(bytes.into()))
}

/// An input that is a value of a JSON object. It is read row by row.
struct Member<'a> {
    name: &'a str,
    key: &'a str,
    dims: Vec<usize>,
    datatype: Dtype,
    elements: Elements<'a>,
}

/// The elements that were not read yet.
enum Elements<'a> {
    Texts(Texts<'a>),
    /// Numbers or booleans of so many bytes.
    Fixed(std::slice::ChunksExact<'a, u8>),
}

impl<'a> Member<'a> {
    fn of(form: &'a MemberInput, input: &'a Input) -> Result<Self, Problem> {
        let (name, datatype, data) = (&*input.name, input.datatype, &input.data[..]);
        let elements = match datatype.size_bytes() {
            None => Elements::Texts(Texts::of(data)),
            Some(size) => {
                let count = input.shape.iter().fold(1_usize, |all, dim| all.saturating_mul(*dim));
                let (bytes, expected) = (data.len(), count.saturating_mul(size));
                if bytes != expected {
                    let shape = &input.shape[..];
                    return Err(invalid(format!(
                        "input {name:?} has {bytes} bytes: {datatype} of shape {shape:?} needs \
                         {expected}"
                    )));
                }
                Elements::Fixed(data.chunks_exact(size))
            }
        };
        Ok(Self { name, key: &form.key, dims: row_dims(&form.info), datatype, elements })
    }

    /// Write the next row.
    fn write(&mut self, out: &mut JsonBody) -> Result<(), Problem> {
        let Self { name, dims, datatype, elements, .. } = self;
        let mut element = |out: &mut JsonBody| match elements {
            Elements::Texts(texts) => {
                let text = texts.next().and_then(Result::ok).ok_or_else(too_few)?;
                let wrong = |_| invalid("a text is not UTF-8".into());
                out.text(std::str::from_utf8(text).map_err(wrong)?)
            }
            Elements::Fixed(elements) => {
                let element = elements.next().ok_or_else(too_few)?;
                out.number(*datatype, element)
            }
        };
        out.lists(dims, &mut element).map_err(|mut problem| {
            problem.detail.insert_str(0, &format!("input {name:?}: "));
            problem
        })
    }

    /// Check that there are no more elements.
    fn ended(&self) -> Result<(), Problem> {
        match &self.elements {
            Elements::Texts(texts) if !texts.rest().is_empty() => {
                let name = self.name;
                Err(invalid(format!("input {name:?} has more elements than its shape needs")))
            }
            _ => Ok(()),
        }
    }
}

fn too_few() -> Problem {
    invalid("it has fewer elements than its shape needs".into())
}

/// The JSON object with the next row of all inputs.
fn json_body(members: &mut [Member<'_>], mut out: JsonBody) -> Result<Bytes, Problem> {
    for (index, member) in members.iter_mut().enumerate() {
        out.push(if index == 0 { b"{" } else { b"," })?;
        out.text(member.key)?;
        out.push(b":")?;
        member.write(&mut out)?;
    }
    out.push(b"}")?;
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_base64_leaves_out_takes_no_memory() {
        let budget = ByteBudget::new(1 << 20);
        let text = format!("{}TQ==", " ".repeat(100_000));
        let body = decoded("A", text.as_bytes(), &budget).unwrap();
        assert_eq!((&body[..], budget.held()), (&b"M"[..], 1));
        drop(body);
        assert_eq!(budget.held(), 0);
        let refused = decoded("A", " ".repeat(2 << 20).as_bytes(), &budget).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TenantBusy);
    }
}
