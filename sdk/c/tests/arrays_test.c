// Programs of arrays: what is noted, what is written for a result, and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../src/arrays.h"
#include "gristmill_host.h"

static gm_program_text written(gm_program *np, gm_array result) {
    gm_program_text out;
    gm_status status = gm_np_write(np, &result, 1, &out);
    if (status != GM_OK) gm_panic("%s", gm_failure_text());
    return out;
}

static bool is_written(gm_program *np, gm_array result, const char *wanted) {
    const char *text = (const char *)written(np, result).text.ptr;
    if (strcmp(text, wanted) != 0) printf("%s\nwanted:\n%s\n", text, wanted);
    return strcmp(text, wanted) == 0;
}

static bool fails(gm_program *np, const char *wanted) {
    gm_program_text out;
    gm_status status = gm_np_write(np, NULL, 0, &out);
    if (status == GM_INTERNAL && strcmp(gm_failure_text(), wanted) == 0) return true;
    printf("status %d: %s\nwanted:\n%s\n", status, gm_failure_text(), wanted);
    return false;
}

static gm_tensor *tensor(void) {
    gm_tensor *made;
    assert(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1, 2), (float[]){1, 2}, 8, &made) == GM_OK);
    return made;
}

static void only_what_is_needed_is_written(void) {
    gm_program *np = gm_np_begin();
    gm_array half = gm_np_number(np, 0.5);
    gm_tensor *first = tensor(), *second = tensor();
    gm_array x = gm_np_tensor(np, first), unread = gm_np_exp(np, x);
    gm_array y = gm_np_tensor(np, second), scaled = gm_np_multiply(np, y, half);
    gm_array best = gm_np_max(np, scaled, gm_axis(-1));
    assert(is_written(np, best, "[[\"number\",[],[0.5]],[\"multiply\",[0,1],[]],"
                                "[\"max\",[2],[-1,false]]]"));
    gm_program_text text = written(np, best);
    assert(text.tensors.len == 1 && text.tensors.ptr[0].__handle == second->handle.number);
    assert(text.results.len == 1 && text.results.ptr[0] == 3);
    assert(is_written(np, unread, "[[\"exp\",[0],[]]]"));
    assert(is_written(np, y, "[]") && written(np, y).results.ptr[0] == 0);
    // A tensor is given once.
    gm_array sum = gm_np_add(np, x, gm_np_tensor(np, first));
    assert(is_written(np, sum, "[[\"add\",[0,0],[]]]") && written(np, sum).tensors.len == 1);
    gm_program_text both;
    assert(gm_np_write(np, (gm_array[]){best, unread}, 2, &both) == GM_OK);
    assert(strcmp((const char *)both.text.ptr,
                  "[[\"number\",[],[0.5]],[\"exp\",[0],[]],[\"multiply\",[1,2],[]],"
                  "[\"max\",[4],[-1,false]]]") == 0);
    assert(both.results.ptr[0] == 5 && both.results.ptr[1] == 3);
}

static void numbers_are_exact(void) {
    gm_program *np = gm_np_begin();
    assert(is_written(np, gm_np_number(np, 1), "[[\"number\",[],[1.0]]]"));
    assert(is_written(np, gm_np_number(np, -0.0), "[[\"number\",[],[-0.0]]]"));
    assert(is_written(np, gm_np_number(np, NAN), "[[\"number\",[],[\"nan\"]]]"));
    assert(is_written(np, gm_np_number(np, INFINITY), "[[\"number\",[],[\"inf\"]]]"));
    assert(is_written(np, gm_np_number(np, -INFINITY), "[[\"number\",[],[\"-inf\"]]]"));
    assert(is_written(np, gm_np_integer(np, INT64_MIN),
                      "[[\"number\",[],[-9223372036854775808]]]"));
    const float floats[] = {0.1f, -INFINITY};
    assert(is_written(np, gm_np_array(np, GM_FLOAT32, GM_SHAPE(2), floats, sizeof floats),
                      "[[\"literal\",[],[\"float32\",[2],[0.10000000149011612,\"-inf\"]]]]"));
    const uint64_t large[] = {UINT64_MAX};
    assert(is_written(np, gm_np_array(np, GM_UINT64, GM_SHAPE(1, 1), large, sizeof large),
                      "[[\"literal\",[],[\"uint64\",[1,1],[18446744073709551615]]]]"));
    assert(is_written(np, gm_np_array(np, GM_INT8, (gm_shape){NULL, 0}, (int8_t[]){-3}, 1),
                      "[[\"literal\",[],[\"int8\",[],[-3]]]]"));
}

static void long_arrays_become_tensors(void) {
    static const int32_t many[257];
    gm_program *np = gm_np_begin();
    gm_program_text text =
        written(np, gm_np_array(np, GM_INT32, GM_SHAPE(257), many, sizeof many));
    assert(text.tensors.len == 1 && strcmp((const char *)text.text.ptr, "[]") == 0);
    const uint16_t halves[] = {0x3c00};
    text = written(np, gm_np_array(np, GM_FLOAT16, GM_SHAPE(1), halves, sizeof halves));
    assert(text.tensors.len == 1);
    gm_np_array(np, GM_INT32, GM_SHAPE(3), many, 8);
    assert(fails(np, "arrays: step 0, array: tensor data is 8 bytes long, but dtype and shape "
                     "need 12"));
}

static void parameters_have_their_places(void) {
    gm_program *np = gm_np_begin();
    gm_array x = gm_np_tensor(np, tensor()), y = gm_np_tensor(np, tensor()), places;
    const struct {
        gm_array made;
        const char *text;
    } cases[] = {
        {gm_np_sum(np, x, gm_keepdims(GM_AXES(0, -1))), "[[\"sum\",[0],[[0,-1],true]]]"},
        {gm_np_all(np, x, GM_ALL_AXES), "[[\"all\",[0],[null,false]]]"},
        {gm_np_std(np, x, gm_axis(0), 1), "[[\"std\",[0],[0,false,1.0]]]"},
        {gm_np_cumsum(np, x, GM_NONE), "[[\"cumulative_sum\",[0],[null]]]"},
        {gm_np_sort(np, x, -1, true), "[[\"sort\",[0],[-1,true]]]"},
        {gm_np_top_k(np, x, 5, 1, &places),
         "[[\"argtopk\",[0],[1,5]],[\"take_along_axis\",[0,1],[1]]]"},
        {places, "[[\"argtopk\",[0],[1,5]]]"},
        {gm_np_reshape(np, x, GM_SHAPE(GM_ANY, 4)), "[[\"reshape\",[0],[[-1,4]]]]"},
        {gm_np_permute_dims(np, x, GM_AXES(1, 0)), "[[\"permute_dims\",[0],[[1,0]]]]"},
        {gm_np_concat(np, (gm_array[]){x, y}, 2, 0), "[[\"concat\",[0,1],[0]]]"},
        {gm_np_repeat(np, x, 3, GM_NONE), "[[\"repeat\",[0],[3,null]]]"},
        {gm_np_index(np, x, gm_at(-1), GM_WHOLE, gm_slice_by(1, GM_NONE, -2), GM_NEW_AXIS,
                     GM_ELLIPSIS, gm_by(y)),
         "[[\"index\",[0,1],[[-1,[null,null,null],[1,null,-2],null,\"...\",\"array\"]]]]"},
        {gm_np_expand_dims(np, x, 1), "[[\"index\",[0],[[[null,null,null],null]]]]"},
        {gm_np_expand_dims(np, x, -2), "[[\"index\",[0],[[\"...\",null,[null,null,null]]]]]"},
        {gm_np_squeeze(np, x, 0), "[[\"literal\",[],[\"bool\",[1],[1]]],"
                                  "[\"index\",[0,1],[[\"array\"]]],[\"index\",[2],[[0]]]]"},
        {gm_np_clip(np, x, gm_np_integer(np, 0), GM_NO_ARRAY),
         "[[\"number\",[],[0]],[\"maximum\",[0,1],[]]]"},
        {gm_np_full(np, GM_SHAPE(2, 3), 7, GM_UINT8), "[[\"full\",[],[7.0,[2,3],\"uint8\"]]]"},
        {gm_np_linspace(np, 0, 1, 5, true, GM_FLOAT32),
         "[[\"linspace\",[],[0.0,1.0,5,true,\"float32\"]]]"},
        {gm_np_eye(np, 2, 3, -1, GM_INT64), "[[\"eye\",[],[2,3,-1,\"int64\"]]]"},
        {gm_np_one_hot(np, x, 9, GM_FLOAT32), "[[\"one_hot\",[0],[9,\"float32\"]]]"},
        {gm_np_nms(np, x, y, 0.5, -INFINITY, GM_NONE), "[[\"nms\",[0,1],[0.5,\"-inf\",null]]]"},
        {gm_np_dot(np, x, y), "[[\"matmul\",[0,1],[true]]]"},
        {gm_np_step(np, "sum", &x, 1, "[0, true]"), "[[\"sum\",[0],[0, true]]]"},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        assert(is_written(np, cases[at].made, cases[at].text));
    }
}

static void the_first_failure_is_kept(void) {
    gm_program *np = gm_np_begin(), *other = gm_np_begin();
    gm_array foreign = gm_np_number(other, 1), x = gm_np_number(np, 1);
    gm_array wrong = gm_np_add(np, x, foreign);
    gm_np_sum(np, gm_np_sqrt(np, wrong), (gm_axes){.count = 9});
    assert(fails(np, "arrays: step 1, add: array 1 is not of this program"));
    gm_view view;
    assert(gm_np_read(np, x, GM_FLOAT64, &view) == GM_INTERNAL);
    np = gm_np_begin();
    gm_np_flip(np, gm_np_number(np, 1), (gm_axes){.count = 9});
    assert(fails(np, "arrays: step 1, flip: 9 axes are over the limit of 8"));
    np = gm_np_begin();
    gm_np_exp(np, GM_NO_ARRAY);
    assert(fails(np, "arrays: step 0, exp: array 0 is not of this program"));
    np = gm_np_begin();
    gm_np_squeeze(np, gm_np_number(np, 1), 99);
    assert(fails(np, "arrays: step 2, index: axis 99 is out of bounds"));
    np = gm_np_begin();
    gm_tensor *out = NULL;
    assert(gm_np_run(np, x, &out) == GM_INTERNAL && out == NULL);
    assert(strcmp(gm_failure_text(), "arrays: the results: array 0 is not of this program") == 0);
}

static void programs_are_bounded(void) {
    gm_program *np = gm_np_begin();
    gm_array sum = gm_np_number(np, 0);
    for (int step = 0; step < 4096; step++) sum = gm_np_add(np, sum, sum);
    assert(fails(np, "arrays: step 4096, add: a program has at most 4096 steps and tensors"));
    np = gm_np_begin();
    static gm_array many[1025];
    for (size_t at = 0; at < 1025; at++) many[at] = (gm_array){np, 0};
    gm_np_number(np, 0);
    assert(is_written(np, gm_np_stack(np, many, 1, 0), "[[\"number\",[],[0.0]],"
                                                       "[\"stack\",[0],[0]]]"));
    gm_np_concat(np, many, 1025, 0);
    assert(fails(np, "arrays: step 2, concat: 1025 operands are over the limit of 1024"));
    np = gm_np_begin();
    static const double numbers[256] = {[255] = 1e-300};
    for (int step = 0; step < 1200; step++) {
        gm_np_array(np, GM_FLOAT64, GM_SHAPE(256), numbers, sizeof numbers);
    }
    gm_program_text out;
    assert(gm_np_write(np, NULL, 0, &out) == GM_INTERNAL);
    assert(strstr(gm_failure_text(), "literal: the program is over the limit of 1048576 bytes"));
}

static void the_host_of_unit_tests_has_no_arrays(void) {
    gm_program *np = gm_np_begin();
    gm_array x = gm_np_tensor(np, tensor());
    gm_tensor *out;
    double number;
    const char *why = "arrays: the host computes arrays, but not that of unit tests: "
                      "`gristmill plugin test` runs the plugin with it";
    assert(gm_np_run(np, x, &out) == GM_INTERNAL && strcmp(gm_failure_text(), why) == 0);
    assert(gm_np_item(np, x, &number) == GM_INTERNAL && strcmp(gm_failure_text(), why) == 0);
}

int main(void) {
    only_what_is_needed_is_written();
    numbers_are_exact();
    long_arrays_become_tensors();
    parameters_have_their_places();
    the_first_failure_is_kept();
    programs_are_bounded();
    the_host_of_unit_tests_has_no_arrays();
    gm_host_reset();
    assert(gm_host_handles() == 0);
    puts("arrays_test: passed");
}
