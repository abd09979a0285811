// sinew-bench: one mode a file, each with its own arguments and report. A new mode is one line in bench.c.
#ifndef SINEW_CLIENTS_BENCH_BENCH_H_
#define SINEW_CLIENTS_BENCH_BENCH_H_

// Runs a mode: argv[0] is "sinew-bench MODE". Returns the exit status: 0 measured, 2 the model uses what is not
// supported, 3 it cannot be loaded.
int mode_step(int argc, char **argv);
int mode_mpc(int argc, char **argv);
int mode_compare(int argc, char **argv);
int mode_gradient(int argc, char **argv);
int mode_refine(int argc, char **argv);
int mode_sweep(int argc, char **argv);

#endif
