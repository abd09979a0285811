// sinew-plant: MuJoCo plays the robot, sinewd plans for it.
//   main.c          options, session
//   plant_loop.c    the closed loop over the daemon's socket: in lockstep, in real time, or in continuous mode
//   plant_latency.c the latency that plans meet
//   plant_judge.c   cost and measures of a run, asked of the daemon
//   plant_report.c  report and JSON
#ifndef SINEW_CLIENTS_PLANT_PLANT_H_
#define SINEW_CLIENTS_PLANT_PLANT_H_

#include <stdio.h>

#include "clients/body/body.h"

// Lists the values of --mode.
typedef enum PlantMode { PLANT_LOCKSTEP, PLANT_REALTIME, PLANT_CONTINUOUS } PlantMode;
// Lists who chooses the controls.
typedef enum PlantController { PLANT_SINEW, PLANT_ZERO, PLANT_RANDOM } PlantController;

// Holds the options of the program.
typedef struct PlantOptions {
  SinewClientDef daemon;
  const char *task, *data;
  PlantPlaces places;        // folders of the body's model
  const char *settings[32];  // planner settings "name=value", NULL at the end
  int nsettings;
  PlantMode mode;
  PlantController controller;
  int random_controls;       // PLANT_RANDOM: how many constant controls to try
  double seconds, deadline;  // [s] motion, and time for a plan; deadline 0: chosen once the session is open
  double answer;             // time for an answer of a daemon that runs, on a slow and busy machine [s]
  double first;              // time for the first plan, which the body waits for [s]; set once the session is open
  double step;               // time step of the body [s]; 0: that of the plans
  double speed;              // seconds of the body's clock in one of ours, in real time and continuous mode
  bool model_contacts;       // the body keeps the contacts of its file, whatever the task says
  double latency;            // time from a state to its plan in force [s], which the planner is told; < 0: by mode
  bool measure_latency;      // measures that time, and tells the planner
  int execute;               // steps of a plan between two states sent; 0: by mode
  uint64_t seed;
  bool json, quiet, hide_act;
} PlantOptions;

// Returns the time from a state to its plan in force that the session is opened with [s].
double plant_latency_of(const PlantOptions *opt);
// Returns the name of a mode as --mode takes it.
const char *plant_mode_name(PlantMode mode);

enum { PLANT_AGES = 16 };  // plans that a latency is taken of

// Holds the latency that plans have met lately. It begins with what the session was opened with.
typedef struct PlantLatency {
  double told;             // latency that the daemon has been told [s]
  double step, longest;    // between rows of a plan, and of all of them: it is a whole number of rows [s]
  double age[PLANT_AGES];  // ages of the latest plans when they came into force [s]
  int n;                   // plans so far
} PlantLatency;

// Notes the age [s] of a plan that has come into force. Returns true when the daemon is to be told another latency: the
// second largest of the latest ages, in whole rows. So a late plan alone does not make those after it older. While
// there are few ages it is the largest, and no shorter than before.
bool plant_latency_note(PlantLatency *l, double age);
// Tells the daemon, for states that are sent from now on. Does not wait for its answer.
SinewStatus plant_latency_tell(const PlantLatency *l, SinewClient *client, uint64_t session, SinewError *err);

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

#endif
