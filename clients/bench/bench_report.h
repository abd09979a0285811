// What the modes of the benchmark share when they report: progress on the way, JSON and tables at the end.
#ifndef SINEW_CLIENTS_BENCH_BENCH_REPORT_H_
#define SINEW_CLIENTS_BENCH_BENCH_REPORT_H_

#include <cjson/cJSON.h>
#include <stdbool.h>

// Says on standard error where the program is: in place and at most three times a second on a terminal, else a line
// every ten seconds; nothing for what is quick.
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The end of progress.
void bench_progress_end(void);

// Prints o on standard output and deletes it; on one line or on several.
void bench_print_json(cJSON *o, bool one_line);

// A number for a table, "-" for NaN, into text[24].
const char *bench_number(double x, int decimals, char text[24]);

// Ratios a[i] / b[i] of n rounds: their median, least and largest.
typedef struct BenchRatio {
  double median, low, high;
} BenchRatio;
BenchRatio bench_ratio(const double *a, const double *b, int n);

#endif
