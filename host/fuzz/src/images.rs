//! Pictures: any bytes, decoded and worked on as a plugin may ask for it.
//!
//! What must hold: an operation takes at most the memory that it said before, whether it succeeds
//! or not; a picture has no byte of what lay in its memory before; a decoder's panic is an error of
//! that picture.
//!
//! The sum of the bytes chooses the options, so that a kept input is a file as any other program
//! reads it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use gristmill_core::{BufferPool, Dtype, POISON};
use gristmill_imaging::{
    Border, Channels, Cost, DecodeOptions, Encoded, Filter, ImageError, Layout, Limits, Pixels,
    Rect, Size, TensorOptions, Workspace,
};

use super::allocations::peak_during;

/// Small enough for some hundred pictures a second.
const LIMITS: Limits = Limits { pixels_max: 1 << 18, side_max: 1 << 13 };

/// A picture that says it needs more is refused, as a plugin's call would be.
const COST_BYTES_MAX: usize = 64 << 20;

/// The memory that texts of errors and panics may take besides the announced memory.
const SLACK_BYTES: usize = 64 << 10;

/// Bytes that another owner left in the pool.
const SECRET: &[u8; 8] = b"\xf3secret\x9b";

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A panic hook that keeps quiet: a panic that leaves the target is printed there.
pub fn remember_panic(panic: &PanicHookInfo<'_>) {
    LAST_PANIC.with_borrow_mut(|last| *last = panic.to_string());
}

/// The target under libFuzzer: a panic that leaves [`work_on`] ends the process.
pub fn run(bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| work_on(bytes))).is_err() {
        LAST_PANIC.with_borrow(|last| eprintln!("{last}"));
        std::process::abort();
    }
}

/// Bits that choose how a picture is worked on.
struct Choices(usize);

impl Choices {
    /// A number less than `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let chosen = self.0 % limit;
        self.0 /= limit;
        chosen
    }

    fn is_so(&mut self) -> bool {
        self.below(2) == 1
    }

    /// A size of up to 64 x 64.
    fn size(&mut self) -> Size {
        Size { width: 1 + self.below(64) as u32, height: 1 + self.below(64) as u32 }
    }
}

/// Decode the picture and do everything with it.
pub fn work_on(bytes: &[u8]) {
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
    let mut choices = Choices(sum);
    // Memory that others used shows what is left unwritten. Fresh memory can be counted.
    let pool = if choices.is_so() { used_pool() } else { BufferPool::new(0) };
    let work = Workspace { pool: &pool, check: &|| Ok(()) };
    let options = DecodeOptions {
        gray: choices.is_so(),
        upright: choices.is_so(),
        before_0_3: choices.is_so(),
        lenient: choices.is_so(),
        limits: LIMITS,
    };
    let Ok(encoded) = Encoded::read(bytes, options, &|| Ok(())) else { return };
    let (size, filter) = (choices.size(), Filter::Bilinear);
    if let Ok(cost) = encoded.resized_cost(size, filter)
        && cost.bytes <= COST_BYTES_MAX
        && let Some(small) =
            within("decode_resized", cost, || encoded.decode_resized(work, size, filter))
    {
        assert_clean(small.data());
        assert_eq!(small.size(), size, "the picture has another size than asked for");
    }
    let cost = encoded.cost();
    if cost.bytes > COST_BYTES_MAX {
        return;
    }
    let Some(pixels) = within("decode", cost, || encoded.decode(work)) else { return };
    assert_clean(pixels.data());
    assert_eq!(pixels.is_gray(), options.gray, "the picture has other channels than asked for");
    make_more(&pixels, work, &mut choices);
}

/// Everything that a plugin can make of a picture.
fn make_more(pixels: &Pixels, work: Workspace<'_>, choices: &mut Choices) {
    let size = choices.size();
    let filters = [Filter::Nearest, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos3];
    let filter = filters[choices.below(4)];
    if let Ok(cost) = pixels.resize_cost(size, filter, LIMITS) {
        within("resize", cost, || pixels.resize(work, size, filter, LIMITS));
    }
    let part = Rect { x: choices.below(64) as u32, y: choices.below(64) as u32, size };
    if let Ok(cost) = pixels.crop_cost(part) {
        within("crop", cost, || pixels.crop(work, part));
    }
    let boxed = pixels.size().letterboxed(size);
    let inner = boxed.inner;
    assert!(inner.width <= size.width && inner.height <= size.height, "{boxed:?} of {size:?}");
    let border = Border { left: choices.below(64) as u32, ..boxed.border };
    if let Ok(cost) = pixels.pad_cost(border, &[], LIMITS) {
        within("pad", cost, || pixels.pad(work, border, &[], LIMITS));
    }
    let channels = [Channels::Rgb, Channels::Bgr, Channels::Gray][choices.below(3)];
    let layout = [Layout::Nchw, Layout::Nhwc][choices.below(2)];
    let dtype = [Dtype::Float32, Dtype::Uint8][choices.below(2)];
    let (mean, std) = (Vec::new(), Vec::new());
    let options = TensorOptions { dtype, layout, channels, scale: 1.0, mean, std };
    if let Ok(cost) = pixels.to_tensor_cost(&options) {
        within("to_tensor", cost, || pixels.to_tensor(work, &options));
    }
}

/// The result of an operation, which may not take more than its cost said.
fn within<T>(
    what: &str,
    cost: Cost,
    operation: impl FnOnce() -> Result<T, ImageError>,
) -> Option<T> {
    let (result, peak) = peak_during(operation);
    let said_bytes = cost.bytes;
    assert!(peak <= said_bytes + SLACK_BYTES, "{what} took {peak} bytes, and said {said_bytes}");
    result.ok()
}

/// A pool in which another left buffers of all sizes that a small picture can have.
fn used_pool() -> BufferPool {
    let pool = BufferPool::new(4 << 20);
    let secrets: Vec<_> =
        (6..20).map(|bits| pool.copy_from(&SECRET.repeat(1 << (bits - 3)))).collect();
    drop(secrets);
    pool
}

fn assert_clean(pixels: &[u8]) {
    for leftover in [&SECRET[..], &POISON] {
        let found = memchr::memmem::find(pixels, leftover);
        assert_eq!(found, None, "the picture has another owner's bytes");
    }
}
