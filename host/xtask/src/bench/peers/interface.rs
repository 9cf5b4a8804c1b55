//! The interfaces of the servers: how each takes a request, and where its answer is.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gristmill_client::{Answer, BinaryTensor, HEADER_LENGTH, infer_body};
use serde_json::{Value, json};

use super::service::Service;

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
    pub(super) fn request(self, service: Service) -> Result<Request> {
        let (name, body) = (service.name(), service.body()?);
        let typed = |path: String, content_type: &str, body: Vec<u8>| Request {
            path,
            headers: vec![("content-type", content_type.to_owned())],
            body,
        };
        Ok(match (self, service) {
            (Self::Body { under }, _) => {
                typed(format!("{under}/{name}"), service.content_type(), body)
            }
            (Self::Form { .. }, Service::Ranker) => {
                typed(format!("/{name}"), service.content_type(), body)
            }
            (Self::Lists { .. }, Service::Ranker) => {
                let list = [b"[", &body[..], b"]"].concat();
                typed(format!("/{name}"), service.content_type(), list)
            }
            (Self::Form { file } | Self::Lists { files: file }, Service::Photos) => {
                let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
                typed(format!("/{name}"), &content_type, form(file, &body))
            }
            (Self::BinaryTensor, _) => binary_tensor(name, &body)?,
            (Self::Base64Tensor, _) => {
                let input = json!({
                    "name": "body",
                    "datatype": "BYTES",
                    "shape": [1, 1],
                    "parameters": { "content_type": "base64" },
                    "data": [BASE64.encode(&body)],
                });
                let document = json!({ "inputs": [input] }).to_string().into_bytes();
                typed(format!("/v2/models/{name}/infer"), "application/json", document)
            }
        })
    }

    /// The JSON that the service answers.
    ///
    /// # Errors
    /// The answer is not a success or has another form.
    pub(super) fn answer(self, answer: Answer) -> Result<Value> {
        let answer = answer.ok()?;
        let json = |bytes: &[u8]| -> Result<Value> {
            let text = || format!("the answer is not JSON: {}", answer.beginning());
            serde_json::from_slice(bytes).with_context(text)
        };
        match self {
            Self::Body { .. } | Self::Form { .. } => json(&answer.body),
            Self::Lists { .. } => {
                let list = json(&answer.body)?;
                list.get(0).cloned().context("the answer is not a list of one")
            }
            Self::BinaryTensor => {
                let header: usize = answer.header(HEADER_LENGTH).parse()?;
                // A text comes after its length, in four bytes.
                let text = answer.body.get(header + 4..);
                json(text.context("the answer has no text after its header")?)
            }
            Self::Base64Tensor => {
                let document = json(&answer.body)?;
                let text = document["outputs"][0]["data"][0].as_str();
                json(text.context("the answer has no text in its output")?.as_bytes())
            }
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

fn binary_tensor(name: &str, body: &[u8]) -> Result<Request> {
    ensure!(u32::try_from(body.len()).is_ok(), "the body is too long");
    let data = [&(body.len() as u32).to_le_bytes(), body].concat();
    let input = BinaryTensor { name: "body", datatype: "BYTES", shape: &[1, 1], data: &data };
    let output = json!({ "name": "answer", "parameters": { "binary_data": true } });
    let sent = infer_body(&[input], json!({ "outputs": [output] }));
    Ok(Request {
        path: format!("/v2/models/{name}/infer"),
        headers: vec![
            ("content-type", "application/octet-stream".to_owned()),
            (HEADER_LENGTH, sent.header_length),
        ],
        body: sent.bytes.into(),
    })
}

#[cfg(test)]
mod tests {
    use gristmill_client::http::{HeaderMap, StatusCode};
    use gristmill_client::{Answer, HEADER_LENGTH};
    use serde_json::json;

    use super::{Interface, Service};

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
        let request = Interface::BinaryTensor.request(Service::Photos).unwrap();
        let header: usize = request.headers[1].1.parse().unwrap();
        let photo = Service::Photos.body().unwrap();
        assert_eq!(request.body[header..header + 4], (photo.len() as u32).to_le_bytes());
        assert_eq!(request.body[header + 4..], photo);
    }
}
