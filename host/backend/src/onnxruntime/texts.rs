//! Texts on their way to and from ONNX Runtime, as bytes that need not be UTF-8.
//!
//! `ort` has calls for UTF-8 only, and they hold each text three times. Here each is written at
//! once where ONNX Runtime keeps it, and read from there into the tensor.

#![expect(unsafe_code, reason = "calls of ONNX Runtime that `ort` does not wrap")]

use std::ptr::{self, NonNull};

use gristmill_core::{BufferPool, Dtype, ModelError, Tensor};
use ort::AsPointer;
use ort::memory::Allocator;
use ort::sys::{ONNXTensorElementDataType, OrtStatusPtr};
use ort::value::{DynValue, ValueType};

use super::run::failed;

/// A value of ONNX Runtime with these texts.
pub(super) fn value_of(tensor: &Tensor) -> Result<DynValue, ModelError> {
    let texts = tensor.texts().into_iter().flatten();
    filled(tensor.shape(), texts).map_err(failed)
}

fn filled<'a>(shape: &[usize], texts: impl Iterator<Item = &'a [u8]>) -> ort::Result<DynValue> {
    let shape: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
    let mut allocator = Allocator::default();
    let text_type = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    let mut value = ptr::null_mut();
    // SAFETY: the shape and the allocator, which is ONNX Runtime's own, outlive the call. It writes
    // the pointer.
    ok(unsafe {
        (ort::api().CreateTensorAsOrtValue)(
            allocator.ptr_mut(),
            shape.as_ptr(),
            shape.len(),
            text_type,
            &raw mut value,
        )
    })?;
    let value = NonNull::new(value).ok_or_else(|| ort::Error::new("no tensor was made"))?;
    // SAFETY: the tensor was made by this allocator just now, and nobody else has it.
    let mut value = unsafe { DynValue::from_ptr(value, Some(&allocator)) };
    for (index, text) in texts.enumerate() {
        let mut place = ptr::null_mut();
        // SAFETY: the value is a tensor of texts. The call fails if it has no such element, and
        // otherwise writes the pointer to so many bytes.
        ok(unsafe {
            (ort::api().GetResizedStringTensorElementBuffer)(
                value.ptr_mut(),
                index,
                text.len(),
                &raw mut place,
            )
        })?;
        // SAFETY: the text is not in the memory that ONNX Runtime has just made for it.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len()) };
    }
    Ok(value)
}

/// The tensor of the texts in `value`.
pub(super) fn tensor_of(value: &DynValue, pool: &BufferPool) -> Result<Tensor, ModelError> {
    let ValueType::Tensor { shape, .. } = value.dtype() else {
        return Err(ModelError::new("an output is no tensor"));
    };
    let elements = shape.num_elements();
    let shape = shape.iter().map(|size| *size as usize).collect();
    let mut len = 0;
    // SAFETY: the value is a tensor of texts, or the call fails. It writes the length.
    let measured = ok(unsafe { (ort::api().GetStringTensorDataLength)(value.ptr(), &raw mut len) });
    measured.map_err(failed)?;
    let mut buffer = pool.begin(len + elements * size_of::<u32>());
    let mut text = Vec::new();
    for index in 0..elements {
        read(value, index, &mut text).map_err(failed)?;
        buffer.append(&(text.len() as u32).to_le_bytes());
        buffer.append(&text);
    }
    Tensor::new(Dtype::String, shape, buffer.freeze()).map_err(failed)
}

/// Read the text of an element into `text`.
fn read(value: &DynValue, index: usize, text: &mut Vec<u8>) -> ort::Result<()> {
    let mut len = 0;
    // SAFETY: the call fails if the value has no such element, and otherwise writes the length.
    ok(unsafe { (ort::api().GetStringTensorElementLength)(value.ptr(), index, &raw mut len) })?;
    text.resize(len, 0);
    // SAFETY: the vector has so many bytes for the text.
    ok(unsafe {
        (ort::api().GetStringTensorElement)(value.ptr(), len, index, text.as_mut_ptr().cast())
    })
}

fn ok(status: OrtStatusPtr) -> ort::Result<()> {
    // SAFETY: the status was returned by ONNX Runtime just now, and is read once.
    unsafe { ort::Error::result_from_status(status) }
}
