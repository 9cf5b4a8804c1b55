//! Numbers without an exponent, eight digits at a time.

/// An `i64` can hold every number with this many digits.
const DIGITS_MAX: usize = 18;

/// The digits that are read at once.
const WORD: usize = 8;

const POWERS: [i64; WORD + 1] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const FLOAT_POWERS: [f64; DIGITS_MAX + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// A number as serde_json gives it to a visitor.
#[derive(Debug, PartialEq)]
pub(super) enum Number {
    Unsigned(u64),
    Negative(i64),
    Float(f64),
}

/// The number with which `json` begins, and its length. None if it has an exponent or more than
/// [`DIGITS_MAX`] digits, is `-0`, or is not a number.
pub(super) fn leading(json: &[u8]) -> Option<(Number, usize)> {
    let is_negative = json.first() == Some(&b'-');
    let begin = usize::from(is_negative);
    let (whole, after_whole) = digits(json, begin, 0);
    let whole_digits = after_whole - begin;
    // JSON has no numbers like 007.
    if whole_digits == 0 || whole_digits > 1 && json[begin] == b'0' {
        return None;
    }
    let (significand, end, decimals) = match json.get(after_whole) {
        Some(b'.') => {
            let (significand, end) = digits(json, after_whole + 1, whole);
            (significand, end, Some(end - after_whole - 1))
        }
        _ => (whole, after_whole, None),
    };
    let is_exponent = matches!(json.get(end), Some(b'e' | b'E'));
    if is_exponent || decimals == Some(0) || whole_digits + decimals.unwrap_or(0) > DIGITS_MAX {
        return None;
    }
    let number = match (decimals, is_negative) {
        (Some(decimals), _) => {
            // The same operations as serde_json's, so the same value.
            let value = significand as f64 / FLOAT_POWERS[decimals];
            Number::Float(if is_negative { -value } else { value })
        }
        (None, false) => Number::Unsigned(whole.unsigned_abs()),
        // serde_json makes a float of it.
        (None, true) if whole == 0 => return None,
        (None, true) => Number::Negative(-whole),
    };
    Some((number, end))
}

/// The number at `at`, if it has one digit, a point and one to seven digits, which is the usual
/// form of a feature. Then `at` becomes the place after it.
#[inline]
pub(super) fn short_float(json: &[u8], at: &mut usize) -> Option<f64> {
    let is_negative = json.get(*at) == Some(&b'-');
    let begin = *at + usize::from(is_negative);
    let [whole @ b'0'..=b'9', b'.', decimals @ ..] = json.get(begin..begin + 2 + WORD)? else {
        return None;
    };
    let decimals = u64::from_le_bytes(*decimals.first_chunk()?);
    let (value, count) = leading_digits(decimals);
    // With eight digits there may be more.
    if count == 0 || count == WORD || matches!(json[begin + 2 + count], b'e' | b'E') {
        return None;
    }
    *at = begin + 2 + count;
    let significand = i64::from(whole - b'0') * POWERS[count] + value;
    let value = significand as f64 / FLOAT_POWERS[count];
    Some(if is_negative { -value } else { value })
}

/// The digits from `at` on, behind those of `value`, and the place after them. With more than
/// [`DIGITS_MAX`] digits the value is wrong.
fn digits(json: &[u8], mut at: usize, mut value: i64) -> (i64, usize) {
    while let Some(word) = json.get(at..).and_then(|rest| rest.first_chunk::<WORD>()) {
        let (digits, count) = leading_digits(u64::from_le_bytes(*word));
        value = value.wrapping_mul(POWERS[count]).wrapping_add(digits);
        at += count;
        if count < WORD {
            return (value, at);
        }
    }
    while let Some(digit) = json.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    (value, at)
}

/// The value of the digits with which eight characters begin, and how many they are. The first
/// character is in the lowest byte.
#[inline]
fn leading_digits(characters: u64) -> (i64, usize) {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    // A byte over 9 gets its highest bit, from itself or from the sum. A carry only changes bytes
    // behind one that is over 9.
    const OVER_NINE: u64 = 0x7676_7676_7676_7676;
    const HIGHEST_BITS: u64 = 0x8080_8080_8080_8080;
    let values = characters ^ ZEROS;
    let others = (values.wrapping_add(OVER_NINE) | values) & HIGHEST_BITS;
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 {
        return (0, 0);
    }
    // Zeros take the places before the digits. Then neighbours are put together: to numbers of two
    // digits, of four, of eight.
    let aligned = values << (8 * (WORD - count));
    let twos = (aligned.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(1 + (10_000 << 32)) >> 32;
    (eight as i64, count)
}
