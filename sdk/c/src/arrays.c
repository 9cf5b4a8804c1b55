// Programs of array operations. Steps are noted as they come, and written when a result is wanted:
// only then it is known which of them it needs, and how many tensors stand before them.
#include "arrays.h"

#include <math.h>
#include <string.h>

#include "json.h"
#include "memory.h"
#include "numbers.h"

// The host's limits, and NumPy's number of dimensions here.
#define NODES_MAX 4096
#define OPERANDS_MAX 1024
#define NAME_MAX_BYTES 64
#define PARAMS_MAX_BYTES (1 << 20)
#define ALL_OPERANDS_MAX (1 << 19)
#define DIMENSIONS_MAX 8
#define PARTS_MAX 32

// Longer arrays become tensors.
#define LITERAL_MAX 256

// A tensor or a step.
typedef struct {
    const gm_tensor *tensor; // NULL of a step
    const char *op;
    uint32_t operands; // the first one of them in the program's list
    uint32_t operands_count;
    uint32_t params; // where its parameters begin in the program's text
    uint32_t params_size;
    uint32_t number; // in what is written
    bool is_needed;
} node;

struct gm_program {
    node *nodes;
    size_t nodes_count, nodes_capacity;
    uint32_t *operands;
    size_t operands_count, operands_capacity;
    gm_json_writer params; // lists in JSON, one after another
    size_t params_size;    // of those that were noted
    size_t steps;
    const char *failure; // NULL if there is none
};

typedef gristmill_plugin_arrays_fault_t fault;

// ---- Noting steps ----

gm_program *gm_np_begin(void) {
    gm_program *np = gm_alloc(sizeof *np);
    *np = (gm_program){.params = GM_JSON_WRITER};
    return np;
}

static gm_array fail(gm_program *np, const char *op, const char *why) {
    np->failure = gm_format("step %zu, %s: %s", np->steps, op, why);
    return (gm_array){np, 0};
}

// Keeps the first failure of a program, with a formatted text.
#define FAIL_STEP(np, op, ...) \
    ((np)->failure ? (gm_array){(np), 0} : fail((np), (op), gm_format(__VA_ARGS__)))

// Room for `count` more items of a list.
static void *grow(void *items, size_t used, size_t count, size_t *capacity, size_t size) {
    if (count <= *capacity - used) return items;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    while (count > wanted - used) wanted *= 2;
    items = gm_resize(items, *capacity * size, wanted * size);
    *capacity = wanted;
    return items;
}

static gm_array add_node(gm_program *np, node added) {
    np->nodes = grow(np->nodes, np->nodes_count, 1, &np->nodes_capacity, sizeof *np->nodes);
    np->nodes[np->nodes_count] = added;
    return (gm_array){np, (uint32_t)np->nodes_count++};
}

// Where a step writes its parameters. What a step that failed has written is overwritten.
static gm_json_writer *params_of_step(gm_program *np) {
    np->params.size = np->params_size;
    np->params.needs_comma = false;
    return &np->params;
}

// Begins the parameters of a step.
static gm_json_writer *begin(gm_program *np) {
    gm_json_writer *params = params_of_step(np);
    gm_json_begin_array(params);
    return params;
}

static const char *wrong_operand(const gm_program *np, const gm_array *operands, size_t count) {
    for (size_t at = 0; at < count; at++) {
        bool is_array = operands[at].program == np && operands[at].number < np->nodes_count;
        if (!is_array) return gm_format("array %zu is not of this program", at);
    }
    return NULL;
}

// Notes a step whose parameters are written.
static gm_array note(gm_program *np, const char *op, const gm_array *operands, size_t count) {
    if (np->failure) return (gm_array){np, 0};
    if (np->nodes_count >= NODES_MAX) {
        return FAIL_STEP(np, op, "a program has at most %d steps and tensors", NODES_MAX);
    }
    if (strlen(op) > NAME_MAX_BYTES) return FAIL_STEP(np, op, "there is no such operation");
    if (count > OPERANDS_MAX) {
        return FAIL_STEP(np, op, "%zu operands are over the limit of %d", count, OPERANDS_MAX);
    }
    size_t size = np->params.size - np->params_size;
    if (np->params.size > PARAMS_MAX_BYTES || count > ALL_OPERANDS_MAX - np->operands_count) {
        return FAIL_STEP(np, op, "the program is over the limit of %d bytes", PARAMS_MAX_BYTES);
    }
    const char *why = wrong_operand(np, operands, count);
    if (why) return FAIL_STEP(np, op, "%s", why);
    np->operands = grow(np->operands, np->operands_count, count, &np->operands_capacity,
                        sizeof *np->operands);
    node step = {.op = op,
                 .operands = (uint32_t)np->operands_count,
                 .operands_count = (uint32_t)count,
                 .params = (uint32_t)np->params_size,
                 .params_size = (uint32_t)size};
    for (size_t at = 0; at < count; at++) {
        np->operands[np->operands_count++] = operands[at].number;
    }
    np->params_size = np->params.size;
    np->steps++;
    return add_node(np, step);
}

// Ends the parameters of a step, and notes it.
static gm_array end(gm_program *np, const char *op, const gm_array *operands, size_t count) {
    gm_json_end_array(&np->params);
    return note(np, op, operands, count);
}

static gm_array end1(gm_program *np, const char *op, gm_array x) {
    return end(np, op, &x, 1);
}

static gm_array end2(gm_program *np, const char *op, gm_array x, gm_array y) {
    return end(np, op, (const gm_array[]){x, y}, 2);
}

gm_array gm_np_step(gm_program *np, const char *op, const gm_array *operands, size_t count,
                    const char *params) {
    gm_json_put_raw(params_of_step(np), params ? params : "[]");
    return note(np, op, operands, count);
}

gm_array gm_np_tensor(gm_program *np, const gm_tensor *tensor) {
    if (np->failure) return (gm_array){np, 0};
    if (!tensor) return FAIL_STEP(np, "tensor", "the tensor is NULL");
    for (size_t at = 0; at < np->nodes_count; at++) {
        if (np->nodes[at].tensor == tensor) return (gm_array){np, (uint32_t)at};
    }
    if (np->nodes_count >= NODES_MAX) {
        return FAIL_STEP(np, "tensor", "a program has at most %d steps and tensors", NODES_MAX);
    }
    return add_node(np, (node){.tensor = tensor});
}

// ---- Parameters ----

// JSON has no NaN and no infinities: they are texts.
static void put_double(gm_json_writer *params, double value) {
    if (isfinite(value)) return gm_json_put_double(params, value);
    gm_json_put_string(params, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void put_integer_or_null(gm_json_writer *params, int value) {
    if (value == GM_NONE) return gm_json_put_null(params);
    gm_json_put_integer(params, value);
}

static void put_dtype(gm_json_writer *params, gm_dtype dtype) {
    gm_json_put_string(params, gm_dtype_name(dtype));
}

// More dimensions than an array can have are cut after one too many, so that the host names them.
static void put_shape(gm_json_writer *params, gm_shape shape) {
    gm_json_begin_array(params);
    for (size_t axis = 0; axis < shape.rank && axis <= DIMENSIONS_MAX; axis++) {
        gm_json_put_integer(params, shape.dims[axis]);
    }
    gm_json_end_array(params);
}

static void put_axes(gm_json_writer *params, gm_axes axes) {
    if (axes.count == 0) return gm_json_put_null(params);
    if (axes.count == 1) return gm_json_put_integer(params, axes.items[0]);
    gm_json_begin_array(params);
    for (size_t at = 0; at < axes.count && at < DIMENSIONS_MAX; at++) {
        gm_json_put_integer(params, axes.items[at]);
    }
    gm_json_end_array(params);
}

// Whether there are not too many axes. If there are, the failure is kept.
static bool are_axes(gm_program *np, const char *op, gm_axes axes) {
    if (axes.count <= DIMENSIONS_MAX) return true;
    FAIL_STEP(np, op, "%zu axes are over the limit of %d", axes.count, DIMENSIONS_MAX);
    return false;
}

static void put_element(gm_json_writer *params, gm_dtype dtype, const void *data, size_t at) {
    char text[GM_NUMBER_TEXT_MAX + 1];
    switch (dtype) {
    case GM_INT8:
        return gm_json_put_integer(params, ((const int8_t *)data)[at]);
    case GM_UINT16:
        return gm_json_put_integer(params, ((const uint16_t *)data)[at]);
    case GM_INT16:
        return gm_json_put_integer(params, ((const int16_t *)data)[at]);
    case GM_UINT32:
        return gm_json_put_integer(params, ((const uint32_t *)data)[at]);
    case GM_INT32:
        return gm_json_put_integer(params, ((const int32_t *)data)[at]);
    case GM_INT64:
        return gm_json_put_integer(params, ((const int64_t *)data)[at]);
    case GM_UINT64:
        text[gm_write_unsigned(text, ((const uint64_t *)data)[at])] = 0;
        return gm_json_put_raw(params, text);
    case GM_FLOAT32: // the host reads a double, which is rounded to the same float
        return put_double(params, ((const float *)data)[at]);
    case GM_FLOAT64:
        return put_double(params, ((const double *)data)[at]);
    default:
        return gm_json_put_integer(params, ((const uint8_t *)data)[at]);
    }
}

// ---- Making arrays ----

gm_array gm_np_array(gm_program *np, gm_dtype dtype, gm_shape shape, const void *data,
                     size_t size) {
    if (np->failure) return (gm_array){np, 0};
    size_t count = gm_shape_elements(shape);
    bool is_text = dtype == GM_STRING || dtype == GM_FLOAT16 || dtype == GM_BFLOAT16 ||
                   (unsigned)dtype > GM_STRING;
    if (is_text || count > LITERAL_MAX || size != count * gm_dtype_size(dtype)) {
        gm_tensor *tensor;
        if (gm_tensor_create(dtype, shape, data, size, &tensor) == GM_OK) {
            return gm_np_tensor(np, tensor);
        }
        return FAIL_STEP(np, "array", "%s", gm_failure_text());
    }
    gm_json_writer *params = begin(np);
    put_dtype(params, dtype);
    put_shape(params, shape);
    gm_json_begin_array(params);
    for (size_t at = 0; at < count; at++) put_element(params, dtype, data, at);
    gm_json_end_array(params);
    return end(np, "literal", NULL, 0);
}

gm_array gm_np_number(gm_program *np, double value) {
    put_double(begin(np), value);
    return end(np, "number", NULL, 0);
}

gm_array gm_np_integer(gm_program *np, int64_t value) {
    gm_json_put_integer(begin(np), value);
    return end(np, "number", NULL, 0);
}

gm_array gm_np_full(gm_program *np, gm_shape shape, double value, gm_dtype dtype) {
    gm_json_writer *params = begin(np);
    put_double(params, value);
    put_shape(params, shape);
    put_dtype(params, dtype);
    return end(np, "full", NULL, 0);
}

gm_array gm_np_arange(gm_program *np, double start, double stop, double step, gm_dtype dtype) {
    gm_json_writer *params = begin(np);
    put_double(params, start);
    put_double(params, stop);
    put_double(params, step);
    put_dtype(params, dtype);
    return end(np, "arange", NULL, 0);
}

gm_array gm_np_linspace(gm_program *np, double start, double stop, uint32_t count, bool endpoint,
                        gm_dtype dtype) {
    gm_json_writer *params = begin(np);
    put_double(params, start);
    put_double(params, stop);
    gm_json_put_integer(params, count);
    gm_json_put_bool(params, endpoint);
    put_dtype(params, dtype);
    return end(np, "linspace", NULL, 0);
}

gm_array gm_np_eye(gm_program *np, uint32_t rows, uint32_t columns, int diagonal, gm_dtype dtype) {
    gm_json_writer *params = begin(np);
    gm_json_put_integer(params, rows);
    gm_json_put_integer(params, columns);
    gm_json_put_integer(params, diagonal);
    put_dtype(params, dtype);
    return end(np, "eye", NULL, 0);
}

// ---- Elements and axes ----

gm_array gm_np_astype(gm_program *np, gm_array x, gm_dtype dtype) {
    put_dtype(begin(np), dtype);
    return end1(np, "astype", x);
}

// An operation with one parameter, an integer or null.
static gm_array with_integer(gm_program *np, const char *op, gm_array x, int value) {
    put_integer_or_null(begin(np), value);
    return end1(np, op, x);
}

gm_array gm_np_round(gm_program *np, gm_array x, int decimals) {
    return with_integer(np, "round", x, decimals);
}

gm_array gm_np_clip(gm_program *np, gm_array x, gm_array min, gm_array max) {
    if (min.program) x = gm_np_maximum(np, x, min);
    return max.program ? gm_np_minimum(np, x, max) : x;
}

gm_array gm_np_reduce(gm_program *np, const char *op, gm_array x, gm_axes axes) {
    if (!are_axes(np, op, axes)) return (gm_array){np, 0};
    gm_json_writer *params = begin(np);
    put_axes(params, axes);
    gm_json_put_bool(params, axes.keepdims);
    return end1(np, op, x);
}

static gm_array deviation(gm_program *np, const char *op, gm_array x, gm_axes axes, double ddof) {
    if (!are_axes(np, op, axes)) return (gm_array){np, 0};
    gm_json_writer *params = begin(np);
    put_axes(params, axes);
    gm_json_put_bool(params, axes.keepdims);
    put_double(params, ddof);
    return end1(np, op, x);
}

gm_array gm_np_var(gm_program *np, gm_array x, gm_axes axes, double ddof) {
    return deviation(np, "var", x, axes, ddof);
}

gm_array gm_np_std(gm_program *np, gm_array x, gm_axes axes, double ddof) {
    return deviation(np, "std", x, axes, ddof);
}

gm_array gm_np_norm(gm_program *np, gm_array x, gm_axes axes) {
    // Squares of integers may not fit their dtype.
    gm_array floats = gm_np_multiply(np, x, gm_np_number(np, 1));
    return gm_np_sqrt(np, gm_np_sum(np, gm_np_square(np, floats), axes));
}

gm_array gm_np_cumsum(gm_program *np, gm_array x, int axis) {
    return with_integer(np, "cumulative_sum", x, axis);
}

gm_array gm_np_cumprod(gm_program *np, gm_array x, int axis) {
    return with_integer(np, "cumulative_prod", x, axis);
}

gm_array gm_np_softmax(gm_program *np, gm_array x, int axis) {
    return with_integer(np, "softmax", x, axis);
}

gm_array gm_np_normalize(gm_program *np, gm_array x, int axis) {
    return with_integer(np, "normalize", x, axis);
}

// ---- Order ----

static gm_array in_order(gm_program *np, const char *op, gm_array x, int axis, bool descending) {
    gm_json_writer *params = begin(np);
    put_integer_or_null(params, axis);
    gm_json_put_bool(params, descending);
    return end1(np, op, x);
}

gm_array gm_np_sort(gm_program *np, gm_array x, int axis, bool descending) {
    return in_order(np, "sort", x, axis, descending);
}

gm_array gm_np_argsort(gm_program *np, gm_array x, int axis, bool descending) {
    return in_order(np, "argsort", x, axis, descending);
}

gm_array gm_np_top_k(gm_program *np, gm_array x, uint32_t k, int axis, gm_array *places) {
    gm_json_writer *params = begin(np);
    put_integer_or_null(params, axis);
    gm_json_put_integer(params, k);
    gm_array found = end1(np, "argtopk", x);
    if (places) *places = found;
    return gm_np_take_along_axis(np, x, found, axis);
}

gm_array gm_np_argwhere(gm_program *np, gm_array x) {
    return gm_np_permute_dims(np, gm_np_nonzero(np, x), GM_ALL_AXES);
}

gm_array gm_np_flatnonzero(gm_program *np, gm_array x) {
    return gm_np_index(np, gm_np_nonzero(np, gm_np_ravel(np, x)), gm_at(0));
}

gm_array gm_np_searchsorted(gm_program *np, gm_array sorted, gm_array values, bool right) {
    return gm_np_step(np, right ? "searchsorted_right" : "searchsorted",
                      (const gm_array[]){sorted, values}, 2, NULL);
}

// ---- Parts and shapes ----

static void put_part(gm_json_writer *params, gm_index part) {
    switch (part.kind) {
    case GM_INDEX_AT:
        return gm_json_put_integer(params, part.start);
    case GM_INDEX_NEW_AXIS:
        return gm_json_put_null(params);
    case GM_INDEX_ELLIPSIS:
        return gm_json_put_string(params, "...");
    case GM_INDEX_BY:
        return gm_json_put_string(params, "array");
    default:
        gm_json_begin_array(params);
        put_integer_or_null(params, part.start);
        put_integer_or_null(params, part.stop);
        put_integer_or_null(params, part.step);
        gm_json_end_array(params);
    }
}

gm_array gm_np_index_parts(gm_program *np, gm_array x, const gm_index *parts, size_t count) {
    if (count > PARTS_MAX) {
        return FAIL_STEP(np, "index", "%zu parts are over the limit of %d", count, PARTS_MAX);
    }
    gm_array operands[PARTS_MAX + 1] = {x};
    size_t operands_count = 1;
    gm_json_writer *params = begin(np);
    gm_json_begin_array(params);
    for (size_t at = 0; at < count; at++) {
        put_part(params, parts[at]);
        if (parts[at].kind == GM_INDEX_BY) operands[operands_count++] = parts[at].array;
    }
    gm_json_end_array(params);
    return end(np, "index", operands, operands_count);
}

// One part of an index for the dimension `axis`, and all of the others. A new axis is counted among
// those of the result.
static gm_array index_at(gm_program *np, gm_array x, int axis, gm_index part) {
    if (axis < -PARTS_MAX || axis >= PARTS_MAX) {
        return FAIL_STEP(np, "index", "axis %d is out of bounds", axis);
    }
    gm_index parts[PARTS_MAX + 1];
    size_t count = 0;
    if (axis < 0) {
        parts[count++] = GM_ELLIPSIS;
        parts[count++] = part;
    }
    for (int at = axis < 0 ? axis + 1 : 0; at < (axis < 0 ? 0 : axis); at++) {
        parts[count++] = GM_WHOLE;
    }
    if (axis >= 0) parts[count++] = part;
    return gm_np_index_parts(np, x, parts, count);
}

gm_array gm_np_expand_dims(gm_program *np, gm_array x, int axis) {
    return index_at(np, x, axis, GM_NEW_AXIS);
}

gm_array gm_np_squeeze(gm_program *np, gm_array x, int axis) {
    // A mask of one element fits a dimension of length 1 only.
    gm_array mask = gm_np_array(np, GM_BOOL, GM_SHAPE(1), &(uint8_t){1}, 1);
    return index_at(np, index_at(np, x, axis, gm_by(mask)), axis, gm_at(0));
}

gm_array gm_np_take(gm_program *np, gm_array x, gm_array indices, int axis) {
    put_integer_or_null(begin(np), axis);
    return end2(np, "take", x, indices);
}

gm_array gm_np_take_along_axis(gm_program *np, gm_array x, gm_array indices, int axis) {
    put_integer_or_null(begin(np), axis);
    return end2(np, "take_along_axis", x, indices);
}

gm_array gm_np_reshape(gm_program *np, gm_array x, gm_shape shape) {
    gm_json_writer *params = begin(np);
    gm_json_begin_array(params);
    for (size_t axis = 0; axis < shape.rank && axis <= DIMENSIONS_MAX; axis++) {
        gm_json_put_integer(params, shape.dims[axis] == GM_ANY ? -1 : (int64_t)shape.dims[axis]);
    }
    gm_json_end_array(params);
    return end1(np, "reshape", x);
}

gm_array gm_np_ravel(gm_program *np, gm_array x) {
    return gm_np_reshape(np, x, GM_SHAPE(GM_ANY));
}

static gm_array with_axes(gm_program *np, const char *op, gm_array x, gm_axes axes) {
    if (!are_axes(np, op, axes)) return (gm_array){np, 0};
    put_axes(begin(np), axes);
    return end1(np, op, x);
}

gm_array gm_np_permute_dims(gm_program *np, gm_array x, gm_axes axes) {
    return with_axes(np, "permute_dims", x, axes);
}

gm_array gm_np_flip(gm_program *np, gm_array x, gm_axes axes) {
    return with_axes(np, "flip", x, axes);
}

gm_array gm_np_broadcast_to(gm_program *np, gm_array x, gm_shape shape) {
    put_shape(begin(np), shape);
    return end1(np, "broadcast_to", x);
}

gm_array gm_np_concat(gm_program *np, const gm_array *arrays, size_t count, int axis) {
    put_integer_or_null(begin(np), axis);
    return end(np, "concat", arrays, count);
}

gm_array gm_np_stack(gm_program *np, const gm_array *arrays, size_t count, int axis) {
    put_integer_or_null(begin(np), axis);
    return end(np, "stack", arrays, count);
}

gm_array gm_np_repeat(gm_program *np, gm_array x, uint32_t count, int axis) {
    gm_json_writer *params = begin(np);
    gm_json_put_integer(params, count);
    put_integer_or_null(params, axis);
    return end1(np, "repeat", x);
}

// ---- Products, classes, boxes ----

gm_array gm_np_dot(gm_program *np, gm_array x, gm_array y) {
    gm_json_put_bool(begin(np), true);
    return end2(np, "matmul", x, y);
}

gm_array gm_np_outer(gm_program *np, gm_array x, gm_array y) {
    gm_array column = gm_np_reshape(np, x, GM_SHAPE(GM_ANY, 1));
    return gm_np_multiply(np, column, gm_np_ravel(np, y));
}

gm_array gm_np_one_hot(gm_program *np, gm_array indices, uint32_t classes, gm_dtype dtype) {
    gm_json_writer *params = begin(np);
    gm_json_put_integer(params, classes);
    put_dtype(params, dtype);
    return end1(np, "one_hot", indices);
}

gm_array gm_np_nms(gm_program *np, gm_array boxes, gm_array scores, double overlap, double least,
                   int count) {
    gm_json_writer *params = begin(np);
    put_double(params, overlap);
    put_double(params, least);
    put_integer_or_null(params, count);
    return end2(np, "nms", boxes, scores);
}

// ---- Running ----

// Marks what the results need, and numbers it: tensors first. Returns the number of tensors.
static uint32_t number_nodes(gm_program *np, const gm_array *results, size_t count) {
    for (size_t at = 0; at < np->nodes_count; at++) np->nodes[at].is_needed = false;
    for (size_t at = 0; at < count; at++) np->nodes[results[at].number].is_needed = true;
    for (size_t at = np->nodes_count; at-- > 0;) {
        const node *step = &np->nodes[at];
        for (size_t operand = 0; step->is_needed && operand < step->operands_count; operand++) {
            np->nodes[np->operands[step->operands + operand]].is_needed = true;
        }
    }
    uint32_t tensors = 0, number;
    for (size_t at = 0; at < np->nodes_count; at++) {
        node *one = &np->nodes[at];
        if (one->is_needed && one->tensor) one->number = tensors++;
    }
    number = tensors;
    for (size_t at = 0; at < np->nodes_count; at++) {
        node *one = &np->nodes[at];
        if (one->is_needed && !one->tensor) one->number = number++;
    }
    return tensors;
}

static void put_step(gm_json_writer *text, const gm_program *np, const node *step) {
    gm_json_begin_array(text);
    gm_json_put_string(text, step->op);
    gm_json_begin_array(text);
    for (size_t at = 0; at < step->operands_count; at++) {
        gm_json_put_integer(text, np->nodes[np->operands[step->operands + at]].number);
    }
    gm_json_end_array(text);
    gm_json_put_raw_bytes(text, np->params.data + step->params, step->params_size);
    gm_json_end_array(text);
}

gm_status gm_np_write(gm_program *np, const gm_array *results, size_t count, gm_program_text *out) {
    if (!np->failure) {
        const char *why = wrong_operand(np, results, count);
        if (why) return gm_internal("arrays: the results: %s", why);
    }
    if (np->failure) return gm_internal("arrays: %s", np->failure);
    size_t tensors = number_nodes(np, results, count);
    out->tensors.ptr = gm_alloc(tensors * sizeof *out->tensors.ptr);
    out->tensors.len = tensors;
    gm_json_writer text = GM_JSON_WRITER;
    gm_json_begin_array(&text);
    for (size_t at = 0; at < np->nodes_count; at++) {
        const node *one = &np->nodes[at];
        if (!one->is_needed) continue;
        if (one->tensor) {
            out->tensors.ptr[one->number].__handle = gm_number_of(&one->tensor->handle);
        } else {
            put_step(&text, np, one);
        }
    }
    gm_json_end_array(&text);
    out->text = (imports_string_t){(uint8_t *)gm_copy(text.data, text.size), text.size};
    out->results.ptr = gm_alloc(count * sizeof *out->results.ptr);
    out->results.len = count;
    for (size_t at = 0; at < count; at++) {
        out->results.ptr[at] = np->nodes[results[at].number].number;
    }
    return GM_OK;
}

// A fault of the host. Its message begins with the name of the operation if it is of a step, whose
// number is that among the steps that were written.
static gm_status failure_of(const gm_program *np, size_t tensors, const fault *fault) {
    const char *message = gm_text_of(fault->message);
    size_t step = 0;
    for (size_t at = 0; at < np->nodes_count; at++) {
        const node *one = &np->nodes[at];
        if (one->tensor) continue;
        size_t length = strlen(one->op);
        bool is_it = one->is_needed && one->number == tensors + fault->step;
        if (is_it && strncmp(message, one->op, length) == 0 && message[length] == ':') {
            return gm_internal("arrays: step %zu, %s", step, message);
        }
        step++;
    }
    return gm_internal("arrays: %s", message);
}

gm_status gm_np_read(gm_program *np, gm_array array, gm_dtype dtype, gm_view *out) {
    gm_program_text program;
    GM_TRY(gm_np_write(np, &array, 1, &program));
    gristmill_plugin_arrays_elements_t found;
    fault why;
    if (!gristmill_plugin_arrays_read(&program.tensors, &program.text, program.results.ptr[0],
                                      &found, &why)) {
        return failure_of(np, program.tensors.len, &why);
    }
    if (found.dtype != (gristmill_plugin_arrays_dtype_t)dtype) {
        return gm_internal("the array is %s, wanted %s", gm_dtype_name((gm_dtype)found.dtype),
                           gm_dtype_name(dtype));
    }
    gm_shape shape = {found.shape.ptr, found.shape.len};
    *out = (gm_view){.dtype = dtype,
                     .shape = shape,
                     .count = gm_shape_elements(shape),
                     .size = found.data.len,
                     .data = found.data.ptr};
    return GM_OK;
}

gm_status gm_np_item(gm_program *np, gm_array array, double *out) {
    gm_view view;
    GM_TRY(gm_np_read(np, gm_np_astype(np, array, GM_FLOAT64), GM_FLOAT64, &view));
    if (view.count != 1) return gm_internal("an array of %zu elements is no number", view.count);
    *out = view.f64[0];
    return GM_OK;
}

gm_status gm_np_evaluate(gm_program *np, const gm_array *arrays, size_t count, gm_tensor **out) {
    gm_program_text program;
    GM_TRY(gm_np_write(np, arrays, count, &program));
    gristmill_plugin_arrays_list_made_t made;
    fault why;
    if (!gristmill_plugin_arrays_evaluate(&program.tensors, &program.text, &program.results, &made,
                                          &why)) {
        return failure_of(np, program.tensors.len, &why);
    }
    for (size_t at = 0; at < count; at++) {
        out[at] = gm_hold(GM_HANDLE_TENSOR, made.ptr[at].tensor.__handle);
    }
    return GM_OK;
}

gm_status gm_np_run(gm_program *np, gm_array array, gm_tensor **out) {
    return gm_np_evaluate(np, &array, 1, out);
}
