// Reading numbers: exactly rounded, by the algorithm of Eisel and Lemire ("Number Parsing at a
// Gigabyte per Second", 2021). Rare numbers, with more than 19 digits or large exponents, go to
// strtod.
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// digits * 10^exponent, or false if this needs more precision than the table has.
static bool scale(uint64_t digits, int exponent, double *out) {
    if (digits == 0) {
        *out = 0;
        return true;
    }
    if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        double value = (double)digits;
        *out = exponent < 0 ? value / exact_powers[-exponent] : value * exact_powers[exponent];
        return true;
    }
    if (exponent < GM_POWER_FIRST || exponent > GM_POWER_LAST) return false;
    gm_power_of_ten power = gm_powers_of_ten[exponent - GM_POWER_FIRST];
    int zeros = __builtin_clzll(digits);
    digits <<= zeros;
    gm_product product = gm_multiply(digits, power.high);
    if ((product.high & 0x1ff) == 0x1ff) {
        uint64_t more = gm_multiply(digits, power.low).high;
        product.low += more;
        product.high += product.low < more;
        if (product.low == UINT64_MAX && exponent < -27) return false;
    }
    int upper = (int)(product.high >> 63), shift = upper + 64 - 52 - 3;
    uint64_t mantissa = product.high >> shift;
    int power_of_two = ((217706 * exponent) >> 16) + 63 + upper - zeros + 1023;
    if (power_of_two <= 0) return false;
    // Exactly between two doubles: to the even one.
    if (product.low <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 &&
        mantissa << shift == product.high) {
        mantissa &= ~(uint64_t)1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> 53) {
        mantissa >>= 1;
        power_of_two++;
    }
    if (power_of_two >= 0x7ff) return false;
    uint64_t bits = (mantissa & (((uint64_t)1 << 52) - 1)) | (uint64_t)power_of_two << 52;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static inline bool is_digit(char character) {
    return (unsigned char)(character - '0') < 10;
}

// The value of eight digits at once, by Lemire's method; false if they are not all digits.
static inline bool read_eight(const char *at, uint64_t *digits) {
    uint64_t chunk;
    memcpy(&chunk, at, sizeof chunk);
    uint64_t high = chunk & 0xf0f0f0f0f0f0f0f0;
    uint64_t over = (chunk + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0;
    if ((high ^ 0x3030303030303030) | (over ^ 0x3030303030303030)) return false;
    chunk = (chunk & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    chunk = (chunk & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    *digits = *digits * 100000000 + ((chunk & 0x0000ffff0000ffff) * 42949672960001 >> 32);
    return true;
}

static inline const char *read_digits(const char *at, const char *limit, uint64_t *digits) {
    while (limit - at >= 8 && read_eight(at, digits)) at += 8;
    while (is_digit(*at)) *digits = *digits * 10 + (uint64_t)(*at++ - '0');
    return at;
}

gm_number gm_read_number(const char *text, const char *limit) {
    const char *at = text;
    bool negative = *at == '-';
    at += negative;
    const char *first = at;
    uint64_t digits = 0;
    while (is_digit(*at)) digits = digits * 10 + (uint64_t)(*at++ - '0');
    long count = at - first;
    if (count == 0 || (*first == '0' && count > 1)) {
        return (gm_number){.kind = GM_NUMBER_INVALID, .end = count ? first + 1 : at};
    }
    bool is_real = false;
    int exponent = 0;
    if (*at == '.') {
        is_real = true;
        const char *fraction = ++at;
        at = read_digits(at, limit, &digits);
        if (at == fraction) return (gm_number){.kind = GM_NUMBER_INVALID, .end = at};
        exponent = -(int)(at - fraction < 100000 ? at - fraction : 100000);
        count += at - fraction;
        if (*first == '0') { // leading zeros are not significant
            const char *zero = fraction;
            count--;
            while (*zero == '0') zero++, count--;
        }
    }
    if (*at == 'e' || *at == 'E') {
        is_real = true;
        at++;
        bool minus = *at == '-';
        at += *at == '-' || *at == '+';
        const char *power = at;
        int value = 0;
        while (is_digit(*at)) {
            if (value < 100000) value = value * 10 + (*at - '0');
            at++;
        }
        if (at == power) return (gm_number){.kind = GM_NUMBER_INVALID, .end = at};
        exponent += minus ? -value : value;
    }
    gm_number number = {.kind = GM_NUMBER_REAL, .end = at};
    // Of 20 digits, those that overflow 64 bits leave a remainder under 10^19.
    bool fits = count <= 19 || (count == 20 && *first == '1' && digits >= 10000000000000000000u);
    if (!is_real && fits) {
        if (!negative && digits > INT64_MAX) {
            number.kind = GM_NUMBER_UNSIGNED;
            number.positive = digits;
            return number;
        }
        // -0 is a real number.
        if (digits <= (uint64_t)INT64_MAX + negative && !(negative && digits == 0)) {
            number.kind = GM_NUMBER_INTEGER;
            number.integer = (int64_t)(negative ? -digits : digits);
            return number;
        }
    }
    if (count <= 19 && scale(digits, exponent, &number.real)) {
        if (negative) number.real = -number.real;
    } else {
        number.real = strtod(text, NULL);
    }
    return number;
}
