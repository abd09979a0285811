// Readers of the parts of a task file that task.c and task_residual.c share. They are SnYamlField.read functions, see
// planner/base/yaml.h.
#ifndef SINEW_PLANNER_TASK_TASK_PRIVATE_H_
#define SINEW_PLANNER_TASK_TASK_PRIVATE_H_

#include "planner/task/task.h"

// task_base.c: reads text[size] of the file issues->file into a tree, joined with what it begins from. Returns NULL
// when a mistake was added. *based says whether it begins from another one. Names of files live in `names`.
SnNode *sn_task_read_tree(const char *text, size_t size, SnArena *tree, SnArena *names, SnIssues *issues, bool *based);

// task_folder.c: reads the file of a task into the arena. Returns NULL on failure; err lists the tasks that are beside
// it where it is not there.
char *sn_task_load_text(const char *path, SnArena *arena, size_t *size, SnError *err);

// Reads `node` into `target`, the SnElement that a residual looks at.
void sn_task_read_residual(SnReader *r, const SnNode *node, void *target);
// Reads `node` into `target`, the SnTarget of a term.
void sn_task_read_target(SnReader *r, const SnNode *node, void *target);

#endif
