// Memory that lives until the call returns, and texts of log lines, which are freed at once.
#include <stdio.h>
#include <string.h>

#include "../src/memory.h"
#include "gristmill_host.h"

// More than the arena has, in a block of malloc with some room left.
#define FULL (200 << 10)
// A block of its own.
#define LARGE (1 << 20)

// Whether the memory of the next allocation is the same after `make` as before it.
static bool leaves_nothing(void (*make)(void)) {
    gm_mark mark = gm_mark_memory();
    void *before = gm_alloc(1);
    gm_release_since(mark);
    make();
    mark = gm_mark_memory();
    void *after = gm_alloc(1);
    gm_release_since(mark);
    return before == after;
}

static void log_short_lines(void) {
    for (int line = 0; line < 100; line++) gm_log(GM_INFO, "line %d of %s", line, "many");
    for (int line = 0; line < 100; line++) GM_LOG(GM_INFO, "line", {"of", "many"}, {"b", "c"});
}

static void log_long_lines(void) {
    for (int line = 0; line < 100; line++) gm_log(GM_INFO, "%*d", LARGE, line);
}

static void keep_a_byte(void) {
    gm_alloc(1);
}

static void texts_of_log_lines_are_freed_at_once(void) {
    assert(!leaves_nothing(keep_a_byte));
    assert(leaves_nothing(log_short_lines));
    assert(leaves_nothing(log_long_lines));
    // Also if the arena is full.
    gm_alloc(FULL);
    assert(leaves_nothing(log_short_lines));
    assert(leaves_nothing(log_long_lines));
    gm_host_reset();
}

static void what_was_made_before_a_mark_stays(void) {
    char *small = gm_copy("small", 5);
    char *full = memset(gm_alloc(FULL), 'f', FULL);
    gm_mark outer = gm_mark_memory();
    char *between = gm_copy("between", 7);
    gm_mark inner = gm_mark_memory();
    memset(gm_alloc(LARGE), 'x', LARGE);
    memset(gm_alloc(100), 'x', 100);
    gm_release_since(inner);
    assert(strcmp(between, "between") == 0);
    gm_release_since(outer);
    assert(gm_copy("another", 7) == between);
    assert(strcmp(small, "small") == 0 && full[0] == 'f' && full[FULL - 1] == 'f');
    gm_release_memory();
}

int main(void) {
    texts_of_log_lines_are_freed_at_once();
    what_was_made_before_a_mark_stays();
    puts("memory_test: passed");
}
