// Tokenizers of the reference host: lists of words that a test gives. Texts are split at blanks.
#include <string.h>

#include "../src/memory.h"
#include "host.h"

typedef gristmill_plugin_tokenizer_tokenizer_error_t error;
typedef gristmill_plugin_tokenizer_options_t options;

typedef struct tokenizer {
    struct tokenizer *older;
    const char *asset;
    const char *const *words;
    size_t count;
} tokenizer;

typedef struct {
    int64_t id, type, place[2];
} token;

typedef struct {
    token *items;
    size_t count;
} row;

static tokenizer *newest;

void gm_host_tokenizer(const char *asset, const char *const *words, size_t count) {
    tokenizer *added = host_alloc(sizeof *added);
    *added = (tokenizer){newest, host_copy(asset, strlen(asset)),
                         host_copy(words, count * sizeof *words), count};
    newest = added;
}

void host_forget_tokenizers(void) {
    newest = NULL;
}

static bool refuse(error *error, uint8_t tag, const char *text) {
    error->tag = tag;
    error->val.invalid_argument = host_give_text(text);
    return false;
}

static bool invalid(error *error, const char *text) {
    return refuse(error, GRISTMILL_PLUGIN_TOKENIZER_TOKENIZER_ERROR_INVALID_ARGUMENT, text);
}

static const tokenizer *find(const imports_string_t *asset, error *error) {
    const char *name = host_copy(asset->ptr, asset->len);
    for (const tokenizer *at = newest; at; at = at->older) {
        if (strcmp(at->asset, name) == 0) return at;
    }
    refuse(error, GRISTMILL_PLUGIN_TOKENIZER_TOKENIZER_ERROR_NO_ASSET,
           host_format("the test has no tokenizer \"%s\": make one with gm_host_tokenizer", name));
    return NULL;
}

// The place of a word, -1 if there is no such word.
static int64_t id_of(const tokenizer *words, const char *word, size_t size) {
    for (size_t index = 0; index < words->count; index++) {
        const char *other = words->words[index];
        if (strlen(other) == size && memcmp(other, word, size) == 0) return (int64_t)index;
    }
    return -1;
}

static void push(row *row, token token) {
    row->items[row->count++] = token;
}

static void push_special(const tokenizer *words, const char *word, int64_t type, row *row) {
    int64_t id = id_of(words, word, strlen(word));
    if (id >= 0) push(row, (token){id, type, {0, 0}});
}

static int64_t length_of(const char *text, size_t size, bool in_bytes) {
    int64_t length = 0;
    for (size_t at = 0; at < size; at++) length += in_bytes || (text[at] & 0xc0) != 0x80;
    return length;
}

static row words_of(const tokenizer *words, gm_bytes text, int64_t type, const options *options) {
    const char *data = (const char *)text.data;
    bool in_bytes = options->offsets.val == GRISTMILL_PLUGIN_TOKENIZER_OFFSET_UNIT_BYTES;
    int64_t unknown = id_of(words, "[UNK]", 5);
    row found = {host_alloc((text.size / 2 + 1) * sizeof(token)), 0};
    for (size_t at = 0, end; at < text.size; at = end) {
        while (at < text.size && data[at] == ' ') at++;
        for (end = at; end < text.size && data[end] != ' ';) end++;
        if (end == at) break;
        int64_t id = id_of(words, data + at, end - at), start = length_of(data, at, in_bytes);
        int64_t stop = start + length_of(data + at, end - at, in_bytes);
        push(&found, (token){id >= 0 ? id : unknown >= 0 ? unknown : 0, type, {start, stop}});
    }
    return found;
}

// Special tokens around the texts of a row; without texts, what they take of its length.
static row around(const tokenizer *words, const options *options, row first, const row *second) {
    row all = {host_alloc((first.count + (second ? second->count : 0) + 3) * sizeof(token)), 0};
    bool is_special = options->add_special_tokens;
    if (is_special) push_special(words, "[CLS]", 0, &all);
    for (size_t index = 0; index < first.count; index++) push(&all, first.items[index]);
    if (is_special) push_special(words, "[SEP]", 0, &all);
    for (size_t index = 0; second && index < second->count; index++) {
        push(&all, second->items[index]);
    }
    if (is_special && second) push_special(words, "[SEP]", 1, &all);
    return all;
}

static row row_of(const tokenizer *words, const options *options, gm_bytes text,
                  const gm_bytes *pair) {
    row none = {0}, first = words_of(words, text, 0, options), second = none;
    if (pair) second = words_of(words, *pair, 1, options);
    size_t added = around(words, options, none, pair ? &none : NULL).count;
    bool is_left =
        options->truncate.is_some && options->truncate.val == GRISTMILL_PLUGIN_TOKENIZER_SIDE_LEFT;
    while (options->max_length.is_some && first.count + second.count > 0 &&
           first.count + second.count + added > options->max_length.val) {
        row *longer = first.count >= second.count ? &first : &second;
        longer->count--;
        if (is_left) longer->items++;
    }
    return around(words, options, first, pair ? &second : NULL);
}

// The texts, each as bytes.
static bool list_of(const gristmill_plugin_tokenizer_texts_t *texts, gm_bytes **out, size_t *count,
                    error *error) {
    if (texts->tag == GRISTMILL_PLUGIN_TOKENIZER_TEXTS_LIST) {
        *count = texts->val.list.len;
        *out = host_alloc(*count * sizeof **out);
        for (size_t index = 0; index < *count; index++) {
            imports_string_t text = texts->val.list.ptr[index];
            (*out)[index] = (gm_bytes){text.ptr, text.len};
        }
    } else if (texts->tag == GRISTMILL_PLUGIN_TOKENIZER_TEXTS_BLOB) {
        *count = 1;
        *out = host_copy(&host_get(texts->val.blob.__handle, HOST_BLOB)->blob, sizeof **out);
    } else {
        host_tensor tensor = host_get(texts->val.tensor.__handle, HOST_TENSOR)->tensor;
        if (tensor.dtype != GM_STRING || tensor.shape.rank != 1) {
            return invalid(error, "texts is not a tensor of strings of one dimension");
        }
        *count = tensor.shape.dims[0];
        *out = host_alloc(*count * sizeof **out);
        const uint8_t *at = tensor.data.data;
        for (size_t index = 0; index < *count; index++) {
            uint32_t length;
            memcpy(&length, at, sizeof length);
            (*out)[index] = (gm_bytes){at + sizeof length, length};
            at += sizeof length + length;
        }
    }
    return true;
}

// The length of all rows.
static bool fit(const row *rows, size_t count, const options *options, size_t *out, error *error) {
    size_t longest = 0, most = 0, best = SIZE_MAX;
    for (size_t at = 0; at < count; at++) {
        if (rows[at].count > longest) longest = rows[at].count;
    }
    *out = longest;
    if (options->padding.tag == GRISTMILL_PLUGIN_TOKENIZER_PADDING_LONGEST) return true;
    imports_list_u32_t lengths = options->padding.val.buckets;
    for (size_t at = 0; at < lengths.len; at++) {
        if (lengths.ptr[at] > most) most = lengths.ptr[at];
        if (lengths.ptr[at] >= longest && lengths.ptr[at] < best) best = lengths.ptr[at];
    }
    *out = best;
    if (best != SIZE_MAX) return true;
    return invalid(error, host_format("a text has %zu tokens, but padding makes rows of at most "
                                      "%zu: set max-length to cut it off",
                                      longest, most));
}

typedef enum { OF_IDS, OF_MASK, OF_TYPES, OF_PLACES } part;

static gristmill_plugin_tokenizer_own_tensor_t tensor_of(const row *rows, size_t count,
                                                         size_t length, const options *options,
                                                         part part, int64_t padding) {
    size_t width = part == OF_PLACES ? 2 : 1, size = count * length * width;
    int64_t *elements = host_alloc(size * sizeof *elements);
    bool is_left = options->pad.is_some && options->pad.val == GRISTMILL_PLUGIN_TOKENIZER_SIDE_LEFT;
    for (size_t index = 0; index < size; index++) elements[index] = padding;
    for (size_t at = 0; at < count; at++) {
        int64_t *to = elements + (at * length + (is_left ? length - rows[at].count : 0)) * width;
        for (size_t index = 0; index < rows[at].count; index++) {
            token own = rows[at].items[index];
            switch (part) {
            case OF_IDS:
                *to++ = own.id;
                break;
            case OF_MASK:
                *to++ = 1;
                break;
            case OF_TYPES:
                *to++ = own.type;
                break;
            case OF_PLACES:
                *to++ = own.place[0], *to++ = own.place[1];
                break;
            }
        }
    }
    bool is_narrow = options->dtype == GM_INT32;
    int32_t *narrow = host_alloc(size * sizeof *narrow);
    for (size_t index = 0; index < size; index++) narrow[index] = (int32_t)elements[index];
    const uint32_t dims[] = {(uint32_t)count, (uint32_t)length, 2};
    host_tensor tensor = {.dtype = is_narrow ? GM_INT32 : GM_INT64,
                          .shape = {host_copy(dims, sizeof dims), part == OF_PLACES ? 3 : 2},
                          .data = {(const uint8_t *)elements, size * sizeof *elements}};
    if (is_narrow) tensor.data = (gm_bytes){(const uint8_t *)narrow, size * sizeof *narrow};
    return (gristmill_plugin_tokenizer_own_tensor_t){
        host_hold((host_resource){.kind = HOST_TENSOR, .tensor = tensor})};
}

bool gristmill_plugin_tokenizer_encode(imports_string_t *asset,
                                       gristmill_plugin_tokenizer_texts_t *texts,
                                       gristmill_plugin_tokenizer_texts_t *maybe_pairs,
                                       gristmill_plugin_tokenizer_options_t *options,
                                       gristmill_plugin_tokenizer_encoded_t *ret,
                                       gristmill_plugin_tokenizer_tokenizer_error_t *err) {
    const tokenizer *words = find(asset, err);
    gm_bytes *firsts, *seconds = NULL;
    size_t count, pairs, length;
    if (!words || !list_of(texts, &firsts, &count, err)) return false;
    if (maybe_pairs && !list_of(maybe_pairs, &seconds, &pairs, err)) return false;
    if (maybe_pairs && pairs != count) {
        return invalid(err, host_format("there are %zu texts, but %zu pairs", count, pairs));
    }
    row *rows = host_alloc(count * sizeof *rows);
    for (size_t at = 0; at < count; at++) {
        rows[at] = row_of(words, options, firsts[at], seconds ? &seconds[at] : NULL);
    }
    if (!fit(rows, count, options, &length, err)) return false;
    int64_t usual = id_of(words, "[PAD]", 5);
    if (options->pad_id.is_some) usual = options->pad_id.val;
    uint32_t *lengths = gm_alloc(count * sizeof *lengths);
    for (size_t at = 0; at < count; at++) lengths[at] = (uint32_t)rows[at].count;
    *ret = (gristmill_plugin_tokenizer_encoded_t){
        .ids = tensor_of(rows, count, length, options, OF_IDS, usual > 0 ? usual : 0),
        .attention_mask = tensor_of(rows, count, length, options, OF_MASK, 0),
        .type_ids = tensor_of(rows, count, length, options, OF_TYPES, 0),
        .lengths = {lengths, count},
        .offsets = {.is_some = options->offsets.is_some},
    };
    if (options->offsets.is_some) {
        ret->offsets.val = tensor_of(rows, count, length, options, OF_PLACES, 0);
    }
    return true;
}

bool gristmill_plugin_tokenizer_decode(imports_string_t *asset,
                                       gristmill_plugin_tokenizer_borrow_tensor_t ids,
                                       bool skip_special_tokens, imports_list_string_t *ret,
                                       gristmill_plugin_tokenizer_tokenizer_error_t *err) {
    const tokenizer *words = find(asset, err);
    if (!words) return false;
    host_tensor tensor = host_get(ids.__handle, HOST_TENSOR)->tensor;
    if (tensor.dtype != GM_INT64 && tensor.dtype != GM_INT32 && tensor.dtype != GM_UINT32) {
        return invalid(err, host_format("ids is a tensor of %s: must be int64, int32 or uint32",
                                        gm_dtype_name(tensor.dtype)));
    }
    size_t length = tensor.shape.rank ? tensor.shape.dims[tensor.shape.rank - 1] : 1;
    ret->len = tensor.shape.rank > 1 ? tensor.shape.dims[0] : 1;
    ret->ptr = gm_alloc(ret->len * sizeof *ret->ptr);
    for (size_t at = 0; at < ret->len; at++) {
        const char *text = "";
        for (size_t index = at * length; index < (at + 1) * length; index++) {
            int64_t id;
            switch (tensor.dtype) {
            case GM_INT64:
                id = ((const int64_t *)tensor.data.data)[index];
                break;
            case GM_INT32:
                id = ((const int32_t *)tensor.data.data)[index];
                break;
            default:
                id = ((const uint32_t *)tensor.data.data)[index];
                break;
            }
            if (id < 0 || (size_t)id >= words->count) continue;
            const char *word = words->words[id];
            if (skip_special_tokens && word[0] == '[' && word[strlen(word) - 1] == ']') continue;
            text = host_format("%s%s%s", text, *text ? " " : "", word);
        }
        ret->ptr[at] = host_give_text(text);
    }
    return true;
}

bool gristmill_plugin_tokenizer_token_to_id(imports_string_t *asset, imports_string_t *token,
                                            imports_option_u32_t *ret,
                                            gristmill_plugin_tokenizer_tokenizer_error_t *err) {
    const tokenizer *words = find(asset, err);
    if (!words) return false;
    int64_t id = id_of(words, (const char *)token->ptr, token->len);
    *ret = (imports_option_u32_t){id >= 0, id >= 0 ? (uint32_t)id : 0};
    return true;
}
