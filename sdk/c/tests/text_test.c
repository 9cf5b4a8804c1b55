// Tokens of texts over the reference host.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static const char *const words[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"};

#define LIST(...)                                 \
    {.items = (const char *const[]){__VA_ARGS__}, \
     .count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)}
#define HAS(tensor, ...) \
    has(tensor, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static bool has(const gm_tensor *tensor, const int64_t *wanted, size_t count) {
    gm_view view;
    assert(gm_tensor_view(tensor, GM_INT64, &view) == GM_OK);
    return view.count == count && memcmp(view.i64, wanted, view.size) == 0;
}

static gm_encoded encode(gm_texts texts, gm_encode_options options) {
    gm_encoded tokens;
    assert(gm_encode("tokenizer.json", &texts, NULL, &options, &tokens) == GM_OK);
    return tokens;
}

static void texts_become_rows_of_one_length(void) {
    gm_encoded tokens = encode((gm_texts)LIST("good bad", "ugly"), (gm_encode_options){0});
    gm_shape shape = gm_tensor_shape(tokens.ids);
    assert(shape.rank == 2 && shape.dims[0] == 2 && shape.dims[1] == 4);
    assert(HAS(tokens.ids, 2, 4, 5, 3, 2, 1, 3, 0));
    assert(HAS(tokens.attention_mask, 1, 1, 1, 1, 1, 1, 1, 0));
    assert(tokens.count == 2 && tokens.lengths[0] == 4 && tokens.lengths[1] == 3);
    assert(tokens.offsets == NULL);
    const uint32_t lengths[] = {16, 5, 2}, pad_id = 9;
    gm_encode_options options = {.lengths = lengths, .lengths_count = 3};
    assert(HAS(encode((gm_texts)LIST("good"), options).ids, 2, 4, 3, 0, 0));
    options.pad = GM_LEFT;
    options.pad_id = &pad_id;
    assert(HAS(encode((gm_texts)LIST("good"), options).ids, 9, 9, 2, 4, 3));
    options.is_int32 = true;
    assert(gm_tensor_dtype(encode((gm_texts)LIST("good"), options).type_ids) == GM_INT32);
    assert(encode((gm_texts){.count = 0}, (gm_encode_options){0}).count == 0);
}

static void texts_may_stay_on_the_host(void) {
    gm_tensor *strings;
    assert(gm_tensor_from_strings(GM_SHAPE(2), (const char *const[]){"good", "bad"}, 2, &strings) ==
           GM_OK);
    assert(
        HAS(encode((gm_texts){.tensor = strings}, (gm_encode_options){0}).ids, 2, 4, 3, 2, 5, 3));
    gm_texts blob = {.blob = gm_blob_from_bytes("bad", 3)};
    assert(HAS(encode(blob, (gm_encode_options){0}).ids, 2, 5, 3));
}

static void pairs_are_cut_and_have_offsets(void) {
    gm_texts texts = LIST("g\xc3\xa9n"), pairs = LIST("bad  bad");
    gm_encode_options options = {.offsets = GM_OFFSETS_IN_CHARACTERS};
    gm_encoded tokens;
    assert(gm_encode("tokenizer.json", &texts, &pairs, &options, &tokens) == GM_OK);
    assert(HAS(tokens.ids, 2, 1, 3, 5, 5, 3) && HAS(tokens.type_ids, 0, 0, 0, 1, 1, 1));
    assert(HAS(tokens.offsets, 0, 0, 0, 3, 0, 0, 0, 3, 5, 8, 0, 0));
    options = (gm_encode_options){.offsets = GM_OFFSETS_IN_BYTES, .no_special_tokens = true};
    assert(HAS(encode(texts, options).offsets, 0, 4));
    options = (gm_encode_options){.max_length = 3};
    assert(HAS(encode((gm_texts)LIST("good bad"), options).ids, 2, 4, 3));
    options.truncate = GM_LEFT;
    assert(HAS(encode((gm_texts)LIST("good bad"), options).ids, 2, 5, 3));
}

static void ids_become_texts(void) {
    const int64_t ids[] = {4, 0, 5, 5};
    gm_tensor *tensor;
    assert(gm_tensor_create(GM_INT64, GM_SHAPE(2, 2), ids, sizeof ids, &tensor) == GM_OK);
    const char *const *texts;
    size_t count;
    assert(gm_decode("tokenizer.json", tensor, true, &texts, &count) == GM_OK && count == 2);
    assert(strcmp(texts[0], "good") == 0 && strcmp(texts[1], "bad bad") == 0);
    assert(gm_decode("tokenizer.json", tensor, false, &texts, &count) == GM_OK);
    assert(strcmp(texts[0], "good [PAD]") == 0);
    int64_t id;
    assert(gm_token_to_id("tokenizer.json", "bad", &id) == GM_OK && id == 5);
    assert(gm_token_to_id("tokenizer.json", "ugly", &id) == GM_OK && id == -1);
}

static void faults_are_the_plugins(void) {
    const uint32_t two = 2;
    gm_texts texts = LIST("good"), pairs = LIST("bad", "bad");
    gm_encode_options options = {.lengths = &two, .lengths_count = 1};
    gm_encoded tokens;
    assert(gm_encode("tokenizer.json", &texts, NULL, &options, &tokens) == GM_INTERNAL);
    assert(strstr(gm_failure_text(), "a text has 3 tokens, but padding makes rows of at most 2"));
    assert(gm_encode("tokenizer.json", &texts, &pairs, NULL, &tokens) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "there are 1 texts, but 2 pairs") == 0);
    assert(gm_encode("other", &texts, NULL, NULL, &tokens) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(),
                  "the test has no tokenizer \"other\": make one with gm_host_tokenizer") == 0);
    const float half = 0.5f;
    const char *const *found;
    size_t count;
    gm_tensor *tensor;
    assert(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1), &half, sizeof half, &tensor) == GM_OK);
    assert(gm_decode("tokenizer.json", tensor, true, &found, &count) == GM_INTERNAL);
}

int main(void) {
    gm_host_tokenizer("tokenizer.json", words, sizeof words / sizeof *words);
    texts_become_rows_of_one_length();
    texts_may_stay_on_the_host();
    pairs_are_cut_and_have_offsets();
    ids_become_texts();
    faults_are_the_plugins();
    gm_host_reset();
    assert(gm_host_handles() == 0);
    puts("text_test: passed");
}
