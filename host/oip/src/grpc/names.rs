//! The protocol's enumerations, which are numbers in gRPC and words in JSON.

use gristmill_core::Dtype;
use serde::Serializer;

use super::proto::DataType;
use super::proto::model_input::Format;
use super::proto::model_instance_group::Kind;
use super::proto::model_queue_policy::TimeoutAction;

pub(super) fn data_type<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    let data_type = DataType::try_from(*value).unwrap_or_default();
    serializer.serialize_str(data_type.as_str_name())
}

pub(super) fn format<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    let format = Format::try_from(*value).unwrap_or_default();
    serializer.serialize_str(format.as_str_name())
}

pub(super) fn instance_kind<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    let kind = Kind::try_from(*value).unwrap_or_default();
    serializer.serialize_str(kind.as_str_name())
}

pub(super) fn timeout_action<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    let action = TimeoutAction::try_from(*value).unwrap_or_default();
    serializer.serialize_str(action.as_str_name())
}

/// The element type's number in model configurations.
pub fn configured(dtype: Dtype) -> DataType {
    match dtype {
        Dtype::Bool => DataType::TypeBool,
        Dtype::Uint8 => DataType::TypeUint8,
        Dtype::Int8 => DataType::TypeInt8,
        Dtype::Uint16 => DataType::TypeUint16,
        Dtype::Int16 => DataType::TypeInt16,
        Dtype::Uint32 => DataType::TypeUint32,
        Dtype::Int32 => DataType::TypeInt32,
        Dtype::Uint64 => DataType::TypeUint64,
        Dtype::Int64 => DataType::TypeInt64,
        Dtype::Float16 => DataType::TypeFp16,
        Dtype::Bfloat16 => DataType::TypeBf16,
        Dtype::Float32 => DataType::TypeFp32,
        Dtype::Float64 => DataType::TypeFp64,
        Dtype::String => DataType::TypeString,
    }
}
