//! The deeds of the plugin `hostile`, the ends that each may have, and the images for it.

/// The end of a request: a status and a code. The code is empty if the plugin answered.
pub(crate) type End = (u16, &'static str);

pub(crate) const HARMLESS: End = (200, "");
pub(crate) const REFUSED: End = (422, "unprocessable");
pub(crate) const TIMEOUT: End = (504, "plugin_timeout");
pub(crate) const LATE: End = (504, "deadline_exceeded");
pub(crate) const OUT_OF_MEMORY: End = (500, "plugin_out_of_memory");
pub(crate) const TRAPPED: End = (500, "plugin_trapped");
pub(crate) const FAILED: End = (500, "plugin_failed");
pub(crate) const INVALID: End = (500, "plugin_invalid_output");
const INVALID_REQUEST: End = (400, "invalid_request");

/// The deeds that tests may also do at the same time, with the ends of each when it is alone. The
/// machine decides which limit a deed reaches first.
pub(crate) const SIMULTANEOUS: [(&str, &[End]); 36] = [
    ("trap", &[TRAPPED]),
    ("post-trap", &[TRAPPED]),
    ("panic", &[TRAPPED]),
    ("loop", &[TIMEOUT]),
    ("post-loop", &[TIMEOUT]),
    ("recurse", &[TRAPPED]),
    ("eat-memory", &[OUT_OF_MEMORY, TIMEOUT]),
    ("eat-handles", &[OUT_OF_MEMORY, TIMEOUT]),
    ("eat-host-memory", &[OUT_OF_MEMORY, TIMEOUT]),
    ("huge-tensor", &[FAILED]),
    ("flood-log", &[HARMLESS, TIMEOUT]),
    ("long-error", &[INVALID_REQUEST, TIMEOUT]),
    ("internal-error", &[FAILED]),
    ("wrong-name", &[INVALID]),
    ("wrong-dtype", &[INVALID]),
    ("wrong-shape", &[INVALID]),
    ("wrong-length", &[FAILED]),
    ("no-rows", &[INVALID]),
    ("no-inputs", &[INVALID]),
    ("bomb", &[REFUSED]),
    ("huge-response", &[INVALID, TIMEOUT]),
    ("bad-status", &[INVALID]),
    ("bad-header", &[INVALID]),
    ("remember", &[HARMLESS]),
    ("top-k", &[TIMEOUT, OUT_OF_MEMORY]),
    ("argmax", &[TIMEOUT, OUT_OF_MEMORY]),
    ("empty-strings", &[TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("fill-memory", &[TIMEOUT, OUT_OF_MEMORY]),
    ("large-tensors", &[TIMEOUT, OUT_OF_MEMORY]),
    ("many-dims", &[FAILED, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("long-name", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("resize-chain", &[REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY]),
    ("log-empty", &[HARMLESS, TIMEOUT, OUT_OF_MEMORY, TRAPPED, INVALID]),
    ("30000-headers", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("huge-headers", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("", &[HARMLESS]),
];

/// The other deeds with their ends.
const ALONE: [(&str, &[End]); 58] = [
    ("operations", &[HARMLESS]),
    ("join-often", &[OUT_OF_MEMORY]),
    ("join-much", &[FAILED]),
    ("join-for-ever", &[TIMEOUT, OUT_OF_MEMORY]),
    ("cast-for-ever", &[TIMEOUT, OUT_OF_MEMORY]),
    ("pad-much", &[REFUSED]),
    ("blob-bytes", &[TIMEOUT, OUT_OF_MEMORY]),
    ("blob-base64", &[TIMEOUT, OUT_OF_MEMORY]),
    ("blob-slices", &[TIMEOUT, OUT_OF_MEMORY]),
    ("blob-huge", &[TRAPPED, TIMEOUT]),
    ("json-read", &[TIMEOUT, OUT_OF_MEMORY]),
    ("json-write", &[TIMEOUT, OUT_OF_MEMORY]),
    ("json-lists", &[FAILED]),
    ("softmax", &[TIMEOUT, OUT_OF_MEMORY]),
    ("store-for-ever", &[TIMEOUT]),
    ("store-keys", &[HARMLESS]),
    ("asset-for-ever", &[TIMEOUT]),
    ("asset-names", &[HARMLESS]),
    ("table-for-ever", &[TIMEOUT]),
    ("table-keys", &[HARMLESS]),
    ("tensor-data", &[TIMEOUT, OUT_OF_MEMORY]),
    ("pixels-data", &[TIMEOUT, OUT_OF_MEMORY]),
    ("read-body", &[TIMEOUT, OUT_OF_MEMORY]),
    ("huge-shape-text", &[TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("resize-loop", &[TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("crop-loop", &[TIMEOUT, OUT_OF_MEMORY, REFUSED]),
    ("draw-loop", &[TIMEOUT, OUT_OF_MEMORY]),
    ("encode-loop", &[TIMEOUT, OUT_OF_MEMORY]),
    ("crop-huge", &[REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY]),
    ("draw-huge", &[REFUSED, TIMEOUT, OUT_OF_MEMORY]),
    ("encode-huge", &[REFUSED, TIMEOUT, LATE, OUT_OF_MEMORY]),
    ("tensors-huge", &[REFUSED, TIMEOUT, OUT_OF_MEMORY]),
    ("arrays-products", &[TIMEOUT, OUT_OF_MEMORY]),
    ("arrays-sort", &[TIMEOUT, OUT_OF_MEMORY]),
    ("arrays-boxes", &[TIMEOUT, OUT_OF_MEMORY]),
    ("arrays-steps", &[TIMEOUT, OUT_OF_MEMORY]),
    ("arrays-huge", &[FAILED]),
    ("arrays-hold", &[TIMEOUT, OUT_OF_MEMORY]),
    ("touch-memory", &[TIMEOUT, OUT_OF_MEMORY]),
    ("hold-tensors", &[TIMEOUT, OUT_OF_MEMORY]),
    ("many-dims-held", &[FAILED, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("many-inputs", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("resize-long", &[REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY]),
    ("resize-sides", &[HARMLESS, REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY]),
    ("thumbnail", &[HARMLESS]),
    ("log-short", &[HARMLESS, TIMEOUT, OUT_OF_MEMORY, TRAPPED, INVALID]),
    ("log-control", &[HARMLESS, TIMEOUT, OUT_OF_MEMORY, TRAPPED, INVALID]),
    ("log-fields", &[HARMLESS, TIMEOUT, OUT_OF_MEMORY, TRAPPED, INVALID]),
    ("log-empty-fields", &[HARMLESS, TIMEOUT, OUT_OF_MEMORY, TRAPPED, INVALID]),
    ("20000-headers", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("40000-headers", &[INVALID, TIMEOUT, OUT_OF_MEMORY, TRAPPED]),
    ("bad-content-type", &[INVALID, OUT_OF_MEMORY, TRAPPED]),
    ("huge-content-type", &[INVALID, OUT_OF_MEMORY, TRAPPED]),
    ("huge-state", &[INVALID, OUT_OF_MEMORY, TRAPPED]),
    ("large-state", &[HARMLESS]),
    ("redirect-headers", &[HARMLESS]),
    ("spin&rounds=1000", &[HARMLESS]),
    ("spin&rounds=1000000000000", &[TIMEOUT]),
];

/// The ends that a deed may have.
pub(crate) fn ends_of(deed: &str) -> &'static [End] {
    let entry = SIMULTANEOUS.iter().chain(&ALONE).find(|(other, _)| *other == deed);
    entry.unwrap_or_else(|| panic!("there is no deed {deed:?}")).1
}

/// The header of a BMP of 65,535 x 65,535 pixels, without the pixels.
pub(crate) fn bomb_picture() -> Vec<u8> {
    bmp(65_535, &[])
}

/// A BMP of one white pixel.
pub(crate) fn small_picture() -> Vec<u8> {
    bmp(1, &[255, 255, 255, 0])
}

fn bmp(side: u32, pixels: &[u8]) -> Vec<u8> {
    let mut picture = b"BM".to_vec();
    let fields = [54 + pixels.len() as u32, 0, 54, 40, side, side];
    picture.extend(fields.map(u32::to_le_bytes).as_flattened());
    // One plane of 24 bits a pixel, uncompressed.
    picture.extend([1, 0, 24, 0]);
    picture.extend([0; 24]);
    picture.extend(pixels);
    picture
}
