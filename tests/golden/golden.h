// Named hashes of results, and the file of those that are expected.
#ifndef SINEW_TESTS_GOLDEN_GOLDEN_H_
#define SINEW_TESTS_GOLDEN_GOLDEN_H_

#include <stdio.h>

#include "tests/support/oracle.h"

// Numbers on their way into one hash.
typedef struct Hash Hash;
Hash *hash_new(void);
// Ends it and frees it. 0 where there was no number.
uint64_t hash_end(Hash *h);
// Doubles by their bits; all NaN are one.
void hash_doubles(Hash *h, const double *x, size_t n);
void hash_ints(Hash *h, const int *x, size_t n);

// Reads the expected hashes, lines "NAME HASH" and comments; false, having said why, when it cannot. With `out` lines
// go there, and none is expected.
bool golden_open(const char *path, FILE *out);
// Takes a line, named GROUP/MODEL or GROUP/MODEL/DETAIL as by printf; hash 0: none. Compares it with the expected one,
// and with an earlier line of the same name. golden_failures counts those that differ.
void golden_line(uint64_t hash, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Takes it for granted that the lines of a model are not there, and says why.
void golden_skip(const char *model, const char *why);
// Returns whether a model is here as it was when the hashes were recorded. MuJoCo's own numbers decide; when they
// differ the model's lines are skipped. Takes the line of the model as the engine has it.
bool golden_model(const char *model, const SnOracle *o);
// Returns false, and says so, when the functions of libm give other bits than those of the recording.
bool golden_libm(void);
// Return the number of lines that differ or are not in the file; at the end also of those that nothing computed.
int golden_failures(void);
int golden_close(void);

// Holds a model with every supported kind of sensor; those of names s0, s1, ... have a gradient.
enum { GOLDEN_SENSORS = 21 };
extern const char golden_sensors[];

// Compute the two halves of the lines, each as a cmocka test.
void golden_steps(void **state);
void golden_plans(void **state);

#endif
