// MuJoCo as the body that plans move, and the record of its run. sinew-plant uses both through the daemon, sinew-bench
// in one process. One thread.
//   plant_body.c    the body: find its model, load, reset, step, read its state
//   plant_plan.c    a copy of a plan, and its row for a moment
//   plant_record.c  the record: samples over time, what plans took, how one followed the other, whether the run is a
//                   success
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
// Gives every contact of the body, of all geoms and of the pairs that the model names, the numbers of a task. NaN
// leaves a number as the file has it. Returns whether there was any to give.
bool plant_body_take_contacts(PlantBody *body, const SinewTaskPlant *plant);
// Puts the body at an initial state that has all of its arrays, at time 0.
void plant_body_reset(PlantBody *body, const SinewState *initial);
// Takes one time step under ctrl (nu). Returns false when the body's state has become unusable.
bool plant_body_step(PlantBody *body, const double *ctrl);
// Returns the state as the client library wants it. The arrays belong to the body and change with the next step.
// hide_act leaves act out (NULL).
SinewState plant_body_state(PlantBody *body, bool hide_act);
// Frees what the body holds; accepts an empty body.
void plant_body_free(PlantBody *body);

// Holds a copy of a plan. A zeroed one is empty.
typedef struct PlantPlan {
  double start, step;  // time of the first row, and between rows [s]
  int steps, lead;     // rows; the first ones, those of the plan before
  double *ctrl;        // (steps, nu)
} PlantPlan;

// Copies a plan over another one, whose memory it takes; `nu` must be that of the other. Ends the program when out of
// memory.
void plant_plan_copy(PlantPlan *to, const PlantPlan *from, int nu);
// Returns the row for a time [s], floor((time - start) / step + 1e-6), at least the first, at most the last.
const double *plant_plan_row(const PlantPlan *plan, double time, int nu);
// Returns the time of the first row behind the lead [s].
double plant_plan_lead_end(const PlantPlan *plan);
// Frees what the plan holds; accepts an empty one.
void plant_plan_free(PlantPlan *plan);

// Holds one moment of a run; a record owns the arrays.
typedef struct PlantSample {
  double time, cost;    // [s]; cost NaN until it is judged
  double *qpos, *qvel;  // (nq), (nv)
  double *act, *mocap;  // (na), (nmocap, 7)
  double *ctrl;         // (nu) applied from here on
  double *measure;      // (nmeasure)
} PlantSample;

// Says how a plan took over from the one before.
typedef struct PlantHandover {
  double stamp;  // time of the state that the plan answers [s]
  double age;    // time from that state until it came into force [s]
  double late;   // how long after the end of its lead that was [s]; 0: in time
  double jump;   // largest change of a control where both plans part, at the end of the lead or where it was taken
  // The planner believed that the body would take `ctrl` (rows, nu), its first rows, from the state that it answers.
  double step;  // [s] between rows
  int rows;
  double *ctrl;
  // Error of the state predicted for the end of those rows: root mean squares over the degrees of freedom, of positions
  // and of velocities [m, rad, s]. NaN: not computed.
  double position, velocity;
} PlantHandover;

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
  PlantHandover *handover;  // (nhandover) plans that came into force after the first
  int nhandover, handover_capacity;
  int misses;              // plans after the daemon's deadline
  int better;              // further plans in continuous mode
  int expired;             // steps without a usable plan: the fallback acted
  double simulated, wall;  // [s] of motion, and on the clock
  bool task_contacts;      // the body has the task's contacts, else those of its model's file
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
// Adds that plan `to` takes over from plan `from` at `taken` [s] on the body's clock. Predictions of `to` are
// judged at the end of its lead; where it has none, after `ahead` rows.
void plant_record_handover(PlantRecord *r, const PlantPlan *from, const PlantPlan *to, double taken, int ahead, int nu);
// Returns the sample of a moment [s], NULL when there is none.
const PlantSample *plant_record_sample_at(const PlantRecord *r, double time);
// Returns how much the nu controls change, |u - u before| summed over samples and controls, per second and control.
double plant_record_variation(const PlantRecord *r, int nu);
// Notes the state that the planner predicts for the end of a hand-over's rows: its error, if there is a sample of then.
void plant_record_prediction(const PlantRecord *r, PlantHandover *h, const PlantBody *body, const double *qpos,
                             const double *qvel);
// Returns the quantile q in [0, 1] of a member of all hand-overs that is not NaN, by its offset in PlantHandover. NaN
// when there is none.
double plant_record_quantile(const PlantRecord *r, size_t member, double q);
// Returns the part of the plans that came after the daemon's deadline; NaN without plans.
double plant_record_miss_share(const PlantRecord *r);
// Returns true when all measures held at the end, for as long as the task wants.
bool plant_record_success(const PlantRecord *r);
// Writes a header line and a line a sample: time, cost, measures and controls (nu). Then come the age of the plan in
// force and the jump of plans that came into force since the sample before. Last are positions (nq) as MuJoCo has them.
// Returns false when the file cannot be written.
bool plant_record_write(const PlantRecord *r, int nq, int nu, const char *path);
// Returns the largest value of measure k in the time that counts; NaN if one of them is.
double plant_record_worst(const PlantRecord *r, int k);
// Returns the part of the samples, in [0, 1], in which all measures were within their bounds: MyoSuite calls that
// score. NaN without samples or measures.
double plant_record_score(const PlantRecord *r);
// Frees what the record holds.
void plant_record_free(PlantRecord *r);

#endif
