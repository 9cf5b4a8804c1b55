// Reading JSON into one array of nodes. Strings are decoded in place.
//
// The texts of errors are those of Rust's serde_json, so that plugins in both languages answer
// alike.
#include <string.h>

#include "json.h"
#include "memory.h"
#include "numbers.h"

#define DEPTH_MAX 127

typedef struct {
    char *start;
    char *at;
    char *end; // a NUL is here
    const char *line_start;
    size_t line;
    gm_json *nodes;
    size_t count;
    size_t capacity;
    int depth;
} reader;

static gm_status fault(reader *reader, const char *what, const char *at) {
    // At the end of the text there is no further column.
    size_t column = (size_t)(at - reader->line_start) + (at < reader->end);
    return gm_invalid_input("invalid JSON: %s at line %zu column %zu", what, reader->line, column);
}

// The index of a new node: nodes move when their array grows.
static size_t add(reader *reader, gm_json_type type, const char *at) {
    if (reader->count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 64;
        reader->nodes = gm_resize(reader->nodes, reader->capacity * sizeof(gm_json),
                                  capacity * sizeof(gm_json));
        reader->capacity = capacity;
    }
    reader->nodes[reader->count] =
        (gm_json){.type = (uint8_t)type, .nodes = 1, .offset = (uint32_t)(at - reader->start)};
    return reader->count++;
}

static void skip_space(reader *reader) {
    for (;; reader->at++) {
        char character = *reader->at;
        if (character == '\n') {
            reader->line++;
            reader->line_start = reader->at + 1;
        } else if (character != ' ' && character != '\t' && character != '\r') {
            return;
        }
    }
}

// The length of a valid sequence of UTF-8 that begins with a byte over 0x7f; 0 if it is invalid.
static int sequence_length(const unsigned char *at) {
    unsigned char first = at[0], second = at[1];
    if (first < 0xc2 || first > 0xf4 || (second & 0xc0) != 0x80) return 0;
    if (first < 0xe0) return 2;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((at[2] & 0xc0) != 0x80) return 0;
    if (first < 0xf0) return 3;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return (at[3] & 0xc0) == 0x80 ? 4 : 0;
}

static int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Four hexadecimal digits, -1 if there are none.
static int32_t read_hex(const char *at) {
    int32_t value = 0;
    for (int digit = 0; digit < 4; digit++) {
        int next = hex_value(at[digit]);
        if (next < 0) return -1;
        value = value << 4 | next;
    }
    return value;
}

static char *write_utf8(char *out, uint32_t character) {
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    if (character < 0x800) {
        *out++ = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *out++ = (char)(0xe0 | character >> 12);
        } else {
            *out++ = (char)(0xf0 | character >> 18);
            *out++ = (char)(0x80 | (character >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (character >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (character & 0x3f));
    return out;
}

// Decodes the escape after a backslash. reader->at is behind the backslash.
static gm_status read_escape(reader *reader, char **out) {
    char kind = *reader->at;
    if (kind == 0 && reader->at == reader->end) {
        return fault(reader, "EOF while parsing a string", reader->end);
    }
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = kind ? strchr(from, kind) : NULL;
    if (found) {
        reader->at++;
        *(*out)++ = to[found - from];
        return GM_OK;
    }
    if (kind != 'u') return fault(reader, "invalid escape", reader->at);
    int32_t unit = read_hex(reader->at + 1);
    if (unit < 0) return fault(reader, "invalid escape", reader->at);
    reader->at += 5;
    uint32_t character = (uint32_t)unit;
    if (unit >= 0xdc00 && unit < 0xe000) {
        return fault(reader, "lone leading surrogate in hex escape", reader->at - 1);
    }
    if (unit >= 0xd800 && unit < 0xdc00) {
        int32_t second =
            reader->at[0] == '\\' && reader->at[1] == 'u' ? read_hex(reader->at + 2) : -1;
        if (second < 0xdc00 || second >= 0xe000) {
            return fault(reader, "unexpected end of hex escape", reader->at - 1);
        }
        reader->at += 6;
        character = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
    }
    *out = write_utf8(*out, character);
    return GM_OK;
}

static gm_status read_string(reader *reader) {
    size_t index = add(reader, GM_JSON_STRING, reader->at);
    char *text = ++reader->at;
    char *out = text;
    for (;;) {
        unsigned char character = (unsigned char)*reader->at;
        if (character == '"') break;
        if (character == '\\') {
            reader->at++;
            GM_TRY(read_escape(reader, &out));
        } else if (character < 0x20) {
            if (reader->at == reader->end) {
                return fault(reader, "EOF while parsing a string", reader->at);
            }
            const char *what = "control character (\\u0000-\\u001F) found while parsing a string";
            return fault(reader, what, reader->at);
        } else if (character < 0x80) {
            *out++ = *reader->at++;
        } else {
            int length = sequence_length((unsigned char *)reader->at);
            if (!length) return fault(reader, "invalid unicode code point", reader->at);
            memmove(out, reader->at, (size_t)length);
            out += length;
            reader->at += length;
        }
    }
    reader->at++;
    *out = 0;
    reader->nodes[index].text = text;
    reader->nodes[index].size = (uint32_t)(out - text);
    return GM_OK;
}

static gm_status read_word(reader *reader, const char *word, gm_json_type type, bool truth) {
    const char *at = reader->at;
    for (const char *letter = word; *letter; letter++, reader->at++) {
        if (*reader->at == *letter) continue;
        bool at_end = reader->at == reader->end;
        return fault(reader, at_end ? "EOF while parsing a value" : "expected ident", reader->at);
    }
    size_t index = add(reader, type, at);
    if (type == GM_JSON_BOOL) reader->nodes[index].truth = truth;
    return GM_OK;
}

static gm_status read_digits(reader *reader) {
    gm_number number = gm_read_number(reader->at, reader->end);
    if (number.kind == GM_NUMBER_INVALID) {
        bool at_end = number.end == reader->end;
        return fault(reader, at_end ? "EOF while parsing a value" : "invalid number", number.end);
    }
    if (number.kind == GM_NUMBER_REAL && __builtin_isinf(number.real)) {
        return fault(reader, "number out of range", number.end - 1);
    }
    size_t index = add(reader, GM_JSON_NUMBER, reader->at);
    gm_json *node = &reader->nodes[index];
    node->number = (uint8_t)number.kind;
    node->positive = number.positive;
    if (number.kind == GM_NUMBER_REAL) node->real = number.real;
    reader->at += number.end - reader->at;
    return GM_OK;
}

static gm_status read_value(reader *reader);

// Behind an element: true if another one follows, and reader->at is at it.
static gm_status read_separator(reader *reader, bool is_object, bool *more) {
    char close = is_object ? '}' : ']';
    skip_space(reader);
    *more = *reader->at == ',';
    if (*reader->at == close) {
        reader->at++;
        return GM_OK;
    }
    if (!*more) {
        if (reader->at == reader->end) {
            const char *what =
                is_object ? "EOF while parsing an object" : "EOF while parsing a list";
            return fault(reader, what, reader->at);
        }
        return fault(reader, is_object ? "expected `,` or `}`" : "expected `,` or `]`", reader->at);
    }
    reader->at++;
    skip_space(reader);
    if (*reader->at == close) return fault(reader, "trailing comma", reader->at);
    return GM_OK;
}

static gm_status read_key(reader *reader) {
    if (*reader->at != '"') {
        bool at_end = reader->at == reader->end;
        const char *what = at_end ? "EOF while parsing an object" : "key must be a string";
        return fault(reader, what, reader->at);
    }
    GM_TRY(read_string(reader));
    skip_space(reader);
    if (*reader->at != ':') {
        bool at_end = reader->at == reader->end;
        return fault(reader, at_end ? "EOF while parsing an object" : "expected `:`", reader->at);
    }
    reader->at++;
    skip_space(reader);
    return GM_OK;
}

static gm_status read_children(reader *reader, bool is_object) {
    size_t index = add(reader, is_object ? GM_JSON_OBJECT : GM_JSON_ARRAY, reader->at);
    if (reader->depth++ == DEPTH_MAX) {
        return fault(reader, "recursion limit exceeded", reader->at);
    }
    reader->at++;
    skip_space(reader);
    bool more = *reader->at != (is_object ? '}' : ']');
    if (!more) reader->at++;
    uint32_t size = 0;
    while (more) {
        if (is_object) {
            GM_TRY(read_key(reader));
        } else if (reader->at == reader->end) {
            return fault(reader, "EOF while parsing a list", reader->at);
        }
        GM_TRY(read_value(reader));
        size++;
        GM_TRY(read_separator(reader, is_object, &more));
    }
    reader->depth--;
    reader->nodes[index].size = size;
    reader->nodes[index].nodes = (uint32_t)(reader->count - index);
    return GM_OK;
}

static gm_status read_value(reader *reader) {
    switch (*reader->at) {
    case '{':
        return read_children(reader, true);
    case '[':
        return read_children(reader, false);
    case '"':
        return read_string(reader);
    case 't':
        return read_word(reader, "true", GM_JSON_BOOL, true);
    case 'f':
        return read_word(reader, "false", GM_JSON_BOOL, false);
    case 'n':
        return read_word(reader, "null", GM_JSON_NULL, false);
    case '-':
    case '0' ... '9':
        return read_digits(reader);
    default:
        if (reader->at == reader->end)
            return fault(reader, "EOF while parsing a value", reader->at);
        return fault(reader, "expected value", reader->at);
    }
}

gm_status gm_json_read_in_place(char *text, size_t size, const gm_json **out) {
    if (size > UINT32_MAX / 2) return gm_unprocessable("the JSON is over 2 GiB");
    reader reader = {.start = text, .at = text, .end = text + size, .line_start = text, .line = 1};
    skip_space(&reader);
    GM_TRY(read_value(&reader));
    skip_space(&reader);
    if (reader.at != reader.end) return fault(&reader, "trailing characters", reader.at);
    *out = reader.nodes;
    return GM_OK;
}

gm_status gm_json_read(const void *text, size_t size, const gm_json **out) {
    return gm_json_read_in_place(gm_copy(text, size), size, out);
}
