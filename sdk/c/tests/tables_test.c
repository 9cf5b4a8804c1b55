// Rows of tables over the reference host.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static const gm_host_row products[] = {
    {"7", (const float[]){9.5f, 4}},
    {"b", (const float[]){2, 3}},
};
static const char *const names[] = {"price", "rating"};

#define LIST(...)                                 \
    {.items = (const char *const[]){__VA_ARGS__}, \
     .count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)}
#define HAS(tensor, ...) \
    has(tensor, (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))

static bool has(const gm_tensor *tensor, const float *wanted, size_t count) {
    gm_view view;
    assert(gm_tensor_view(tensor, GM_FLOAT32, &view) == GM_OK);
    return view.count == count && memcmp(view.f32, wanted, view.size) == 0;
}

static gm_tensor *gather(gm_keys keys) {
    gm_tensor *rows;
    assert(gm_gather("products.csv", &keys, 2, -1, &rows) == GM_OK);
    return rows;
}

static void rows_are_gathered_and_missing_ones_filled(void) {
    gm_tensor *rows = gather((gm_keys)LIST("b", "8", "7"));
    gm_shape shape = gm_tensor_shape(rows);
    assert(shape.rank == 2 && shape.dims[0] == 3 && shape.dims[1] == 2);
    assert(HAS(rows, 2, 3, -1, -1, 9.5f, 4));
    assert(gm_tensor_shape(gather((gm_keys){.count = 0})).dims[0] == 0);
    gm_keys keys = LIST("7", "none");
    const char *const chosen[] = {"rating", "price", "rating"};
    assert(gm_gather_columns("products.csv", &keys, chosen, 3, 0, &rows) == GM_OK);
    assert(HAS(rows, 4, 9.5f, 4, 0, 0, 0));
}

static void keys_can_be_a_tensor(void) {
    const int64_t numbers[] = {7, 8};
    gm_tensor *ids, *texts;
    assert(gm_tensor_create(GM_INT64, GM_SHAPE(2), numbers, sizeof numbers, &ids) == GM_OK);
    assert(HAS(gather((gm_keys){.tensor = ids}), 9.5f, 4, -1, -1));
    const char *const listed[] = {"b", "7"};
    assert(gm_tensor_from_strings(GM_SHAPE(2), listed, 2, &texts) == GM_OK);
    assert(HAS(gather((gm_keys){.tensor = texts}), 2, 3, 9.5f, 4));
}

static void faults_are_the_plugins(void) {
    gm_keys keys = LIST("7");
    gm_tensor *rows;
    assert(gm_gather("products.csv", &keys, 3, 0, &rows) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "asset \"products.csv\": it has 2 columns besides the key, "
                                     "but the width is 3") == 0);
    const char *const stock[] = {"stock"};
    assert(gm_gather_columns("products.csv", &keys, stock, 1, 0, &rows) == GM_INTERNAL);
    assert(strstr(gm_failure_text(), "it has no column \"stock\""));
    assert(gm_gather("other", &keys, 2, 0, &rows) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "the test has no table \"other\": make one with "
                                     "gm_host_table") == 0);
    assert(gm_gather_columns("unnamed", &keys, stock, 1, 0, &rows) == GM_INTERNAL);
    const float half = 0.5f;
    gm_tensor *tensor;
    assert(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1), &half, sizeof half, &tensor) == GM_OK);
    gm_keys wrong = {.tensor = tensor};
    assert(gm_gather("products.csv", &wrong, 2, 0, &rows) == GM_INTERNAL);
    assert(strstr(gm_failure_text(), "int64 or strings of one dimension"));
}

int main(void) {
    gm_host_table("products.csv", products, 2, names, 2);
    gm_host_table("unnamed", products, 2, NULL, 2);
    rows_are_gathered_and_missing_ones_filled();
    keys_can_be_a_tensor();
    faults_are_the_plugins();
    gm_host_reset();
    assert(gm_host_handles() == 0);
    puts("tables_test: passed");
}
