#include "physics/stages.h"

SN_FUNC void sn_com_pos(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_make_M(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_factor_M(const SnModel *m, SnWorld *w, SnLane *lane) { (void)m; (void)w; (void)lane; }

SN_FUNC void sn_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x) { (void)m; (void)lane; (void)LD; (void)diag_inv; (void)x; }

