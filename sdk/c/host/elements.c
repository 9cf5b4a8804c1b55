// Single elements of tensors. Out of range becomes the nearest in range, NaN becomes 0.
#include "elements.h"

#include <math.h>
#include <string.h>

static double half_to_double(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value;
    if (exponent == 31) {
        value = fraction ? NAN : INFINITY;
    } else {
        value = ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
    }
    return bits >> 15 ? -value : value;
}

// Rounds to the nearest, ties to even, as the processor's rounding mode does.
static uint16_t double_to_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    if (isnan(value)) return sign | 0x7e00;
    if (value >= 65520) return sign | 0x7c00;
    int exponent = value < 0x1p-14 ? -14 : ilogb(value);
    long fraction = lrint(ldexp(value, 10 - exponent)); // 1024 to 2048; less if subnormal
    return (uint16_t)(sign | (((exponent + 14) << 10) + fraction));
}

static double bfloat_to_double(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t float_to_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define READ(type) \
    type value;    \
    memcpy(&value, from, sizeof value)
#define READ_INTEGER(dtype, type)                \
    case dtype: {                                \
        READ(type);                              \
        return (host_element){.integer = value}; \
    }
#define READ_REAL(dtype, type, convert)                                 \
    case dtype: {                                                       \
        READ(type);                                                     \
        return (host_element){.is_real = true, .real = convert(value)}; \
    }

host_element host_read_element(gm_dtype dtype, const void *from) {
    switch (dtype) {
        READ_INTEGER(GM_BOOL, uint8_t)
        READ_INTEGER(GM_UINT8, uint8_t)
        READ_INTEGER(GM_INT8, int8_t)
        READ_INTEGER(GM_UINT16, uint16_t)
        READ_INTEGER(GM_INT16, int16_t)
        READ_INTEGER(GM_UINT32, uint32_t)
        READ_INTEGER(GM_INT32, int32_t)
        READ_INTEGER(GM_UINT64, uint64_t)
        READ_INTEGER(GM_INT64, int64_t)
        READ_REAL(GM_FLOAT16, uint16_t, half_to_double)
        READ_REAL(GM_BFLOAT16, uint16_t, bfloat_to_double)
        READ_REAL(GM_FLOAT32, float, (double))
        READ_REAL(GM_FLOAT64, double, (double))
    default:
        gm_panic("%s has no numbers", gm_dtype_name(dtype));
    }
}

static __int128 clamp(host_element element, __int128 lowest, __int128 highest) {
    __int128 value = element.integer;
    if (element.is_real) {
        if (isnan(element.real)) return 0;
        if (element.real <= -0x1p100) return lowest;
        if (element.real >= 0x1p100) return highest;
        value = (__int128)element.real;
    }
    return value < lowest ? lowest : value > highest ? highest : value;
}

#define WRITE(dtype, type, expression)    \
    case dtype: {                         \
        type value = (type)(expression);  \
        memcpy(to, &value, sizeof value); \
        return;                           \
    }
#define WRITE_INTEGER(dtype, type, lowest, highest) \
    WRITE(dtype, type, clamp(element, lowest, highest))

void host_write_element(gm_dtype dtype, void *to, host_element element) {
    switch (dtype) {
        WRITE(GM_BOOL, uint8_t, element.is_real ? element.real != 0 : element.integer != 0)
        WRITE_INTEGER(GM_UINT8, uint8_t, 0, UINT8_MAX)
        WRITE_INTEGER(GM_INT8, int8_t, INT8_MIN, INT8_MAX)
        WRITE_INTEGER(GM_UINT16, uint16_t, 0, UINT16_MAX)
        WRITE_INTEGER(GM_INT16, int16_t, INT16_MIN, INT16_MAX)
        WRITE_INTEGER(GM_UINT32, uint32_t, 0, UINT32_MAX)
        WRITE_INTEGER(GM_INT32, int32_t, INT32_MIN, INT32_MAX)
        WRITE_INTEGER(GM_UINT64, uint64_t, 0, UINT64_MAX)
        WRITE_INTEGER(GM_INT64, int64_t, INT64_MIN, INT64_MAX)
        WRITE(GM_FLOAT16, uint16_t,
              double_to_half(element.is_real ? element.real : (double)element.integer))
        WRITE(GM_BFLOAT16, uint16_t,
              float_to_bfloat(element.is_real ? (float)element.real : (float)element.integer))
        WRITE(GM_FLOAT32, float, element.is_real ? (float)element.real : (float)element.integer)
        WRITE(GM_FLOAT64, double, element.is_real ? element.real : (double)element.integer)
    default:
        gm_panic("%s has no numbers", gm_dtype_name(dtype));
    }
}
