#include "physics/stages.h"

SN_FUNC void sn_transmission(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

