#include "clients/reference/probe_task.h"

#include <stdio.h>

bool sn_probe_task(const SnModel *m, char *text, size_t size) {
  int joints = 0;
  for (int j = 0; j < m->njnt; ++j) joints += m->jnt_type[j] != SN_JNT_FREE;
  const struct {
    bool has;
    const char *line;
  } terms[] = {
      {joints > 0, "  - {name: position, residual: {joint_position: all}, terminal: 1}\n"},
      {m->nv > 0, "  - {name: velocity, residual: {joint_velocity: all}, weight: 0.01, terminal: 0.01}\n"},
      {m->na > 0, "  - {name: activation, residual: {activation: all}, target: 0.2, weight: 0.1, terminal: 0.1}\n"},
      {m->nu > 0, "  - {name: control, residual: {control: all}, target: 0.1, weight: 0.01}\n"},
      {m->ntendon > 0, "  - {name: length, residual: {tendon_length: all}, terminal: 1}\n"},
  };
  size_t at = (size_t)snprintf(text, size, "model: checked\nterms:\n");
  for (size_t i = 0; i < sizeof terms / sizeof *terms; ++i)
    if (terms[i].has) at += (size_t)snprintf(text + at, size - at, "%s", terms[i].line);
  return m->nv + m->na > 0;
}
