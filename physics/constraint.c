#include "physics/stages.h"

SN_FUNC void sn_make_constraint(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_reference_constraint(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

