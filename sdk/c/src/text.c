// Tokenizers over the generated bindings.
#include "gristmill_text.h"

#include "handle.h"

typedef gristmill_plugin_tokenizer_tokenizer_error_t error;

// Texts that are too large are the client's; a file or an argument is the plugin's.
static gm_status failure_of(const error *error) {
    const char *text = gm_text_of(error->val.malformed); // the others have a text, too
    if (error->tag == GRISTMILL_PLUGIN_TOKENIZER_TOKENIZER_ERROR_TOO_LARGE)
        return gm_unprocessable("%s", text);
    return gm_internal("%s", text);
}

static gristmill_plugin_tokenizer_texts_t texts_of(const gm_texts *texts) {
    gristmill_plugin_tokenizer_texts_t given = {0};
    if (texts->tensor) {
        given.tag = GRISTMILL_PLUGIN_TOKENIZER_TEXTS_TENSOR;
        given.val.tensor.__handle = gm_number_of(&texts->tensor->handle);
    } else if (texts->blob) {
        given.tag = GRISTMILL_PLUGIN_TOKENIZER_TEXTS_BLOB;
        given.val.blob.__handle = gm_number_of(&texts->blob->handle);
    } else {
        given.tag = GRISTMILL_PLUGIN_TOKENIZER_TEXTS_LIST;
        imports_string_t *items = gm_alloc(texts->count * sizeof *items);
        for (size_t index = 0; index < texts->count; index++) {
            items[index] = gm_text(texts->items[index]);
        }
        given.val.list = (imports_list_string_t){items, texts->count};
    }
    return given;
}

static gristmill_plugin_tokenizer_option_side_t side_of(gm_side side) {
    return (gristmill_plugin_tokenizer_option_side_t){
        side != GM_SIDE_OF_FILE, side == GM_LEFT ? GRISTMILL_PLUGIN_TOKENIZER_SIDE_LEFT
                                                 : GRISTMILL_PLUGIN_TOKENIZER_SIDE_RIGHT};
}

static gristmill_plugin_tokenizer_options_t options_of(const gm_encode_options *options) {
    gristmill_plugin_tokenizer_options_t wanted = {
        .max_length = {options->max_length != 0, options->max_length},
        .truncate = side_of(options->truncate),
        .padding = {.tag = GRISTMILL_PLUGIN_TOKENIZER_PADDING_LONGEST},
        .pad = side_of(options->pad),
        .pad_id = {options->pad_id != NULL, options->pad_id ? *options->pad_id : 0},
        .add_special_tokens = !options->no_special_tokens,
        .dtype = options->is_int32 ? GM_INT32 : GM_INT64,
        .offsets = {options->offsets != GM_NO_OFFSETS,
                    options->offsets == GM_OFFSETS_IN_BYTES
                        ? GRISTMILL_PLUGIN_TOKENIZER_OFFSET_UNIT_BYTES
                        : GRISTMILL_PLUGIN_TOKENIZER_OFFSET_UNIT_CHARACTERS},
    };
    if (options->lengths) {
        wanted.padding.tag = GRISTMILL_PLUGIN_TOKENIZER_PADDING_BUCKETS;
        wanted.padding.val.buckets =
            (imports_list_u32_t){(uint32_t *)options->lengths, options->lengths_count};
    }
    return wanted;
}

static gm_tensor *hold(gristmill_plugin_tokenizer_own_tensor_t tensor) {
    return gm_hold(GM_HANDLE_TENSOR, tensor.__handle);
}

gm_status gm_encode(const char *asset, const gm_texts *texts, const gm_texts *pairs,
                    const gm_encode_options *options, gm_encoded *out) {
    imports_string_t name = gm_text(asset);
    gristmill_plugin_tokenizer_texts_t firsts = texts_of(texts), seconds;
    if (pairs) seconds = texts_of(pairs);
    const gm_encode_options usual = {0};
    gristmill_plugin_tokenizer_options_t wanted = options_of(options ? options : &usual);
    gristmill_plugin_tokenizer_encoded_t found;
    error fault;
    if (!gristmill_plugin_tokenizer_encode(&name, &firsts, pairs ? &seconds : NULL, &wanted, &found,
                                           &fault)) {
        return failure_of(&fault);
    }
    *out = (gm_encoded){.ids = hold(found.ids),
                        .attention_mask = hold(found.attention_mask),
                        .type_ids = hold(found.type_ids),
                        .offsets = found.offsets.is_some ? hold(found.offsets.val) : NULL,
                        .lengths = found.lengths.ptr,
                        .count = found.lengths.len};
    return GM_OK;
}

gm_status gm_decode(const char *asset, const gm_tensor *ids, bool skip_special_tokens,
                    const char *const **out, size_t *count) {
    imports_string_t name = gm_text(asset);
    gristmill_plugin_tokenizer_borrow_tensor_t tensor = {gm_number_of(&ids->handle)};
    imports_list_string_t found;
    error fault;
    if (!gristmill_plugin_tokenizer_decode(&name, tensor, skip_special_tokens, &found, &fault)) {
        return failure_of(&fault);
    }
    const char **texts = gm_alloc(found.len * sizeof *texts);
    for (size_t index = 0; index < found.len; index++) texts[index] = gm_text_of(found.ptr[index]);
    *out = texts;
    *count = found.len;
    return GM_OK;
}

gm_status gm_token_to_id(const char *asset, const char *token, int64_t *out) {
    imports_string_t name = gm_text(asset), text = gm_text(token);
    imports_option_u32_t found;
    error fault;
    if (!gristmill_plugin_tokenizer_token_to_id(&name, &text, &found, &fault)) {
        return failure_of(&fault);
    }
    *out = found.is_some ? (int64_t)found.val : -1;
    return GM_OK;
}
