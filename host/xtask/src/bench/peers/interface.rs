//! The interfaces of the servers: how each takes a request, and where its answer is.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gristmill_client::{Answer, BinaryTensor, HEADER_LENGTH, infer_body};
use serde_json::{Value, json};

use crate::bench::loads::Load;

/// The boundary of the forms. No picture has it.
const BOUNDARY: &str = "gristmill-bench-peers";

#[derive(Clone, Copy)]
pub(super) enum Interface {
    /// The JSON or the JPEG is the body. The path has the service's name after this.
    Body { under: &'static str },
    /// The same, with the JPEG as a file of this name in a form.
    Form { file: &'static str },
    /// Small batches, here of one: the JSON in a list, the JPEG as a file of this name in a form,
    /// the answer in a list.
    Lists { files: &'static str },
    /// The Open Inference Protocol: the body is a tensor `body` of bytes, in binary, and the JSON
    /// of the answer is a tensor `answer`.
    BinaryTensor,
    /// The same in JSON, the body as base64.
    Base64Tensor,
}

/// A request, a POST.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Interface {
    pub(super) fn request(self, load: &Load) -> Result<Request> {
        let file = load.file();
        let body = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let (name, typed) = (load.model(), load.content_type().to_owned());
        let mut headers = Vec::new();
        let (path, content_type, body) = match self {
            Self::Form { file } | Self::Lists { files: file } if load.is_picture() => {
                let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
                (format!("/{name}"), content_type, form(file, &body))
            }
            Self::Body { under } => (format!("{under}/{name}"), typed, body),
            Self::Form { .. } => (format!("/{name}"), typed, body),
            Self::Lists { .. } => (format!("/{name}"), typed, [b"[", &body[..], b"]"].concat()),
            Self::BinaryTensor => {
                let data = [&u32::try_from(body.len())?.to_le_bytes(), &body[..]].concat();
                let shape = &[1, 1];
                let input = BinaryTensor { name: "body", datatype: "BYTES", shape, data: &data };
                let output = json!({ "name": "answer", "parameters": { "binary_data": true } });
                let sent = infer_body(&[input], json!({ "outputs": [output] }));
                headers.push((HEADER_LENGTH, sent.header_length));
                let content_type = "application/octet-stream".to_owned();
                (format!("/v2/models/{name}/infer"), content_type, sent.bytes.into())
            }
            Self::Base64Tensor => {
                let input = json!({
                    "name": "body",
                    "datatype": "BYTES",
                    "shape": [1, 1],
                    "parameters": { "content_type": "base64" },
                    "data": [BASE64.encode(&body)],
                });
                let document = json!({ "inputs": [input] }).to_string().into_bytes();
                (format!("/v2/models/{name}/infer"), "application/json".to_owned(), document)
            }
        };
        headers.push(("content-type", content_type));
        Ok(Request { path, headers, body })
    }

    /// The JSON that the service answers.
    ///
    /// # Errors
    /// The answer is not a success or has another form.
    pub(super) fn answer(self, answer: Answer) -> Result<Value> {
        let answer = answer.ok()?;
        let (begin, pointer) = match self {
            Self::Body { .. } | Self::Form { .. } => (0, ""),
            Self::Lists { .. } => (0, "/0"),
            // A text comes after its length, in four bytes.
            Self::BinaryTensor => (answer.header(HEADER_LENGTH).parse::<usize>()? + 4, ""),
            Self::Base64Tensor => (0, "/outputs/0/data/0"),
        };
        let other = || format!("another form of answer: {}", answer.beginning());
        let bytes = answer.body.get(begin..).with_context(other)?;
        let document: Value = serde_json::from_slice(bytes).with_context(other)?;
        match document.pointer(pointer).with_context(other)? {
            Value::String(text) => serde_json::from_str(text).with_context(other),
            value => Ok(value.clone()),
        }
    }
}

/// The body of a form with one file.
fn form(name: &str, photo: &[u8]) -> Vec<u8> {
    let before = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"photo.jpg\"\r\n\
         content-type: image/jpeg\r\n\r\n"
    );
    let after = format!("\r\n--{BOUNDARY}--\r\n");
    [before.as_bytes(), photo, after.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use gristmill_client::http::{HeaderMap, StatusCode};
    use gristmill_client::{Answer, HEADER_LENGTH};
    use serde_json::json;

    use super::Interface;
    use crate::bench::loads::PHOTOS;

    fn answer(headers: HeaderMap, body: &'static [u8]) -> Answer {
        Answer { status: StatusCode::OK, headers, body: body.into() }
    }

    #[test]
    fn an_answer_is_found_in_each_form() {
        let read = |interface: Interface, body| interface.answer(answer(HeaderMap::new(), body));
        let expected = json!({ "label": 7 });
        let body = Interface::Body { under: "" };
        assert_eq!(read(body, br#"{"label":7}"#).unwrap(), expected);
        let lists = Interface::Lists { files: "images" };
        assert_eq!(read(lists, br#"[{"label":7}]"#).unwrap(), expected);
        assert!(read(lists, br#"{"error":"no"}"#).is_err());
        let tensor = br#"{"outputs":[{"data":["{\"label\":7}"]}]}"#;
        assert_eq!(read(Interface::Base64Tensor, tensor).unwrap(), expected);

        let headers =
            HeaderMap::from_iter([(HEADER_LENGTH.parse().unwrap(), "2".parse().unwrap())]);
        let binary = answer(headers, b"{}\x0b\0\0\0{\"label\":7}");
        assert_eq!(Interface::BinaryTensor.answer(binary).unwrap(), expected);
    }

    #[test]
    fn a_binary_request_has_the_picture_after_its_header_and_length() {
        let request = Interface::BinaryTensor.request(&PHOTOS).unwrap();
        let header: usize = request.headers[0].1.parse().unwrap();
        let photo = std::fs::read(PHOTOS.file()).unwrap();
        assert_eq!(request.body[header..header + 4], (photo.len() as u32).to_le_bytes());
        assert_eq!(request.body[header + 4..], photo);
    }
}
