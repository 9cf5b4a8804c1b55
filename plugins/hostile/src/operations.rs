//! Not hostile: does everything that the contract offers for blobs, tensors and pictures, and
//! compares. A difference is a panic, whose text says what was found.
//!
//! The deeds `join-..` and `pad-..` then ask for too much.

use gristmill_plugin::image::{Border, ChannelStatistics, Color, Filter, ImageError, Pixels};
use gristmill_plugin::{Blob, BlobError, Dtype, Failure, Prepared, Tensor, TensorError};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("operations", |_| {
        tensors()?;
        strings()?;
        pictures()?;
        blobs()?;
        harmless()
    }),
    ("join-often", |_| {
        let one = Tensor::from_slice(&[1], &[0_u8])?;
        Ok(Prepared::new().input("input", Tensor::concat(&vec![&one; 1_000_000], 0)?))
    }),
    ("join-much", |_| {
        let one = Tensor::from_slice(&[1 << 20], &vec![0_u8; 1 << 20])?;
        Ok(Prepared::new().input("input", Tensor::stack(&[&one; 40], 0)?))
    }),
    ("join-for-ever", |_| {
        let one = Tensor::from_slice(&[1 << 20, 1], &vec![0_u8; 1 << 20])?;
        loop {
            drop(Tensor::concat(&[&one; 16], 1)?);
        }
    }),
    ("cast-for-ever", |_| {
        let one = Tensor::from_slice(&[4 << 20], &vec![0_u8; 4 << 20])?;
        loop {
            drop(one.cast(Dtype::Float32)?);
        }
    }),
    ("pad-much", |_| {
        let border = Border { left: u32::MAX, top: 1, right: 1, bottom: 1 };
        gray(1, 1, &[1])?.pad(border, &[])?;
        harmless()
    }),
];

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) {
    assert!(found == expected, "{what}: {found:?}, not {expected:?}");
}

fn tensors() -> Result<(), Failure> {
    let one = Tensor::from_slice(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
    let other = Tensor::from_slice(&[2, 1], &[5.0_f32, -6.7])?;
    let joined = Tensor::concat(&[&one, &other], 1)?;
    same("concat", joined.dims(), vec![2, 3]);
    same("concat", joined.view::<f32>()?.as_slice(), &[1.0, 2.0, 5.0, 3.0, 4.0, -6.7]);
    let stacked = Tensor::stack(&[&one, &one], 1)?;
    same("stack", stacked.dims(), vec![2, 2, 2]);
    let rows = stacked.view::<f32>()?;
    same("stack", rows.as_slice(), &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    let column = joined.slice(1, 1, 3)?;
    same("slice", column.view::<f32>()?.as_slice(), &[2.0, 5.0, 4.0, -6.7]);
    let row = joined.slice(0, 1, 2)?;
    same("slice", row.view::<f32>()?.as_slice(), &[3.0, 4.0, -6.7]);
    same("cast", row.cast(Dtype::Int8)?.view::<i8>()?.as_slice(), &[3, 4, -6]);
    same("cast", row.cast(Dtype::Uint64)?.view::<u64>()?.as_slice(), &[3, 4, 0]);
    same("cast", row.cast(Dtype::Bool)?.view::<bool>()?.as_slice(), &[true; 3]);
    let refused = |made: Result<Tensor, TensorError>| match made {
        Err(TensorError::InvalidArgument(text)) => text,
        other => panic!("not refused: {:?}", other.map(|tensor| tensor.dims())),
    };
    let unlike = "tensor 1 has shape [2, 1], which does not fit [2, 2] of tensor 0";
    same("concat", refused(Tensor::concat(&[&one, &other], 0)).as_str(), unlike);
    same("stack", refused(Tensor::stack(&[&one, &other], 0)).as_str(), unlike);
    same("concat", refused(Tensor::concat(&[], 0)).contains("at least one"), true);
    same("slice", refused(one.slice(2, 0, 1)).contains("axis is 2"), true);
    same("slice", refused(one.slice(1, 1, 3)).contains("1 to 3"), true);
    Ok(())
}

fn strings() -> Result<(), Failure> {
    let one = Tensor::from_strings(&[2], &["a", "bcd"])?;
    let other = Tensor::from_strings(&[1], &[""])?;
    let joined = Tensor::concat(&[&one, &other], 0)?;
    same("strings", joined.strings()?, vec!["a".to_owned(), "bcd".into(), String::new()]);
    same("strings", joined.slice(0, 1, 2)?.strings()?, vec!["bcd".to_owned()]);
    same("strings", one.cast(Dtype::Int8).is_err(), true);
    Ok(())
}

fn blobs() -> Result<(), Failure> {
    let blob = Blob::from_bytes(b"0123456789");
    same("from-bytes", (blob.len(), blob.bytes()), (10, b"0123456789".to_vec()));
    same("slice", blob.slice(2, 3).bytes(), b"234".to_vec());
    same("slice", blob.slice(2, u64::MAX).slice(6, u64::MAX).bytes(), b"89".to_vec());
    same("slice", blob.slice(u64::MAX, u64::MAX).len(), 0);
    for text in ["TWFu", " TW\r\nFu", "data:image/png;base64,TWFu"] {
        same("from-base64", Blob::from_base64(text)?.bytes(), b"Man".to_vec());
    }
    let refused = match Blob::from_base64("TW*u") {
        Err(BlobError::InvalidBase64(text)) => text,
        Ok(blob) => panic!("not refused: {:?}", blob.bytes()),
    };
    same("from-base64", refused.as_str(), "base64 has '*' at position 2");
    let million = Blob::from_base64(&"AAAA".repeat(1_000_000))?;
    same("from-base64", million.len(), 3_000_000);
    Ok(())
}

fn gray(width: u32, height: u32, data: &[u8]) -> Result<Pixels, ImageError> {
    Pixels::from_bytes(width, height, Color::Gray, data)
}

fn pictures() -> Result<(), Failure> {
    let picture = gray(2, 1, &[10, 20])?;
    let border = Border { left: 1, top: 1, right: 0, bottom: 0 };
    let padded = picture.pad(border, &[7])?;
    same("pad", padded.data(), vec![7, 7, 7, 7, 10, 20]);
    let boxed = picture.letterbox(4, 4, Filter::Nearest, &[0])?;
    same("letterbox", (boxed.pixels.width(), boxed.pixels.height()), (4, 4));
    let rows = boxed.pixels.data();
    same("letterbox", &rows[..8], &[0, 0, 0, 0, 10, 10, 20, 20]);
    let back = boxed.placement.to_original([0.0, 1.0, 4.0, 3.0]);
    same("letterbox", back, [0.0, 0.0, 2.0, 1.0]);
    let larger = picture.resize_shorter(3, Filter::Nearest)?;
    same("resize-shorter", (larger.width(), larger.height()), (6, 3));
    let luma = ChannelStatistics { min: 10, max: 20, mean: 15.0 };
    same("statistics", picture.statistics(), vec![luma]);
    let coloured = Pixels::from_bytes(2, 1, Color::Rgb, &[0, 51, 255, 1, 2, 3])?.statistics();
    let of = |min, max, mean| ChannelStatistics { min, max, mean };
    same("statistics", coloured, vec![of(0, 1, 0.5), of(2, 51, 26.5), of(3, 255, 129.0)]);
    same("from-bytes", gray(2, 2, &[1, 2, 3]).is_err(), true);
    same("pad", picture.pad(border, &[1, 2]).is_err(), true);
    same("letterbox", picture.letterbox(0, 4, Filter::Nearest, &[]).is_err(), true);
    Ok(())
}
