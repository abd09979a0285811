#include "physics/stages.h"

SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

