// Numbers are read exactly and written with the shortest digits, in serde_json's notation.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../src/numbers.h"
#include "gristmill_host.h"

static uint64_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double read_number(const char *text) {
    gm_number number = gm_read_number(text, text + strlen(text));
    assert(number.kind != GM_NUMBER_INVALID && *number.end == 0);
    if (number.kind == GM_NUMBER_REAL) return number.real;
    return number.kind == GM_NUMBER_INTEGER ? (double)number.integer : (double)number.positive;
}

static void floats_round_trip(void) {
    for (int round = 0; round < 200000; round++) {
        uint32_t bits = (uint32_t)random_bits();
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        char text[GM_NUMBER_TEXT_MAX + 1];
        text[gm_write_float(text, value)] = 0;
        assert(strtof(text, NULL) == value);
    }
}

static void doubles_round_trip(void) {
    for (int round = 0; round < 200000; round++) {
        uint64_t bits = random_bits();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (round % 2) value = (double)(bits >> 11) / 0x1p53; // most numbers of real requests
        if (!isfinite(value)) continue;
        char text[GM_NUMBER_TEXT_MAX + 1];
        text[gm_write_double(text, value)] = 0;
        assert(strtod(text, NULL) == value);
        assert(read_number(text) == value);
        snprintf(text, sizeof text, "%.*e", (int)(bits % 20), value);
        assert(read_number(text) == strtod(text, NULL));
    }
}

static void hard_numbers_are_exact(void) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "9007199254740993",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e22",
                                        "1e23",
                                        "8.41e21",
                                        "5e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "123456789012345678901234567890",
                                        "0.000000000000000000001",
                                        "1.00000000000000011102230246251565404236316680908203125",
                                        "6.02214076e23",
                                        "1E+2",
                                        "1e-2"};
    for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
        double expected = strtod(texts[at], NULL);
        assert(memcmp(&expected, &(double){read_number(texts[at])}, sizeof expected) == 0 ||
               (expected == 0 && strchr(texts[at], '.') == NULL));
    }
}

static void faults_are_found(void) {
    static const char *const texts[] = {"-", "01", "1.", "1.e5", "1e", "1e+", "-x", ".5"};
    for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
        gm_number number = gm_read_number(texts[at], texts[at] + strlen(texts[at]));
        assert(number.kind == GM_NUMBER_INVALID);
    }
}

static void notation_is_that_of_serde_json(void) {
    static const struct {
        float value;
        const char *text;
    } floats[] = {{0, "0.0"},
                  {-0.0f, "-0.0"},
                  {1, "1.0"},
                  {0.1f, "0.1"},
                  {-2.5f, "-2.5"},
                  {16777216, "16777216.0"},
                  {1e12f, "1000000000000.0"},
                  {1e13f, "1e+13"},
                  {5.9130293e-6f, "0.0000059130293"},
                  {4.97e-7f, "4.97e-7"},
                  {3.4028235e38f, "3.4028235e+38"},
                  {1e-45f, "1e-45"}};
    char text[GM_NUMBER_TEXT_MAX + 1];
    for (size_t at = 0; at < sizeof floats / sizeof *floats; at++) {
        text[gm_write_float(text, floats[at].value)] = 0;
        assert(strcmp(text, floats[at].text) == 0);
    }
    static const struct {
        double value;
        const char *text;
    } doubles[] = {{0.1, "0.1"},
                   {1e15, "1000000000000000.0"},
                   {1e16, "1e+16"},
                   {1e-5, "0.00001"},
                   {1e-6, "1e-6"},
                   {5e-324, "5e-324"},
                   {1.7976931348623157e308, "1.7976931348623157e+308"}};
    for (size_t at = 0; at < sizeof doubles / sizeof *doubles; at++) {
        text[gm_write_double(text, doubles[at].value)] = 0;
        assert(strcmp(text, doubles[at].text) == 0);
    }
}

int main(void) {
    floats_round_trip();
    doubles_round_trip();
    hard_numbers_are_exact();
    faults_are_found();
    notation_is_that_of_serde_json();
    puts("number_test: passed");
}
