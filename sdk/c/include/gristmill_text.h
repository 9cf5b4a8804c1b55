// Tokens of texts, as a tokenizer.json of Hugging Face's tokenizers says.
//
//     const uint32_t lengths[] = {32, 64, 128};
//     gm_texts texts = {.tensor = strings}; // of gm_request_json_tensor(.., GM_STRING, &strings)
//     gm_encode_options options = {.max_length = 128, .lengths = lengths, .lengths_count = 3};
//     gm_encoded tokens;
//     GM_TRY(gm_encode("tokenizer.json", &texts, NULL, &options, &tokens));
//     GM_TRY(gm_prepared_input(prepared, "input_ids", tokens.ids));
//
// The file is among the assets of the plugin or of its pipeline, under this name. The host reads it
// once, and makes the ids of the Python package `tokenizers`. Texts in a tensor or a blob, and the
// ids, do not pass through the plugin.
//
// Each function fails with GM_UNPROCESSABLE for texts that are over a limit: 4096 in a call, with
// 128 KiB each and 4 MiB in all. A file or an argument that is wrong is GM_INTERNAL.
#ifndef GRISTMILL_TEXT_H
#define GRISTMILL_TEXT_H

#include "gristmill_plugin.h"

// A side of a text.
typedef enum { GM_SIDE_OF_FILE, GM_LEFT, GM_RIGHT } gm_side;

// What offsets count: nothing, characters as in Python, or bytes of UTF-8.
typedef enum { GM_NO_OFFSETS, GM_OFFSETS_IN_CHARACTERS, GM_OFFSETS_IN_BYTES } gm_offsets;

// How texts are encoded. What is not set is as the file says.
typedef struct {
    uint32_t max_length;     // tokens of a text or a pair, special ones included. More are cut off
    gm_side truncate;        // where they are cut off
    const uint32_t *lengths; // of the rows: the smallest that fits; NULL: that of the longest
    size_t lengths_count;
    gm_side pad;            // where shorter rows are filled up
    const uint32_t *pad_id; // with this id
    bool no_special_tokens;
    bool is_int32; // all tensors are int32 in place of int64
    gm_offsets offsets;
} gm_encode_options;

// Texts: a tensor of strings of one dimension, one text in UTF-8, or else a list of texts that are
// each ended by NUL.
typedef struct {
    const gm_tensor *tensor;
    const gm_blob *blob;
    const char *const *items;
    size_t count;
} gm_texts;

// The tokens of texts: one row for each text or pair.
typedef struct {
    gm_tensor *ids;            // [count, length]
    gm_tensor *attention_mask; // 1 for tokens, 0 for padding: [count, length]
    gm_tensor *type_ids;       // 0 for tokens of the first text of a pair, 1 for the second
    gm_tensor *offsets;        // where each begins and ends, [count, length, 2]; NULL if not wanted
    const uint32_t *lengths;   // tokens of each row, without padding
    size_t count;
} gm_encoded;

// The tokens of texts. With `pairs`, which are as many or NULL, each text and its pair make one
// row.
gm_status gm_encode(const char *asset, const gm_texts *texts, const gm_texts *pairs,
                    const gm_encode_options *options, gm_encoded *out);

// The texts of ids: one for each row of a tensor of int64, int32 or uint32.
gm_status gm_decode(const char *asset, const gm_tensor *ids, bool skip_special_tokens,
                    const char *const **out, size_t *count);

// The id of a token, such as "[MASK]". -1 if there is no such token.
gm_status gm_token_to_id(const char *asset, const char *token, int64_t *out);

#endif
