// A program of array operations as the host gets it.
#ifndef GM_ARRAYS_H
#define GM_ARRAYS_H

#include "handle.h"
#include "gristmill_arrays.h"

// What is left of a program if only the steps that the results need stay.
typedef struct {
    gristmill_plugin_arrays_list_borrow_tensor_t tensors;
    imports_string_t text; // a NUL follows
    imports_list_u32_t results;
} gm_program_text;

// GM_INTERNAL if a step was wrong.
gm_status gm_np_write(gm_program *np, const gm_array *results, size_t count, gm_program_text *out);

#endif
