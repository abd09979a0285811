// Parts of replies made from what the planner knows. They live in a scratch that is freed after the reply is packed;
// out of memory there leaves the scratch `failed`, arrays empty, and the reply must not be sent.
#ifndef SINEW_DAEMON_SESSION_PACK_H_
#define SINEW_DAEMON_SESSION_PACK_H_

#include "daemon/session/session.h"

typedef struct SnScratch {
  struct SnScratchBlock *first;
  bool failed;
} SnScratch;

// Zeroed memory, or NULL.
void *sn_scratch_alloc(SnScratch *scratch, size_t bytes);
void sn_scratch_free(SnScratch *scratch);

// Copies n numbers; *count is n, or 0 on failure.
double *sn_pack_reals(SnScratch *scratch, const sn_real *x, size_t n, size_t *count);

// The state of a body; mocap poses as position and quaternion.
Sinew__V1__State *sn_pack_state(SnScratch *scratch, const SnModel *m, const SnState *from);

// Costs of the terms (nterm) with their names.
Sinew__V1__TermCost **sn_pack_terms(SnScratch *scratch, const SnCost *cost, const double *term, size_t *count);

// A version of a session's configuration. with_table: also the rows of all settings. Planner thread, or before the
// session is handed over.
Sinew__V1__Config *sn_pack_config(SnScratch *scratch, const SnSession *session, const SnVersion *version,
                                  bool with_table);

// Settings to their message, all fields present, and back, present fields only. err names what is wrong.
Sinew__V1__PlannerSettings *sn_pack_settings(SnScratch *scratch, const SnSettings *settings);
SnCode sn_read_settings(const Sinew__V1__PlannerSettings *message, const SnConfig *limits, SnSettings *settings,
                        SnError *err);
// Settings of a session on that planner; on an error nothing is changed.
SnCode sn_read_session_settings(const Sinew__V1__SessionSettings *message, const SnPlanner *planner,
                                SnSessionSettings *settings, SnError *err);

// Names of a choice of the planner's table, "a|b|c", as a list; *count gets their number.
char **sn_pack_choices(SnScratch *scratch, const char *choices, size_t *count);

// Describes a model as m has it, which may be the loaded one with a task's overrides, and a task.
Sinew__V1__ModelDescription *sn_pack_model(SnScratch *scratch, const SnLoadedModel *loaded, const SnModel *m);
Sinew__V1__TaskDescription *sn_pack_task(SnScratch *scratch, const SnLoadedModel *loaded, const SnPlanner *planner);

// Code on the wire of an error of the libraries.
Sinew__V1__Error__Code sn_wire_code(SnCode code);

#endif
