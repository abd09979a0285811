// Readers of the parts of a task file that task.c and task_residual.c share. They are SnYamlField.read functions, see
// planner/base/yaml.h.
#ifndef SINEW_PLANNER_TASK_TASK_PRIVATE_H_
#define SINEW_PLANNER_TASK_TASK_PRIVATE_H_

#include "planner/task/task.h"

// Reads `node` into `target`, the SnElement that a residual looks at.
void sn_task_read_residual(SnReader *r, const SnNode *node, void *target);
// Reads `node` into `target`, the SnTarget of a term.
void sn_task_read_target(SnReader *r, const SnNode *node, void *target);

#endif
