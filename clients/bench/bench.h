// sinew-bench: one mode a file, each with its own arguments and report. A new mode is one line in main.c.
//   mode_*.c                       the modes
//   bench_task*, bench_backend*    which task on which backend, with the arguments that say so
//   bench_multistart.*             multistarts of a task as the sessions of a daemon have them
//   bench_report.*                 progress, tables, JSON
//   driven_*                       a model under seeded smooth controls, for step, batch and gradient
//   step_profile*                  what stages of a step take, for step --profile
//   rollout_batch*                 many worlds at once, for step --worlds
//   gradient_inside*               gradients by any method, shares of their stages, for gradient
//   gradient_batch*                many gradients at once, for gradient --items
//   bench_user*                    backend and task as a user opens them, for mpc, compare, gradient and refine
//   bench_plan*                    a planner's plan, for refine
//   mujoco_rollout*                MuJoCo's own rollouts on several threads, for batch
//   closed_loop*, loop_plans*      planner and body in one process, for mpc and compare
#ifndef SINEW_CLIENTS_BENCH_BENCH_H_
#define SINEW_CLIENTS_BENCH_BENCH_H_

// Runs a mode; argv[0] is "sinew-bench MODE". Returns the exit status: 0 measured, 2 the model uses what is not
// supported, 3 it cannot be loaded.
int mode_step(int argc, char **argv);
int mode_mpc(int argc, char **argv);
int mode_compare(int argc, char **argv);
int mode_batch(int argc, char **argv);
int mode_gradient(int argc, char **argv);
int mode_device(int argc, char **argv);
int mode_refine(int argc, char **argv);
int mode_memory(int argc, char **argv);
int mode_sweep(int argc, char **argv);
int mode_integrate(int argc, char **argv);

#endif
