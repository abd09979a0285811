// Readers of the parts of a task file that task.c and task_residual.c share. They are SnYamlField.read functions, see
// planner/base/yaml.h.
#ifndef SINEW_PLANNER_TASK_TASK_PRIVATE_H_
#define SINEW_PLANNER_TASK_TASK_PRIVATE_H_

#include "planner/task/task.h"

enum { SN_TASK_NAMES = 300 };  // bytes of the names of terms or variables that a message lists

// task_base.c: reads text[size] of the file issues->file into a tree: with what it begins from, variables in their
// places, terms as a list. Returns NULL when a mistake was added. *changed says whether the text says less than the
// tree. Names of files live in `names`.
SnNode *sn_task_read_tree(const char *text, size_t size, SnArena *tree, SnArena *names, SnIssues *issues,
                          bool *changed);

// task_base.c: returns the path of NAME and its ending in the folder of `file`; NULL when out of memory.
char *sn_task_path_beside(SnArena *arena, const char *file, const char *name, const char *ending);

// task_variables.c: takes the variables out of a tree and puts them in the place of the scalars that refer to them.
// Returns false when a mistake was added: a variable is unknown, not used in the file issues->file that has it, or no
// value.
bool sn_task_put_variables(SnNode *root, SnArena *arena, SnIssues *issues);

// task_folder.c: reads the file of a task into the arena. Returns NULL on failure; err lists the tasks that are beside
// it where it is not there.
char *sn_task_load_text(const char *path, SnArena *arena, size_t *size, SnError *err);

// Reads `node` into `target`, the SnElement that a residual looks at.
void sn_task_read_residual(SnReader *r, const SnNode *node, void *target);
// task_gate.c: adds an issue for each of a term's weights of entries that is out of bounds.
void sn_task_check_weights(SnReader *r, const SnNode *node, const SnTerm *t);
// task_gate.c: reads `node` into `target`, the SnTerm * that a term is multiplied by.
void sn_task_read_gate(SnReader *r, const SnNode *node, void *target);
// Reads `node` into `target`, the SnTarget of a term.
void sn_task_read_target(SnReader *r, const SnNode *node, void *target);

#endif
