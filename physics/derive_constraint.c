#include "physics/model.h"

SnCode sn_derive_constraint(SnModel *m, SnError *err) {
  (void)m;
  (void)err;
  return SN_OK;
}
