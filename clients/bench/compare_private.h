// Compares planners on one task, each with several seeds, in two modes. At equal plan steps each plan has the
// iterations that its settings say; else each has equal computing time. Every cell is a line of JSON as it ends. A run
// that was broken off goes on after the cells that its file has.
//   mode_compare.c    arguments, and the planners that there are
//   compare_cells.c   the file and the runs
//   compare_subject.c what task and model say, as a number
//   compare_work.c    how many iterations or candidates take as much processor time as a plan of the task's own planner
//   compare_report.c  tables and the picture
#ifndef SINEW_CLIENTS_BENCH_COMPARE_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_COMPARE_PRIVATE_H_

#include <stdbool.h>
#include <stdio.h>

#include "clients/bench/closed_loop_private.h"

enum { COMPARE_PLANNERS = 16, COMPARE_MODES = 2, COMPARE_SEEDS = 100, COMPARE_SETTINGS = 3, COMPARE_TEXT = 200 };
enum { COMPARE_CELLS = COMPARE_PLANNERS * COMPARE_MODES * COMPARE_SEEDS };
enum { COMPARE_STEPS, COMPARE_TIME };  // modes

// Names a planner, and what sets it apart from the task's settings.
typedef struct ComparePlanner {
  const char *name;
  const char *settings[COMPARE_SETTINGS];
} ComparePlanner;

// Holds a comparison: what is asked for, and the cells that are done.
typedef struct Compare {
  BenchTaskArgs c;
  const char *out, *picture, *only, *equal;
  ComparePlanner planner[COMPARE_PLANNERS];  // (nplanner)
  int nplanner;
  char choice[COMPARE_PLANNERS][2][48];  // names and settings of the planners of the program
  int seeds;
  double plan_seconds;  // time of a plan in mode "time"; 0: what the first planner took
  bool processor;    // mode "time" gives each planner the work that takes equal processor time, whatever the clock says
  char set[400];     // settings of all planners, as given
  char subject[17];  // a digest of task and model: cells of others do not belong to this comparison
  bool quick, quiet, all, markdown, report;
  cJSON *own;                  // report of a short run of the task's own planner; NULL: not needed yet
  cJSON *cell[COMPARE_CELLS];  // in order of mode, planner, seed; NULL: not run
  int done, total;
  FILE *lines;
} Compare;

extern const char *const compare_modes[COMPARE_MODES];

// Returns whether the cells of a planner and mode are asked for.
bool compare_asks(const Compare *x, int mode, int planner);
// Returns the place of a cell; NULL stands in it until it is run.
cJSON **compare_cell(Compare *x, int mode, int planner, int seed);
// Returns a number of an object of JSON; NaN when it has none of that name.
double compare_number(const cJSON *o, const char *name);
// Returns a text of an object of JSON; empty when it has none of that name.
const char *compare_text(const cJSON *o, const char *name);
// Returns the median of a number over the seeds of a mode and planner; NaN when none is there. A run that has diverged
// costs infinity: what it cost until then is no figure beside those of whole runs.
double compare_median(Compare *x, int mode, int planner, const char *name);
// Returns the time for a plan in mode "time" by the clock [s]; NaN when nothing tells it yet.
double compare_plan_seconds(Compare *x);

// Computes the digest of task and model. Returns what loading them does.
SinewStatus compare_find_subject(Compare *x, SinewError *err);
// Takes over the cells that the file has. A last line that was cut short is no cell.
SinewStatus compare_read(Compare *x, SinewError *err);
// Runs what is asked for and not done, each cell appended to the file as it ends.
SinewStatus compare_run(Compare *x, SinewError *err);

// Returns the name of a planner in a mode. Equal processor time decides how many candidates sampling has, so all of its
// numbers are one planner there.
const char *compare_name(const Compare *x, int mode, int planner);
// Writes what sets a planner apart from the task's settings, as "planner=sampling candidates=64".
void compare_own_settings(const Compare *x, int mode, int planner, char text[COMPARE_TEXT]);
// Adds settings, apart by blanks, to those of a run. They lie in text from then on.
SinewStatus compare_add_settings(BenchTaskArgs *c, const char *settings, char text[COMPARE_TEXT], SinewError *err);
// Writes settings, as "candidates=72": with them a plan of this planner takes as much processor time as one of the
// task's own planner. They are those of cells of the file, else short runs find them.
SinewStatus compare_work(Compare *x, int planner, char work[COMPARE_TEXT], SinewError *err);

// Prints a table in Markdown: a row for each mode and planner that has cells, with all that its seeds came to.
void compare_print_markdown(Compare *x);
// Prints a table for people.
void compare_print_table(Compare *x);
// Draws the cost over time with gnuplot. Returns false when that is missing or fails.
bool compare_draw(Compare *x);

#endif
