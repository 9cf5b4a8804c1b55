//! Making failures: from texts, and with `?` from the errors of Rust's standard library, JSON,
//! tensors and pictures. A handler's error is made from all of these, too, and from an error of a
//! model.

use std::array::TryFromSliceError;
use std::char::ParseCharError;
use std::error::Error;
use std::num::{ParseFloatError, ParseIntError, TryFromIntError};
use std::str::{ParseBoolError, Utf8Error};
use std::string::FromUtf8Error;
use std::{fmt, io};

use crate::assets::AssetError;
use crate::bindings::image::ImageError;
use crate::store::StoreError;
use crate::tables::TableError;
use crate::tokenizer::TokenizerError;
use crate::{BlobError, Failure, HandleError, InferError, JsonError, TensorError};

impl Failure {
    /// The request cannot be understood: 400 with `text`.
    pub fn invalid_input(text: impl Into<String>) -> Self {
        Self::InvalidInput(text.into())
    }

    /// This plugin does not take the request's media type: 415 with `text`.
    pub fn unsupported_media_type(text: impl Into<String>) -> Self {
        Self::UnsupportedMediaType(text.into())
    }

    /// The request is understood, but cannot be served: 422 with `text`.
    pub fn unprocessable(text: impl Into<String>) -> Self {
        Self::Unprocessable(text.into())
    }

    /// The plugin's own fault: 500, with `text` in the host's log only.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::Internal(text.into())
    }
}

impl From<Failure> for HandleError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// The client gets what it would get from a pipeline without a handler.
impl From<InferError> for HandleError {
    fn from(error: InferError) -> Self {
        Self::Infer(error)
    }
}

/// In a handler, the failure that the error makes elsewhere. One impl for all errors that make a
/// failure would overlap with that of [`InferError`].
macro_rules! failures_of_handlers {
    ($($error:ty,)*) => {$(
        impl From<$error> for HandleError {
            fn from(error: $error) -> Self {
                Self::Failure(error.into())
            }
        }
    )*};
}

/// The client's fault, with the words before the error's own text.
macro_rules! invalid_input {
    ($($error:ty: $words:literal,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::InvalidInput(format!("{}: {error}", $words))
            }
        }
    )*
        failures_of_handlers! { $($error,)* }
    };
}

/// The plugin's own fault.
macro_rules! internal {
    ($($error:ty,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Internal(error.to_string())
            }
        }
    )*
        failures_of_handlers! { $($error,)* }
    };
}

invalid_input! {
    serde_json::Error: "invalid JSON",
    ParseIntError: "invalid integer",
    ParseFloatError: "invalid number",
    ParseBoolError: "invalid boolean",
    ParseCharError: "invalid character",
    Utf8Error: "invalid text",
    FromUtf8Error: "invalid text",
}

internal! {
    TryFromIntError,
    TryFromSliceError,
    fmt::Error,
    io::Error,
    Box<dyn Error>,
    Box<dyn Error + Send + Sync>,
}

failures_of_handlers! {
    TensorError,
    BlobError,
    JsonError,
    ImageError,
    StoreError,
    AssetError,
    TokenizerError,
    TableError,
}

/// A tensor that cannot be made is the plugin's fault.
impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Self {
        Self::Internal(match error {
            TensorError::LengthMismatch(lengths) => format!(
                "tensor data is {} bytes long, but dtype and shape need {}",
                lengths.actual, lengths.expected
            ),
            TensorError::TooLarge(text)
            | TensorError::InvalidElement(text)
            | TensorError::InvalidArgument(text) => text,
        })
    }
}

/// A store that gives no answer is not the client's fault.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.text().to_owned())
    }
}

/// A file that is missing is the plugin's or the pipeline's fault.
impl From<AssetError> for Failure {
    fn from(error: AssetError) -> Self {
        Self::Internal(error.text().to_owned())
    }
}

/// Texts that are too long are the client's fault; a wrong file is the plugin's.
impl From<TokenizerError> for Failure {
    fn from(error: TokenizerError) -> Self {
        match error {
            TokenizerError::TooLarge(text) => Self::Unprocessable(text),
            other => Self::Internal(other.text().to_owned()),
        }
    }
}

/// Keys that are too many are the client's fault; a wrong file is the plugin's or the pipeline's.
impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::TooLarge(text) => Self::Unprocessable(text),
            other => Self::Internal(other.text().to_owned()),
        }
    }
}

/// A text that is not in base64 is the client's fault.
impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        let BlobError::InvalidBase64(text) = error;
        Self::InvalidInput(text)
    }
}

/// A body that is not the JSON that was asked for is the client's fault; a wrong pointer is the
/// plugin's.
impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::InvalidJson(text) => Self::InvalidInput(text),
            JsonError::InvalidArgument(text) => Self::Internal(text),
        }
    }
}

/// A picture that cannot be read is the client's fault; a wrong argument is the plugin's.
impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::UnknownFormat => {
                Self::UnsupportedMediaType("not a JPEG, PNG, WebP, BMP or GIF".into())
            }
            ImageError::Malformed(text) => Self::InvalidInput(format!("malformed image: {text}")),
            ImageError::TooLarge(text) => Self::Unprocessable(text),
            ImageError::InvalidArgument(text) => Self::Internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::image::ImageError;
    use crate::{Blob, Dtype, Failure, HandleError, InferError, Tensor, testing};

    fn failure<T>(body: impl FnOnce() -> Result<T, Failure>) -> Failure {
        body().err().unwrap()
    }

    #[test]
    fn what_a_client_can_cause_is_its_fault() {
        assert_eq!(
            failure(|| Ok("x".parse::<u8>()?)),
            Failure::invalid_input("invalid integer: invalid digit found in string")
        );
        let faults = [
            failure(|| Ok("x".parse::<f32>()?)),
            failure(|| Ok("x".parse::<bool>()?)),
            failure(|| Ok("xy".parse::<char>()?)),
            failure(|| Ok(std::str::from_utf8(&vec![0xff])?.len())),
            failure(|| Ok(String::from_utf8(vec![0xff])?)),
            failure(|| Ok(serde_json::from_str::<u8>("x")?)),
            failure(|| Err::<(), _>(ImageError::Malformed("cut".into()).into())),
            failure(|| Ok(Blob::from_base64("%")?)),
        ];
        for fault in faults {
            assert!(matches!(fault, Failure::InvalidInput(_)), "{fault:?}");
        }
    }

    #[test]
    fn other_errors_are_the_plugins_own() {
        let boxed = || -> Result<(), Box<dyn std::error::Error>> { Err("as told".into()) };
        assert_eq!(failure(|| Ok(boxed()?)), Failure::internal("as told"));
        let faults = [
            failure(|| Ok(u8::try_from(300)?)),
            failure(|| Ok(<[u8; 2]>::try_from(&[1_u8][..])?)),
            failure(|| Err::<(), _>(std::fmt::Error.into())),
            failure(|| Ok(std::io::Read::read_exact(&mut &[][..], &mut [0])?)),
        ];
        for fault in faults {
            assert!(matches!(fault, Failure::Internal(_)), "{fault:?}");
        }
    }

    #[test]
    fn a_handlers_error_is_made_from_all_of_them() {
        fn error<T>(body: impl FnOnce() -> Result<T, HandleError>) -> HandleError {
            body().err().unwrap()
        }

        let own = Failure::unprocessable("as told");
        assert_eq!(error(|| Err::<(), _>(own.clone().into())), HandleError::Failure(own));
        let busy = InferError::Overloaded("as told".into());
        assert_eq!(error(|| Err::<(), _>(busy.clone().into())), HandleError::Infer(busy));
        let request = testing::request().body("[1, 2").build();
        let errors = [
            (error(|| Ok("x".parse::<u8>()?)), true),
            (error(|| Ok(serde_json::from_str::<u8>("x")?)), true),
            (error(|| Ok(request.json::<Vec<u8>>()?)), true),
            (error(|| Ok(request.json_tensor("", &[], Dtype::Uint8)?)), true),
            (error(|| Ok(Blob::from_base64("%")?)), true),
            (error(|| Err::<(), _>(ImageError::Malformed("cut".into()).into())), true),
            (error(|| Ok(Tensor::from_slice(&[2], &[1_u8])?)), false),
            (error(|| Ok(u8::try_from(300)?)), false),
        ];
        for (error, is_of_client) in errors {
            let HandleError::Failure(failure) = error else { panic!("{error:?}") };
            assert_eq!(matches!(failure, Failure::InvalidInput(_)), is_of_client, "{failure:?}");
        }
    }

    #[test]
    fn each_failure_has_a_constructor() {
        assert_eq!(Failure::invalid_input("a"), Failure::InvalidInput("a".into()));
        assert_eq!(Failure::unprocessable("a"), Failure::Unprocessable("a".into()));
        let other = Failure::unsupported_media_type("a");
        assert_eq!(other, Failure::UnsupportedMediaType("a".into()));
    }
}
