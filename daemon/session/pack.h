// Parts of replies, made of models, sessions and what planners know. They live in a scratch that is freed after the
// reply is packed. If memory runs out the scratch is `failed` and arrays are empty: then the reply must not be sent.
#ifndef SINEW_DAEMON_SESSION_PACK_H_
#define SINEW_DAEMON_SESSION_PACK_H_

#include "daemon/session/session.h"

// Holds memory that is freed as a whole.
typedef struct SnScratch {
  struct SnScratchBlock *first;
  bool failed;  // memory ran out
} SnScratch;

// Allocates zeroed memory. Returns NULL, and notes it in the scratch, when out of memory.
void *sn_scratch_alloc(SnScratch *scratch, size_t bytes);
void sn_scratch_free(SnScratch *scratch);

// Copies n numbers; *count is n, or 0 on failure.
double *sn_pack_reals(SnScratch *scratch, const sn_real *x, size_t n, size_t *count);

// Converts n numbers of the wire into numbers of the engine, in memory of the scratch. Returns NULL for none.
sn_real *sn_unpack_reals(SnScratch *scratch, const double *x, size_t n);
// Parts the mocap poses of a state into positions (nmocap, 3) and quaternions (nmocap, 4); NULL for none.
void sn_unpack_mocap(SnScratch *scratch, const Sinew__V1__State *state, const sn_real **pos, const sn_real **quat);

// Packs the state of a body; mocap poses as position and quaternion.
Sinew__V1__State *sn_pack_state(SnScratch *scratch, const SnModel *m, const SnState *state);

// Packs costs of the terms (nterm) with their names.
Sinew__V1__TermCost **sn_pack_terms(SnScratch *scratch, const SnCost *cost, const double *term, size_t *count);

// Packs what the gates of terms are in the state that a plan answers, *count of them.
Sinew__V1__GateValue **sn_pack_gates(SnScratch *scratch, const SnPlan *plan, size_t *count);

// Describes the terms of a task's cost, *count of them.
Sinew__V1__TermDescription **sn_pack_term_descriptions(SnScratch *scratch, const SnModel *m, const SnCost *cost,
                                                       const SnTask *task, size_t *count);

// Packs the targets of a trajectory of so many rows into `out`, but those that follow an element. `table` (rows,
// ntarget) is as of sn_cost_schedule.
void sn_pack_targets(SnScratch *scratch, const SnCost *cost, const sn_real *table, size_t rows,
                     Sinew__V1__Trajectory *out);

// Packs a version of a session's configuration, and with_table the rows of all settings. The planner thread calls it,
// or the loader thread before the session is handed over.
Sinew__V1__Config *sn_pack_config(SnScratch *scratch, const SnSession *session, const SnVersion *version,
                                  bool with_table);

// Packs settings into their message, all fields present.
Sinew__V1__PlannerSettings *sn_pack_settings(SnScratch *scratch, const SnSettings *settings);
// Reads the fields that are present into settings. err names what is wrong. Accepts a message of NULL.
SnCode sn_read_settings(const Sinew__V1__PlannerSettings *message, const SnConfig *limits, SnSettings *settings,
                        SnError *err);
// Reads settings of a session on that planner, whose lease may be `longest_lease` [s]; on an error nothing is changed.
// Accepts a message of NULL.
SnCode sn_read_session_settings(const Sinew__V1__SessionSettings *message, const SnPlanner *planner,
                                double longest_lease, SnSessionSettings *settings, SnError *err);

// Packs settings of a session, and the weights and targets of a version, all fields present.
Sinew__V1__SessionSettings *sn_pack_session_settings(SnScratch *scratch, const SnSessionSettings *settings);
Sinew__V1__TermSettings **sn_pack_term_settings(SnScratch *scratch, const SnCost *cost, const SnVersion *version,
                                                size_t *count);

// Checks changes of terms: their names, weights, sizes of targets. err names the first bad one.
SnCode sn_check_terms(const SnPlanner *planner, Sinew__V1__TermSettings *const *terms, size_t n, SnError *err);
// Makes changes of terms that were checked.
SnCode sn_apply_terms(SnPlanner *planner, Sinew__V1__TermSettings *const *terms, size_t n, SnError *err);

// Returns the number type of the engine, "double" or "float": static memory.
char *sn_pack_number_type(void);

// Packs all that the next plan of a session depends on beside its request. SN_ERR_STATE while one is in progress.
SnCode sn_pack_snapshot(SnScratch *scratch, const SnSession *session, Sinew__V1__Snapshot *out, SnError *err);
// Checks that a snapshot can be read, and is one of a task: err says what is the matter.
SnCode sn_check_snapshot(const Sinew__V1__Snapshot *in, const char *task, SnError *err);
// Makes a planner go on from a snapshot that was checked, of the model with that checksum. The planner was made with
// the snapshot's seed and settings. Weights and targets are put in force, too. err names what does not fit.
SnCode sn_restore_snapshot(const Sinew__V1__Snapshot *in, const char *checksum, SnPlanner *planner, SnError *err);

// Packs what a session that has a name is and how it is set, as it is kept. Returns NULL bytes when out of memory.
// Whoever has the planner calls this, and the next.
SnKeptBytes sn_pack_kept_session(const SnSession *session);
// Packs where it stands; NULL bytes also while a plan is in progress.
SnKeptBytes sn_pack_kept_warm_start(const SnSession *session);

// Splits the names of a choice of the planner's table, "a|b|c", into a list; *count gets their number.
char **sn_pack_choices(SnScratch *scratch, const char *choices, size_t *count);

// Describes a model as m has it, which may be the loaded one with a task's overrides.
Sinew__V1__ModelDescription *sn_pack_model(SnScratch *scratch, const SnLoadedModel *loaded, const SnModel *m);
// Describes the task of a planner.
Sinew__V1__TaskDescription *sn_pack_task(SnScratch *scratch, const SnLoadedModel *loaded, const SnPlanner *planner);

// Returns the code on the wire for an error of the libraries.
Sinew__V1__Error__Code sn_wire_code(SnCode code);

#endif
