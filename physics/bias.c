#include "physics/stages.h"

SN_FUNC void sn_velocity(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_bias(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

