// sinew-plant: MuJoCo plays the robot. Shared types of its parts:
//   plant_body.c    the body in MuJoCo: load, reset, step, read the state
//   plant_loop.c    the closed loop over the daemon's socket: in lockstep, in real time, or in continuous mode
//   plant_record.c  what happened: samples over time, judged by the daemon; report, JSON and data for a plot
//   plant.c         options and main
#ifndef SINEW_CLIENTS_PLANT_PLANT_H_
#define SINEW_CLIENTS_PLANT_PLANT_H_

#include <mujoco/mujoco.h>
#include <stdio.h>

#include "clients/include/sinew_client.h"
#include "clients/libsinew_client/wire.h"

typedef enum PlantMode { PLANT_LOCKSTEP, PLANT_REALTIME, PLANT_CONTINUOUS } PlantMode;
const char *plant_mode_name(PlantMode mode);  // as --mode takes it
typedef enum PlantController { PLANT_SINEW, PLANT_ZERO, PLANT_RANDOM } PlantController;

enum { PLANT_ANSWERING = 5 };  // time for an answer of a daemon that runs, on a slow and busy machine [s]

typedef struct PlantOptions {
  const char *endpoint, *task, *xml, *data;
  const char *models[16];  // "FOLDER" or "NAME=FOLDER"; none: as the daemon has it
  int nmodels;
  const char *settings[32];  // planner settings "name=value", NULL at the end
  int nsettings;
  PlantMode mode;
  PlantController controller;
  int random_controls;       // PLANT_RANDOM: how many constant controls to try
  double seconds, deadline;  // deadline 0: chosen once the session is open
  int execute;               // steps between two states sent
  uint64_t seed;
  bool json, quiet, hide_act;
} PlantOptions;

// The body in MuJoCo.
typedef struct PlantBody {
  mjModel *m;
  mjData *d;
  double *mocap;  // (nmocap, 7)
} PlantBody;

// Finds the model's file among opt->models as sinewd does (or takes opt->xml), and loads it. Without any: `file`, which
// is what the daemon has loaded (NULL: there is none), else the folders of sinewd's own defaults. False and a text on
// failure.
bool plant_body_open(PlantBody *body, const PlantOptions *opt, const char *file, const char *model, char *error,
                     size_t size);
// The same with a session's model; checks its sizes and takes over the session's time step.
bool plant_body_load(PlantBody *body, const PlantOptions *opt, const SinewSessionInfo *info, char *error, size_t size);
// Puts the body at the session's initial state, time 0.
void plant_body_reset(PlantBody *body, const SinewSessionInfo *info);
// One time step under ctrl (nu). False when the body's state has become unusable.
bool plant_body_step(PlantBody *body, const double *ctrl);
// The state as the client library wants it; refers to the body's memory. act is left out when hide_act.
SinewState plant_body_state(PlantBody *body, bool hide_act);
void plant_body_free(PlantBody *body);

// A moment of the run.
typedef struct PlantSample {
  double time, cost;
  double *qpos, *qvel, *act, *mocap, *ctrl, *measure;
} PlantSample;

typedef struct PlantRecord {
  PlantSample *sample;
  int nsample, capacity;
  int nmeasure;
  char **measure_name;
  double *measure_below, *measure_during;
  double *latency;  // of each plan, in continuous mode the first for its state: from sending that to having it [s]
  int nplan, plan_room;
  int misses;   // plans after the daemon's deadline
  int better;   // further plans in continuous mode
  int expired;  // steps without a usable plan: the fallback acted
  double simulated, wall;
  bool diverged;  // MuJoCo's state became unusable
} PlantRecord;

bool plant_record_init(PlantRecord *r, SinewClient *client, const char *task, char *error, size_t size);
void plant_record_sample(PlantRecord *r, const PlantBody *body, const double *ctrl);
void plant_record_plan(PlantRecord *r, double latency, bool deadline_met);
// Asks the daemon for cost and measures of every sample.
SinewStatus plant_record_judge(PlantRecord *r, SinewClient *client, const SinewSessionInfo *info);
// Were all measures met for as long as the task wants, at the end?
bool plant_record_success(const PlantRecord *r);
// Largest value of measure k in the time that counts.
double plant_record_worst(const PlantRecord *r, int k);
void plant_record_print(const PlantRecord *r, const PlantOptions *opt, FILE *out);
void plant_record_print_json(const PlantRecord *r, const PlantOptions *opt, FILE *out);
// Columns time, cost, measures, controls, with a header line. False when the file cannot be written.
bool plant_record_write(const PlantRecord *r, const SinewSessionInfo *info, const char *path);
void plant_record_free(PlantRecord *r);

// Cost and measures of one state (nmeasure values); measure may be NULL.
SinewStatus plant_judge_state(SinewClient *client, uint64_t session, const SinewState *state,
                              const SinewSessionInfo *info, double *cost, double *measure, int nmeasure);

// Time without an answer, a plan above all, after which the daemon is taken for gone [s].
double plant_patience(const PlantOptions *opt);
// The closed loop for opt->seconds. Statuses other than SINEW_OK end it; the text is in sinew_error.
SinewStatus plant_run(SinewClient *client, SinewSession *session, PlantBody *body, const PlantOptions *opt,
                      PlantRecord *r);

#endif
