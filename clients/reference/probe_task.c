#include "clients/reference/probe_task.h"

#include <stdio.h>

#include "physics/model/model.h"

bool sn_probe_text(const SnProbeSizes *sizes, char *text, size_t size) {
  const struct {
    bool has;
    const char *line;
  } terms[] = {
      {sizes->joints > 0, "  - {name: position, residual: {joint_position: all}, terminal: 1}\n"},
      {sizes->nv > 0, "  - {name: velocity, residual: {joint_velocity: all}, weight: 0.01, terminal: 0.01}\n"},
      {sizes->na > 0, "  - {name: activation, residual: {activation: all}, target: 0.2, weight: 0.1, terminal: 0.1}\n"},
      {sizes->nu > 0, "  - {name: control, residual: {control: all}, target: 0.1, weight: 0.01}\n"},
      {sizes->ntendon > 0, "  - {name: length, residual: {tendon_length: all}, terminal: 1}\n"},
  };
  size_t at = (size_t)snprintf(text, size, "model: checked\nterms:\n");
  for (size_t i = 0; i < sizeof terms / sizeof *terms; ++i)
    if (terms[i].has) at += (size_t)snprintf(text + at, size - at, "%s", terms[i].line);
  return sizes->nv + sizes->na > 0;
}

bool sn_probe_task(const SnModel *m, char *text, size_t size) {
  SnProbeSizes sizes = {.nv = m->nv, .na = m->na, .nu = m->nu, .ntendon = m->ntendon};
  for (int j = 0; j < m->njnt; ++j) sizes.joints += m->jnt_type[j] != SN_JNT_FREE;
  return sn_probe_text(&sizes, text, size);
}
