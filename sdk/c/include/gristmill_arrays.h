// Array operations with NumPy's names and rules, which the host runs at native speed.
//
//     gm_program *np = gm_np_begin();
//     gm_array scores = gm_np_softmax(np, gm_np_tensor(np, output), 1);
//     gm_view best;
//     GM_TRY(gm_np_read(np, gm_np_max(np, scores, gm_axis(1)), GM_FLOAT32, &best));
//
// A function that gives a gm_array only notes a step of a program. gm_np_read, gm_np_item,
// gm_np_run and gm_np_evaluate run it: the steps that their results need, in one call of the host.
// Each of them begins anew, so get what belongs together by one gm_np_evaluate.
//
// Errors. The first wrong step is kept in the program, and whatever runs it fails with it:
// GM_INTERNAL. So is a fault of the host. "arrays: step 3, matmul: ..." counts steps from 0.
//
// Memory of a program belongs to the call. It has at most 4096 steps and tensors; arrays have at
// most 8 dimensions. The guide numpy.md lists the operations and the differences from NumPy.
#ifndef GRISTMILL_ARRAYS_H
#define GRISTMILL_ARRAYS_H

#include "gristmill_plugin.h"

// The steps that were noted, and the tensors that they read.
typedef struct gm_program gm_program;

// An array of a program: a tensor, a number, or what a step makes.
typedef struct {
    const gm_program *program;
    uint32_t number;
} gm_array;

// No array, where one may be left out.
#define GM_NO_ARRAY ((gm_array){NULL, 0})

// NumPy's None: no axis (then the array is flat), an open end of a slice, no bound.
#define GM_NONE INT32_MIN

// Axes of an array; -1 is the last one.
typedef struct {
    int items[8];
    size_t count; // 0 means all
    bool keepdims;
} gm_axes;

#define GM_ALL_AXES ((gm_axes){.count = 0})
#define GM_AXES(...)                   \
    ((gm_axes){.items = {__VA_ARGS__}, \
               .count = sizeof((int[]){__VA_ARGS__}) / sizeof(int)})

static inline gm_axes gm_axis(int axis) {
    return (gm_axes){.items = {axis}, .count = 1};
}

// The same axes, which stay in the result with length 1.
static inline gm_axes gm_keepdims(gm_axes axes) {
    axes.keepdims = true;
    return axes;
}

// ---- Programs -----------------------------------------------------------------------------------

// A program without steps.
gm_program *gm_np_begin(void);

// Notes any operation. `op` is a literal, and `params` the parameters as a list in JSON, as "[1]",
// or NULL. The functions below do this.
gm_array gm_np_step(gm_program *np, const char *op, const gm_array *operands, size_t count,
                    const char *params);

// Runs the steps that `array` needs, and copies its elements. GM_INTERNAL if it has another dtype.
gm_status gm_np_read(gm_program *np, gm_array array, gm_dtype dtype, gm_view *out);

// The number in an array of one element, of any dtype, as a double.
gm_status gm_np_item(gm_program *np, gm_array array, double *out);

// A new tensor of the call. Its elements stay on the host.
gm_status gm_np_run(gm_program *np, gm_array array, gm_tensor **out);

// A new tensor for each of `count` arrays, by one run. At a failure `out` is left as it was.
gm_status gm_np_evaluate(gm_program *np, const gm_array *arrays, size_t count, gm_tensor **out);

// ---- Making arrays ------------------------------------------------------------------------------

// A tensor as an array. It stays the caller's, who may not give it away before the program is run.
gm_array gm_np_tensor(gm_program *np, const gm_tensor *tensor);

// An array of the plugin's memory, as gm_tensor_create takes it. Up to 256 elements are a part of
// the program, more become a tensor.
gm_array gm_np_array(gm_program *np, gm_dtype dtype, gm_shape shape, const void *data, size_t size);

// A number. It takes the dtype of the array that it meets. The first is a float, as 2.0 in Python:
// with an array of integers it gives float64.
gm_array gm_np_number(gm_program *np, double value);
gm_array gm_np_integer(gm_program *np, int64_t value);

gm_array gm_np_full(gm_program *np, gm_shape shape, double value, gm_dtype dtype);

static inline gm_array gm_np_zeros(gm_program *np, gm_shape shape, gm_dtype dtype) {
    return gm_np_full(np, shape, 0, dtype);
}

static inline gm_array gm_np_ones(gm_program *np, gm_shape shape, gm_dtype dtype) {
    return gm_np_full(np, shape, 1, dtype);
}

// Numbers from `start` up to, not including, `stop`.
gm_array gm_np_arange(gm_program *np, double start, double stop, double step, gm_dtype dtype);

// `count` numbers at equal distances, `stop` the last of them if `endpoint`.
gm_array gm_np_linspace(gm_program *np, double start, double stop, uint32_t count, bool endpoint,
                        gm_dtype dtype);

// Ones on a diagonal, 0 the main one, above it positive.
gm_array gm_np_eye(gm_program *np, uint32_t rows, uint32_t columns, int diagonal, gm_dtype dtype);

// ---- Each element by itself ---------------------------------------------------------------------

#define GM_NP_UNARY(name_)                                             \
    static inline gm_array gm_np_##name_(gm_program *np, gm_array x) { \
        return gm_np_step(np, #name_, &x, 1, NULL);                    \
    }

#define GM_NP_BINARY(name_)                                                        \
    static inline gm_array gm_np_##name_(gm_program *np, gm_array x, gm_array y) { \
        return gm_np_step(np, #name_, (const gm_array[]){x, y}, 2, NULL);          \
    }

// gm_array gm_np_negative(gm_program *np, gm_array x);
GM_NP_UNARY(negative)
GM_NP_UNARY(absolute)
GM_NP_UNARY(sign)
GM_NP_UNARY(square)
GM_NP_UNARY(floor)
GM_NP_UNARY(ceil)
GM_NP_UNARY(trunc)
GM_NP_UNARY(rint)
GM_NP_UNARY(isnan)
GM_NP_UNARY(isinf)
GM_NP_UNARY(isfinite)
GM_NP_UNARY(logical_not)
GM_NP_UNARY(invert)
GM_NP_UNARY(exp)
GM_NP_UNARY(exp2)
GM_NP_UNARY(expm1)
GM_NP_UNARY(log)
GM_NP_UNARY(log2)
GM_NP_UNARY(log10)
GM_NP_UNARY(log1p)
GM_NP_UNARY(sqrt)
GM_NP_UNARY(reciprocal)
GM_NP_UNARY(sigmoid)
GM_NP_UNARY(sin)
GM_NP_UNARY(cos)
GM_NP_UNARY(tan)
GM_NP_UNARY(arcsin)
GM_NP_UNARY(arccos)
GM_NP_UNARY(arctan)
GM_NP_UNARY(sinh)
GM_NP_UNARY(cosh)
GM_NP_UNARY(tanh)

// gm_array gm_np_add(gm_program *np, gm_array x, gm_array y);
GM_NP_BINARY(add)
GM_NP_BINARY(subtract)
GM_NP_BINARY(multiply)
GM_NP_BINARY(divide)
GM_NP_BINARY(floor_divide)
GM_NP_BINARY(remainder)
GM_NP_BINARY(power)
GM_NP_BINARY(minimum)
GM_NP_BINARY(maximum)
GM_NP_BINARY(hypot)
GM_NP_BINARY(arctan2)
GM_NP_BINARY(equal)
GM_NP_BINARY(not_equal)
GM_NP_BINARY(less)
GM_NP_BINARY(less_equal)
GM_NP_BINARY(greater)
GM_NP_BINARY(greater_equal)
GM_NP_BINARY(logical_and)
GM_NP_BINARY(logical_or)
GM_NP_BINARY(logical_xor)
GM_NP_BINARY(bitwise_and)
GM_NP_BINARY(bitwise_or)
GM_NP_BINARY(bitwise_xor)
GM_NP_BINARY(left_shift)
GM_NP_BINARY(right_shift)

// The same values in another dtype. They saturate, as by gm_tensor_cast.
gm_array gm_np_astype(gm_program *np, gm_array x, gm_dtype dtype);

// To so many decimals; a half goes to the even digit.
gm_array gm_np_round(gm_program *np, gm_array x, int decimals);

// `x` where the condition is true, `y` elsewhere.
static inline gm_array gm_np_where(gm_program *np, gm_array condition, gm_array x, gm_array y) {
    return gm_np_step(np, "where", (const gm_array[]){condition, x, y}, 3, NULL);
}

// No less than `min`, no more than `max`. Either may be GM_NO_ARRAY.
gm_array gm_np_clip(gm_program *np, gm_array x, gm_array min, gm_array max);

// ---- Along axes ---------------------------------------------------------------------------------

// A reduction by its name.
gm_array gm_np_reduce(gm_program *np, const char *op, gm_array x, gm_axes axes);

#define GM_NP_REDUCTION(name_)                                                       \
    static inline gm_array gm_np_##name_(gm_program *np, gm_array x, gm_axes axes) { \
        return gm_np_reduce(np, #name_, x, axes);                                    \
    }

// gm_array gm_np_sum(gm_program *np, gm_array x, gm_axes axes);
GM_NP_REDUCTION(sum)
GM_NP_REDUCTION(prod)
GM_NP_REDUCTION(mean)
GM_NP_REDUCTION(min)
GM_NP_REDUCTION(max)
GM_NP_REDUCTION(argmin)
GM_NP_REDUCTION(argmax)
GM_NP_REDUCTION(any)
GM_NP_REDUCTION(all)
GM_NP_REDUCTION(count_nonzero)

// The divisor is the number of elements without `ddof`.
gm_array gm_np_var(gm_program *np, gm_array x, gm_axes axes, double ddof);
gm_array gm_np_std(gm_program *np, gm_array x, gm_axes axes, double ddof);

// The Euclidean length, as np.linalg.norm gives it.
gm_array gm_np_norm(gm_program *np, gm_array x, gm_axes axes);

// The sums up to each element along an axis; GM_NONE: of the flat array.
gm_array gm_np_cumsum(gm_program *np, gm_array x, int axis);

// The products of all elements up to each.
gm_array gm_np_cumprod(gm_program *np, gm_array x, int axis);

// 1, divided among the elements along an axis by their powers of e; GM_NONE: among all.
gm_array gm_np_softmax(gm_program *np, gm_array x, int axis);

// Divided by the Euclidean length along an axis. What has length 0 stays as it is.
gm_array gm_np_normalize(gm_program *np, gm_array x, int axis);

// ---- Order --------------------------------------------------------------------------------------

// In order along an axis, NaN last. argsort gives places; equal elements stay in their order.
gm_array gm_np_sort(gm_program *np, gm_array x, int axis, bool descending);
gm_array gm_np_argsort(gm_program *np, gm_array x, int axis, bool descending);

// The `k` largest elements along an axis, largest first. `places` may be NULL.
gm_array gm_np_top_k(gm_program *np, gm_array x, uint32_t k, int axis, gm_array *places);

// The different elements in order, and how often each is there.
GM_NP_UNARY(unique_values)
GM_NP_UNARY(unique_counts)

// The places of the elements that are not 0, as int64 [dimensions, count].
GM_NP_UNARY(nonzero)

// The same as [count, dimensions], and of the flat array as [count].
gm_array gm_np_argwhere(gm_program *np, gm_array x);
gm_array gm_np_flatnonzero(gm_program *np, gm_array x);

// Where in `sorted` each value would be put in, behind equal elements if `right`.
gm_array gm_np_searchsorted(gm_program *np, gm_array sorted, gm_array values, bool right);

// ---- Parts --------------------------------------------------------------------------------------

// One part of an index.
typedef struct {
    enum { GM_INDEX_AT, GM_INDEX_SLICE, GM_INDEX_NEW_AXIS, GM_INDEX_ELLIPSIS, GM_INDEX_BY } kind;
    int start; // of GM_INDEX_AT, too
    int stop;
    int step;
    gm_array array;
} gm_index;

// In Python `:`, `None` and `...`.
#define GM_WHOLE gm_slice(GM_NONE, GM_NONE)
#define GM_NEW_AXIS ((gm_index){.kind = GM_INDEX_NEW_AXIS})
#define GM_ELLIPSIS ((gm_index){.kind = GM_INDEX_ELLIPSIS})

// One place; -1 is the last one.
static inline gm_index gm_at(int place) {
    return (gm_index){.kind = GM_INDEX_AT, .start = place};
}

// start:stop:step, each GM_NONE if it is left out.
static inline gm_index gm_slice_by(int start, int stop, int step) {
    return (gm_index){.kind = GM_INDEX_SLICE, .start = start, .stop = stop, .step = step};
}

static inline gm_index gm_slice(int start, int stop) {
    return gm_slice_by(start, stop, GM_NONE);
}

// Places, or a mask.
static inline gm_index gm_by(gm_array array) {
    return (gm_index){.kind = GM_INDEX_BY, .array = array};
}

// A part of an array: x[:, 4:] is gm_np_index(np, x, GM_WHOLE, gm_slice(4, GM_NONE)).
#define gm_np_index(np, x, ...)                                       \
    gm_np_index_parts((np), (x), (const gm_index[]){__VA_ARGS__}, \
                      sizeof((gm_index[]){__VA_ARGS__}) / sizeof(gm_index))
gm_array gm_np_index_parts(gm_program *np, gm_array x, const gm_index *parts, size_t count);

// The elements at these places along an axis; GM_NONE: of the flat array.
gm_array gm_np_take(gm_program *np, gm_array x, gm_array indices, int axis);

// For each place of `indices`, the element that it names along the axis.
gm_array gm_np_take_along_axis(gm_program *np, gm_array x, gm_array indices, int axis);

// ---- Shapes -------------------------------------------------------------------------------------

// Another shape of as many elements. One dimension may be GM_ANY.
gm_array gm_np_reshape(gm_program *np, gm_array x, gm_shape shape);

// All elements along one dimension.
gm_array gm_np_ravel(gm_program *np, gm_array x);

// The dimensions in another order; GM_ALL_AXES: in the opposite one.
gm_array gm_np_permute_dims(gm_program *np, gm_array x, gm_axes axes);

// With a new dimension of length 1 at `axis`, and without the one at `axis`, which has length 1.
// gm_np_squeeze copies; gm_np_index with gm_at(0) does not check the length.
gm_array gm_np_expand_dims(gm_program *np, gm_array x, int axis);
gm_array gm_np_squeeze(gm_program *np, gm_array x, int axis);

// Repeated along new dimensions and those of length 1.
gm_array gm_np_broadcast_to(gm_program *np, gm_array x, gm_shape shape);

// Arrays one after another along an axis, GM_NONE: all flat; and along a new axis. At most 1024.
gm_array gm_np_concat(gm_program *np, const gm_array *arrays, size_t count, int axis);
gm_array gm_np_stack(gm_program *np, const gm_array *arrays, size_t count, int axis);

// Each element `count` times along an axis; GM_NONE: of the flat array.
gm_array gm_np_repeat(gm_program *np, gm_array x, uint32_t count, int axis);

// In the opposite order along these axes.
gm_array gm_np_flip(gm_program *np, gm_array x, gm_axes axes);

// ---- Products, classes, boxes -------------------------------------------------------------------

// The product of matrices; a vector is a row on the left and a column on the right. gm_np_dot also
// takes arrays without dimensions.
GM_NP_BINARY(matmul)
gm_array gm_np_dot(gm_program *np, gm_array x, gm_array y);

// The product of each element of one with each of the other.
gm_array gm_np_outer(gm_program *np, gm_array x, gm_array y);

// 1 at each index along a new last axis, 0 elsewhere.
gm_array gm_np_one_hot(gm_program *np, gm_array indices, uint32_t classes, gm_dtype dtype);

// Which boxes [n, 4] (x1, y1, x2, y2) stay, best first, as torchvision.ops.nms: one goes if it
// overlaps a better one that stays by more than `overlap`. A score is at least `least` (-INFINITY:
// any), and at most `count` stay (GM_NONE: all).
gm_array gm_np_nms(gm_program *np, gm_array boxes, gm_array scores, double overlap, double least,
                   int count);

#endif
