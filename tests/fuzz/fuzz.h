// A fuzz target, fuzz_NAME.c, has fuzz_one, fuzz_seed and fuzz_missing. replay.c runs it without a fuzz engine,
// engine.c under libFuzzer.
#ifndef SINEW_TESTS_FUZZ_FUZZ_H_
#define SINEW_TESTS_FUZZ_FUZZ_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_SEED_BYTES = 1 << 16 };

// Runs the target on one input. It aborts when something is wrong that no sanitizer sees.
void fuzz_one(const uint8_t *data, size_t size);

// Writes seed i, 0 <= i, into bytes[FUZZ_SEED_BYTES], and returns its size; 0: there is no such seed, and none after
// it.
size_t fuzz_seed(int i, uint8_t *bytes);

// Returns what no input has reached so far, of what seeds lead to as they are; NULL: nothing. A target whose seeds are
// turned away at its door tests nothing behind it.
const char *fuzz_missing(void);

// Holds what a target sets before its first input returns, if its inputs go on from each other. Others leave both
// NULL: an input alone decides what they do.
extern const char *fuzz_inputs;  // folder of the inputs that led to the present state, in their order, this one last
extern void (*fuzz_anew)(void);  // forgets all inputs: the next one is like the first of a process

// Runs the target on one input and measures this thread's processor time. The first one of a process does not count: it
// sets up what the target works on. One that takes longer than 100 ms is kept in the folder that FUZZ_SLOW names. It is
// a file there, or a folder with all inputs that led to it.
void fuzz_timed(const uint8_t *data, size_t size);
// Prints what the slowest input so far took, if one counted.
void fuzz_tell_slowest(void);

// Says on standard error what is wrong, and where the inputs are that led to it, and aborts.
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Makes a file of these bytes, mode 0600, in memory, and returns its path. The next call makes another one in its
// place.
const char *fuzz_file(const void *bytes, size_t size);

// Copies a file into bytes[FUZZ_SEED_BYTES], cut where it is too long, and returns its size; aborts when it is not
// there.
size_t fuzz_read(const char *path, uint8_t *bytes);

// Copies a text as fuzz_seed does its seed.
size_t fuzz_text(const char *text, uint8_t *bytes);

#endif
