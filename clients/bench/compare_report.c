#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/bench/compare_private.h"

// How many cells of a mode and planner are done.
static int count_done(Compare *x, int mode, int planner) {
  int n = 0;
  for (int s = 0; compare_asks(x, mode, planner) && s < x->seeds; ++s) n += *compare_cell(x, mode, planner, s) != NULL;
  return n;
}

// How many of the seeds of a mode and planner were solved, as "4/5".
static void count_solved(Compare *x, int mode, int planner, char share[32]) {
  int solved = 0;
  for (int s = 0; s < x->seeds; ++s)
    solved += cJSON_IsTrue(cJSON_GetObjectItem(*compare_cell(x, mode, planner, s), "success"));
  snprintf(share, 32, "%d/%d", solved, count_done(x, mode, planner));
}

void compare_print_markdown(Compare *x) {
  printf(
      "| task | planner | solved | mean cost, median | cost at the end, median: all seeds | iterations a plan | "
      "candidates | "
      "ms a plan | processor ms a plan |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      char share[32];
      if (count_done(x, m, p) == 0) continue;
      count_solved(x, m, p, share);
      printf("| `%s` | %s%s%s | %s | %.4g | %.4g:", x->c.task, compare_name(x, m, p), x->equal ? "" : ", equal ",
             x->equal ? "" : compare_modes[m], share, compare_median(x, m, p, "cost_mean"),
             compare_median(x, m, p, "cost_end"));
      for (int s = 0; s < x->seeds; ++s)
        if (*compare_cell(x, m, p, s)) printf(" %.3g", compare_number(*compare_cell(x, m, p, s), "cost_end"));
      printf(" | %.1f | %.0f | %.1f | %.1f |\n", compare_median(x, m, p, "iterations"),
             compare_median(x, m, p, "candidates"), compare_median(x, m, p, "ms_per_plan"),
             compare_median(x, m, p, "cpu_ms_per_plan"));
    }
}

void compare_print_table(Compare *x) {
  printf("%s, %g s, %d seeds", x->c.task, x->c.seconds, x->seeds);
  if (x->processor)
    printf("; equal time: of the processor\n\n");
  else
    printf("; equal time: %.4g ms a plan\n\n", 1e3 * compare_plan_seconds(x));
  printf("%-6s %-14s %7s %12s %12s %12s %10s\n", "equal", "planner", "solved", "cost at end", "mean cost", "ms a plan",
         "iterations");
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      char share[32];
      if (count_done(x, m, p) == 0) continue;
      count_solved(x, m, p, share);
      printf("%-6s %-14s %7s %12.5g %12.5g %12.2f %10.1f\n", compare_modes[m], compare_name(x, m, p), share,
             compare_median(x, m, p, "cost_end"), compare_median(x, m, p, "cost_mean"),
             compare_median(x, m, p, "ms_per_plan"), compare_median(x, m, p, "iterations"));
    }
  printf("\nMedians over the seeds.\n");
}

// Whether a planner has a colour, as it has cells in any mode.
static bool is_drawn(Compare *x, int planner) {
  return count_done(x, COMPARE_STEPS, planner) + count_done(x, COMPARE_TIME, planner) > 0;
}

// Whether a mode has a plot.
static bool has_plot(Compare *x, int mode) {
  int n = 0;
  for (int p = 0; p < x->nplanner; ++p) n += count_done(x, mode, p);
  return n > 0;
}

// The mean, the least and the largest over the seeds of the cost at each time: a block of "time cost least largest" a
// planner and mode, apart by two blank lines, as gnuplot reads them by index. It ends where the first of the seeds has
// diverged: a mean of the others would look better than it is. False when the file cannot be written.
static bool write_curves(Compare *x, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      if (!is_drawn(x, p) || !has_plot(x, m)) continue;
      const cJSON *first = NULL;
      for (int s = 0; s < x->seeds && !first; ++s) first = *compare_cell(x, m, p, s);
      const int n = first ? cJSON_GetArraySize(cJSON_GetObjectItem(first, "time")) : 0;
      fprintf(out, "# equal %s, %s\n", compare_modes[m], x->planner[p].name);
      int written = 0;
      for (int i = 0; i < n; ++i) {
        double sum = 0, least = INFINITY, largest = -INFINITY;
        int k = 0;
        for (int s = 0; s < x->seeds; ++s) {
          const cJSON *o = *compare_cell(x, m, p, s);
          const cJSON *c = o ? cJSON_GetArrayItem(cJSON_GetObjectItem(o, "cost"), i) : NULL;
          if (!cJSON_IsNumber(c)) continue;
          sum += c->valuedouble;
          ++k;
          least = fmin(least, c->valuedouble);
          largest = fmax(largest, c->valuedouble);
        }
        const double time = cJSON_GetArrayItem(cJSON_GetObjectItem(first, "time"), i)->valuedouble;
        if (k < count_done(x, m, p)) break;
        fprintf(out, "%.6g %.9g %.9g %.9g\n", time, sum / k, least, largest);
        ++written;
      }
      if (written == 0) fprintf(out, "nan nan nan nan\n");  // a block without a line is none
      fprintf(out, "\n\n");
    }
  return fclose(out) == 0;
}

static const char script[] =
    "if (ARG2[strlen(ARG2)-3:*] eq '.svg') {\n"
    "  set terminal svg noenhanced size 1100,500 font 'sans,11' background 'white'\n"
    "} else {\n"
    "  set terminal pngcairo noenhanced size 1100,500 font 'sans,11'\n"
    "}\n"
    "set output ARG2\n"
    "both = ARG6 eq ''\n"
    "set multiplot layout 1,(both ? 2 : 1) title ARG3 font ',14'\n"
    "set grid lc rgb '#dddddd'\n"
    "set logscale y\n"
    "set format y '%g'\n"
    "set key below\n"
    "set xlabel 'time [s]'\n"
    "set ylabel 'cost: mean of the seeds, and all of them'\n"
    "set style fill transparent solid 0.12 noborder\n"
    "n = int(ARG4)\n"
    "do for [m=0:both] {\n"
    "  set title (both ? m == 0 : ARG6 eq 'steps') ? 'equal plan steps' : 'equal planning time'\n"
    "  plot for [p=0:n-1] ARG1 index (m*n+p) using 1:3:4 with filledcurves lc p+1 notitle, \\\n"
    "    for [p=0:n-1] ARG1 index (m*n+p) using 1:2 with lines lw 2 lc p+1 title word(ARG5, p+1)\n"
    "}\n"
    "unset multiplot\n";

// Runs gnuplot and waits. False when it is missing or fails.
static bool run_gnuplot(char *const arguments[]) {
  pid_t pid;
  int status;
  if (posix_spawnp(&pid, "gnuplot", NULL, NULL, arguments, environ) != 0) return false;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool compare_draw(Compare *x) {
  char curves[] = "/tmp/sinew-compare.XXXXXX", commands[] = "/tmp/sinew-compare.XXXXXX", title[300], count[16],
       names[300] = "";
  const bool both = has_plot(x, COMPARE_STEPS) && has_plot(x, COMPARE_TIME);
  const int mode = has_plot(x, COMPARE_STEPS) ? COMPARE_STEPS : COMPARE_TIME;  // the first that is drawn
  int n = 0;
  for (int p = 0; p < x->nplanner; ++p) {
    if (!is_drawn(x, p)) continue;
    const size_t at = strlen(names);
    snprintf(names + at, sizeof names - at, "%s%s", n++ ? " " : "", compare_name(x, mode, p));
  }
  snprintf(title, sizeof title, "%s, %d seeds", x->c.task, x->seeds);
  snprintf(count, sizeof count, "%d", n);
  const char *only = both ? "" : compare_modes[mode];
  const int fd = mkstemp(commands), other = mkstemp(curves);
  bool ok = fd >= 0 && other >= 0 && write(fd, script, sizeof script - 1) == (ssize_t)sizeof script - 1 &&
            write_curves(x, curves);
  char *const arguments[] = {
      (char *)"gnuplot",       (char *)"-c", commands, curves, (char *)(uintptr_t)x->picture, title, count, names,
      (char *)(uintptr_t)only, NULL};
  ok = ok && run_gnuplot(arguments);
  if (fd >= 0) close(fd);
  if (other >= 0) close(other);
  unlink(commands);
  unlink(curves);
  return ok;
}
