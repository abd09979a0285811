// Reports of the modes: JSON and tables at the end. One thread.
#ifndef SINEW_CLIENTS_BENCH_BENCH_REPORT_H_
#define SINEW_CLIENTS_BENCH_BENCH_REPORT_H_

#include <cjson/cJSON.h>
#include <stdbool.h>

enum { BENCH_ROUNDS = 1000 };  // most rounds of a measurement

// Says on standard error why a model was not measured. Reasons of files that are read begin with its path; it is told
// once.
void bench_report_failure(const char *model, const char *why);

// Prints o on standard output, on one line or on several, and deletes it.
void bench_print_json(cJSON *o, bool one_line);

// Prints a line where MuJoCo's solver, by its name, is another one than ours: their times compare solvers, too.
void bench_solver_print(const char *mujoco);

// Prints shares of stages as a table on standard output.
void bench_stage_print(const cJSON *shares);

// Writes a number for a table into text[24], "-" for NaN, and returns text.
const char *bench_number(double x, int decimals, char text[24]);

// Holds the median, the least and the largest of the ratios of several rounds.
typedef struct BenchRatio {
  double median, low, high;
} BenchRatio;
// Summarises the ratios a[i] / b[i] of n rounds; n is at most BENCH_ROUNDS.
BenchRatio bench_ratio(const double *a, const double *b, int n);

#endif
