// MuJoCo as the body that plans move, and the record of its run. sinew-plant uses both through the daemon, sinew-bench
// in one process. One thread.
//   plant_body.c    the body: find its model, load, reset, step, read its state
//   plant_record.c  the record: samples over time, what plans took, whether the run is a success
#ifndef SINEW_CLIENTS_BODY_BODY_H_
#define SINEW_CLIENTS_BODY_BODY_H_

#include <mujoco/mujoco.h>

#include "clients/include/sinew_client.h"

enum { PLANT_MODELS = 16 };  // most folders of models

// Says where the model of a body is found.
typedef struct PlantPlaces {
  const char *xml;                   // MJCF or .mjb file to load; NULL: looked for by the model's name
  const char *models[PLANT_MODELS];  // (nmodels) "FOLDER" or "NAME=FOLDER"
  int nmodels;                       // 0: as the daemon has it
} PlantPlaces;

// Holds a body in MuJoCo. A zeroed one is empty.
typedef struct PlantBody {
  mjModel *m;
  mjData *d;
  double *mocap;  // (nmocap, 7) positions [m] and unit quaternions
} PlantBody;

// Finds the file of `model` among places->models as sinewd does, or takes places->xml, and loads it. Without either,
// takes `file`, from which the daemon has loaded the model, if this machine has it. A NULL `file` stands for none. Last
// come the folders of sinewd's own defaults. Returns false, with a text in error[size], on failure; the caller frees
// the body either way.
bool plant_body_open(PlantBody *body, const PlantPlaces *places, const char *file, const char *model, char *error,
                     size_t size);
// Opens the body of a session's model and takes over the session's time step. Returns false, with a text in
// error[size], on failure, or when nq, nv, na, nu or nmocap differ from the session's.
bool plant_body_load(PlantBody *body, const PlantPlaces *places, const SinewSessionInfo *info, char *error,
                     size_t size);
// Puts the body at the session's initial state, at time 0.
void plant_body_reset(PlantBody *body, const SinewSessionInfo *info);
// Takes one time step under ctrl (nu). Returns false when the body's state has become unusable.
bool plant_body_step(PlantBody *body, const double *ctrl);
// Returns the state as the client library wants it. The arrays belong to the body and change with the next step.
// hide_act leaves act out (NULL).
SinewState plant_body_state(PlantBody *body, bool hide_act);
// Frees what the body holds; accepts an empty body.
void plant_body_free(PlantBody *body);

// Holds one moment of a run; a record owns the arrays.
typedef struct PlantSample {
  double time, cost;    // [s]; cost NaN until it is judged
  double *qpos, *qvel;  // (nq), (nv)
  double *act, *mocap;  // (na), (nmocap, 7)
  double *ctrl;         // (nu) applied from here on
  double *measure;      // (nmeasure)
} PlantSample;

// Holds what happened in a run.
typedef struct PlantRecord {
  PlantSample *sample;  // (nsample)
  int nsample, sample_capacity;
  int nmeasure;
  char **measure_name;     // (nmeasure)
  double *measure_below;   // (nmeasure) largest value of a success
  double *measure_during;  // (nmeasure) [s] at the end of the run, for which it has to hold
  double *latency;  // (nplan) [s] each plan; in continuous mode the first for its state, from sending to having it
  int nplan, plan_capacity;
  int misses;              // plans after the daemon's deadline
  int better;              // further plans in continuous mode
  int expired;             // steps without a usable plan: the fallback acted
  double simulated, wall;  // [s] of motion, and on the clock
  bool diverged;           // MuJoCo's state became unusable
} PlantRecord;

// Starts an empty record with room for nmeasure measures, to be set one by one. Ends the program when out of memory, as
// all functions that add to a record do.
void plant_record_init(PlantRecord *r, int nmeasure);
// Sets measure k: a copy of its name, its bound `below`, and for how long it has to hold [s].
void plant_record_set_measure(PlantRecord *r, int k, const char *name, double below, double during);
// Adds the body's state and the controls ctrl (nu) as a sample that is not judged yet.
void plant_record_sample(PlantRecord *r, const PlantBody *body, const double *ctrl);
// Adds a plan and its latency [s].
void plant_record_plan(PlantRecord *r, double latency, bool deadline_met);
// Returns true when all measures held at the end, for as long as the task wants.
bool plant_record_success(const PlantRecord *r);
// Returns the largest value of measure k in the time that counts; NaN if one of them is.
double plant_record_worst(const PlantRecord *r, int k);
// Frees what the record holds.
void plant_record_free(PlantRecord *r);

#endif
