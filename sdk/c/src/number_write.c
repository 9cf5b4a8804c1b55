// Writing numbers: the shortest digits that give the same number again, by Giulietti's algorithm
// Schubfach ("The Schubfach way to render doubles", 2020), in the notation of Rust's serde_json.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

typedef struct {
    uint64_t digits;
    int exponent; // of ten
} decimal;

static inline int floor_log10_of_power_of_two(int exponent, bool is_narrow) {
    return (exponent * 1262611 - (is_narrow ? 524031 : 0)) >> 22;
}

static inline int floor_log2_of_power_of_ten(int exponent) {
    return (exponent * 1741647) >> 19;
}

// Chooses the shortest digits from the scaled value and the bounds of its rounding interval.
static decimal choose(uint64_t lower, uint64_t value, uint64_t upper, int exponent) {
    uint64_t whole = value / 4;
    if (whole >= 10) {
        uint64_t tens = whole / 10;
        bool down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up) return (decimal){tens + up, exponent + 1};
    }
    bool down = lower <= 4 * whole, up = 4 * whole + 4 <= upper;
    if (down != up) return (decimal){whole + up, exponent};
    uint64_t middle = 4 * whole + 2;
    bool round_up = value > middle || (value == middle && (whole & 1));
    return (decimal){whole + round_up, exponent};
}

static inline uint32_t scale_float(uint64_t power, uint32_t value) {
    uint64_t low = (power & UINT32_MAX) * value, high = (power >> 32) * value + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

static decimal shortest_float(uint32_t bits) {
    uint32_t fraction = bits & 0x7fffff, raw = bits >> 23 & 0xff;
    uint32_t mantissa = raw ? fraction | 0x800000 : fraction;
    int exponent = raw ? (int)raw - 150 : -149;
    if (raw && exponent <= 0 && exponent > -24 && (mantissa & ((1u << -exponent) - 1)) == 0) {
        return (decimal){mantissa >> -exponent, 0};
    }
    bool is_odd = mantissa & 1, is_narrow = fraction == 0 && raw > 1;
    int power = floor_log10_of_power_of_two(exponent, is_narrow);
    gm_power_of_ten wide = gm_powers_of_ten[-power - GM_POWER_FIRST];
    uint64_t factor = wide.high + (wide.low != 0);
    int shift = exponent + floor_log2_of_power_of_ten(-power) + 1;
    uint32_t lower = scale_float(factor, (4 * mantissa - 2 + is_narrow) << shift);
    uint32_t value = scale_float(factor, (4 * mantissa) << shift);
    uint32_t upper = scale_float(factor, (4 * mantissa + 2) << shift);
    return choose(lower + is_odd, value, upper - is_odd, power);
}

static inline uint64_t scale_double(gm_power_of_ten power, uint64_t value) {
    gm_product low = gm_multiply(power.low, value), high = gm_multiply(power.high, value);
    uint64_t middle = high.low + low.high;
    return (high.high + (middle < low.high)) | (middle > 1);
}

// False if the table of powers does not reach.
static bool shortest_double(uint64_t bits, decimal *out) {
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int raw = bits >> 52 & 0x7ff;
    uint64_t mantissa = raw ? fraction | (uint64_t)1 << 52 : fraction;
    int exponent = raw ? raw - 1075 : -1074;
    if (raw && exponent <= 0 && exponent > -53 &&
        (mantissa & (((uint64_t)1 << -exponent) - 1)) == 0) {
        *out = (decimal){mantissa >> -exponent, 0};
        return true;
    }
    bool is_odd = mantissa & 1, is_narrow = fraction == 0 && raw > 1;
    int power = floor_log10_of_power_of_two(exponent, is_narrow);
    if (-power < GM_POWER_FIRST || -power > GM_POWER_LAST) return false;
    gm_power_of_ten factor = gm_powers_of_ten[-power - GM_POWER_FIRST];
    int shift = exponent + floor_log2_of_power_of_ten(-power) + 1;
    uint64_t lower = scale_double(factor, (4 * mantissa - 2 + is_narrow) << shift);
    uint64_t value = scale_double(factor, (4 * mantissa) << shift);
    uint64_t upper = scale_double(factor, (4 * mantissa + 2) << shift);
    *out = choose(lower + is_odd, value, upper - is_odd, power);
    return true;
}

// The slow way, for numbers under 1e-40 or over 1e60: the first precision that suffices.
static decimal shortest_by_libc(double value) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    decimal found = {0, 0};
    char *at = text;
    for (int point = 0; *at != 'e'; at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        found.digits = found.digits * 10 + (uint64_t)(*at - '0');
        found.exponent -= point;
    }
    found.exponent += atoi(at + 1);
    return found;
}

size_t gm_write_unsigned(char *out, uint64_t value) {
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t at = 0; at < count; at++) out[at] = reversed[count - 1 - at];
    return count;
}

size_t gm_write_integer(char *out, int64_t value) {
    if (value >= 0) return gm_write_unsigned(out, (uint64_t)value);
    *out = '-';
    return 1 + gm_write_unsigned(out + 1, -(uint64_t)value);
}

// Fixed notation from 10^first_fixed to 10^last_fixed, else with an exponent.
static size_t write_decimal(char *out, decimal value, int first_fixed, int last_fixed) {
    while (value.digits && value.digits % 10 == 0) value.digits /= 10, value.exponent++;
    char digits[20];
    int count = (int)gm_write_unsigned(digits, value.digits);
    int leading = count + value.exponent - 1; // the exponent of the first digit
    char *at = out;
    if (leading < first_fixed || leading > last_fixed) {
        *at++ = digits[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, (size_t)count - 1);
            at += count - 1;
        }
        *at++ = 'e';
        if (leading > 0) *at++ = '+';
        return (size_t)(at - out) + gm_write_integer(at, leading);
    }
    if (leading < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int zero = leading + 1; zero < 0; zero++) *at++ = '0';
        memcpy(at, digits, (size_t)count);
        return (size_t)(at - out) + (size_t)count;
    }
    for (int digit = 0; digit <= leading || digit < count; digit++) {
        if (digit == leading + 1) *at++ = '.';
        *at++ = digit < count ? digits[digit] : '0';
    }
    if (count <= leading + 1) {
        *at++ = '.';
        *at++ = '0';
    }
    return (size_t)(at - out);
}

size_t gm_write_float(char *out, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t sign = bits >> 31;
    if (sign) *out = '-';
    bits &= INT32_MAX;
    if (bits == 0) return memcpy(out + sign, "0.0", 3), sign + 3;
    return sign + write_decimal(out + sign, shortest_float(bits), -6, 12);
}

size_t gm_write_double(char *out, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t sign = bits >> 63;
    if (sign) *out = '-';
    bits &= INT64_MAX;
    if (bits == 0) return memcpy(out + sign, "0.0", 3), sign + 3;
    decimal shortest;
    if (!shortest_double(bits, &shortest)) {
        shortest = shortest_by_libc(sign ? -value : value);
    }
    return sign + write_decimal(out + sign, shortest, -5, 15);
}
