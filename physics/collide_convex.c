#include "physics/collide.h"

SN_FUNC int sn_collide_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con, int max) {
  (void)m; (void)w; (void)g1; (void)g2; (void)margin; (void)con; (void)max;
  return 0;
}
