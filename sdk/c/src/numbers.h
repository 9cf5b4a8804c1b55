// Texts of numbers, read and written fast: the shortest text that gives the same number again.
#ifndef GM_NUMBERS_H
#define GM_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The exponents in the table of powers of ten. Numbers outside take the slow way through libc.
#define GM_POWER_FIRST (-64)
#define GM_POWER_LAST 55

// The longest text that gm_write_float, gm_write_double and gm_write_integer make.
#define GM_NUMBER_TEXT_MAX 32

// The upper 128 bits of a power of ten, with the highest bit set, rounded up.
typedef struct {
    uint64_t high;
    uint64_t low;
} gm_power_of_ten;

extern const gm_power_of_ten gm_powers_of_ten[GM_POWER_LAST - GM_POWER_FIRST + 1];

typedef struct {
    uint64_t high;
    uint64_t low;
} gm_product;

// The 128 bits of a product. WebAssembly has no instruction for it.
static inline gm_product gm_multiply(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
    gm_product product;
    product.high = a1 * b1 + (middle >> 32) + (other >> 32);
    product.low = other << 32 | (uint32_t)low;
    return product;
}

typedef struct {
    enum { GM_NUMBER_INTEGER, GM_NUMBER_UNSIGNED, GM_NUMBER_REAL, GM_NUMBER_INVALID } kind;
    union {
        int64_t integer;
        uint64_t positive; // an integer over INT64_MAX
        double real;
    };
    const char *end; // behind the number, or where it is invalid
} gm_number;

// Reads a number as JSON writes it. At `limit` there is a byte that belongs to no number (NUL).
gm_number gm_read_number(const char *text, const char *limit);

// Each writes the text of a number without a NUL and returns its length. The number is finite.
size_t gm_write_float(char *out, float value);
size_t gm_write_double(char *out, double value);
size_t gm_write_integer(char *out, int64_t value);
size_t gm_write_unsigned(char *out, uint64_t value);

#endif
