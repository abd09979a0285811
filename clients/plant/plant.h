// sinew-plant: MuJoCo plays the robot, sinewd plans for it.
//   main.c          options, session
//   plant_loop.c    the closed loop over the daemon's socket: in lockstep, in real time, or in continuous mode
//   plant_judge.c   cost and measures of a run, asked of the daemon
//   plant_report.c  report, JSON, and data for a plot
#ifndef SINEW_CLIENTS_PLANT_PLANT_H_
#define SINEW_CLIENTS_PLANT_PLANT_H_

#include <stdio.h>

#include "clients/body/body.h"

// Lists the values of --mode.
typedef enum PlantMode { PLANT_LOCKSTEP, PLANT_REALTIME, PLANT_CONTINUOUS } PlantMode;
// Lists who chooses the controls.
typedef enum PlantController { PLANT_SINEW, PLANT_ZERO, PLANT_RANDOM } PlantController;

enum { PLANT_ANSWERING = 5 };  // time for an answer of a daemon that runs, on a slow and busy machine [s]

// Holds the options of the program.
typedef struct PlantOptions {
  const char *endpoint, *task, *data;
  PlantPlaces places;        // folders of the body's model
  const char *settings[32];  // planner settings "name=value", NULL at the end
  int nsettings;
  PlantMode mode;
  PlantController controller;
  int random_controls;       // PLANT_RANDOM: how many constant controls to try
  double seconds, deadline;  // [s] motion, and time for a plan; deadline 0: chosen once the session is open
  double step;               // time step of the body [s]; 0: that of the plans
  double speed;              // seconds of the body's clock in one of ours, in real time and continuous mode
  bool model_contacts;       // the body keeps the contacts of its file, whatever the task says
  int execute;               // steps of a plan between two states sent
  uint64_t seed;
  bool json, quiet, hide_act;
} PlantOptions;

// Returns the name of a mode as --mode takes it.
const char *plant_mode_name(PlantMode mode);

// Runs the closed loop for opt->seconds from the session's initial state and adds it to the record. Any status but
// SINEW_OK ends it.
SinewStatus plant_run(SinewClient *client, SinewSession *session, PlantBody *body, const PlantOptions *opt,
                      PlantRecord *r, SinewError *err);
// Returns the time without an answer [s], a plan above all, after which the daemon is taken for gone.
double plant_patience(const PlantOptions *opt);

// Asks the daemon for the measures of a task and starts an empty record with them. There is no record on
// failure.
SinewStatus plant_judge_begin(PlantRecord *r, SinewClient *client, const char *task, SinewError *err);
// Asks the daemon for the cost and the nmeasure measures of one state. `measure` may be NULL: they are not wanted then.
SinewStatus plant_judge_state(SinewClient *client, const SinewState *state, const SinewSessionInfo *info, double *cost,
                              double *measure, int nmeasure, SinewError *err);
// Asks the daemon for cost and measures of every sample of a record, and where each plan believed the body to be at its
// hand-over.
SinewStatus plant_judge_record(PlantRecord *r, SinewClient *client, const PlantBody *body, const SinewSessionInfo *info,
                               SinewError *err);

// Prints the report of a run that has samples, for people.
void plant_report_print(const PlantRecord *r, const PlantOptions *opt, FILE *out);
// Prints the report as one line of JSON.
void plant_report_print_json(const PlantRecord *r, const PlantOptions *opt, FILE *out);
// Writes a header line and a line a sample: time, cost, measures and controls. The last columns are the age of the plan
// in force and the jump of plans that came into force since the sample before. Returns false when the file cannot be
// written.
bool plant_report_write(const PlantRecord *r, const SinewSessionInfo *info, const char *path);

#endif
