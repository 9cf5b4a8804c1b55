// Base64 and data URLs, with the host's rules and texts.
#include <string.h>
#include <strings.h>

#include "host.h"

static int value_of(char character) {
    if (character >= 'A' && character <= 'Z') return character - 'A';
    if (character >= 'a' && character <= 'z') return character - 'a' + 26;
    if (character >= '0' && character <= '9') return character - '0' + 52;
    if (character == '+' || character == '-') return 62;
    return character == '/' || character == '_' ? 63 : -1;
}

// Where the data of a data URL begin, or the text; NULL with a reason.
static const char *start_of_data(const char *text, const char **why) {
    if (strncasecmp(text, "data:", 5) != 0) return text;
    const char *comma = strchr(text, ','), *last = text + 5;
    if (!comma) {
        *why = "a data URL without a comma";
        return NULL;
    }
    for (const char *at = last; at < comma; at++) {
        if (*at == ';') last = at + 1;
    }
    if (comma - last == 6 && strncasecmp(last, "base64", 6) == 0) return comma + 1;
    *why = "a data URL whose data are not in base64: it has no \";base64\"";
    return NULL;
}

const char *host_base64(const char *text, gm_bytes *out) {
    const char *why = NULL, *start = start_of_data(text, &why);
    if (!start) return why;
    uint8_t *bytes = host_alloc(strlen(start) / 4 * 3 + 3);
    size_t size = 0;
    uint32_t bits = 0, count = 0, padding = 0;
    for (const char *at = start; *at; at++) {
        if (strchr(" \t\r\n", *at)) continue;
        int value = value_of(*at);
        if (*at == '=' && count + padding >= 2 && count + padding < 4) {
            padding++;
        } else if (value >= 0 && padding == 0) {
            bits = bits << 6 | (uint32_t)value;
            if (++count == 4) {
                for (int shift = 16; shift >= 0; shift -= 8) bytes[size++] = (uint8_t)(bits >> shift);
                bits = count = 0;
            }
        } else {
            return host_format("base64 has '%c' at position %zu%s", *at, (size_t)(at - text),
                               padding ? " after its end" : "");
        }
    }
    if (count == 1) return "base64 ends within a group of four characters";
    if (count) bits <<= 6 * (4 - count);
    for (uint32_t byte = 1; byte < count; byte++) bytes[size++] = (uint8_t)(bits >> (24 - 8 * byte));
    *out = (gm_bytes){bytes, size};
    return NULL;
}
