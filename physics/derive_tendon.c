#include "physics/model.h"

SnCode sn_derive_tendon(SnModel *m, SnError *err) {
  (void)m;
  (void)err;
  return SN_OK;
}
