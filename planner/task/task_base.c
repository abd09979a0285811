// A task that begins from another one. `base: NAME` names a task beside its file, which may have a base itself. What a
// file says replaces what its base says: member by member in maps, and lists as a whole.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "planner/task/task_private.h"

enum { MOST_BASES = 8, MOST_NAME = 128 };

// A file that is read, and those that begin from it.
typedef struct Reading {
  const char *file;
  const struct Reading *later;
} Reading;

// Where trees lie, and what outlives them.
typedef struct Memory {
  SnArena *tree, *names;
} Memory;

static bool is_name(const char *text) {
  const size_t n = strlen(text);
  for (size_t i = 0; i < n; ++i)
    if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i])) return false;
  return n > 0 && n <= MOST_NAME && text[0] != '.';
}

// The file of a task beside another one's.
static char *path_beside(SnArena *arena, const char *file, const char *name) {
  const char *slash = strrchr(file, '/');
  const size_t folder = slash ? (size_t)(slash + 1 - file) : 0, n = folder + strlen(name) + sizeof ".yaml";
  char *path = sn_arena_alloc(arena, n);
  if (path) snprintf(path, n, "%.*s%s.yaml", (int)folder, file, name);
  return path;
}

// What speaks against reading `path` for one that begins from it; NULL: nothing.
static const char *fault_of(const char *path, const Reading *later) {
  int n = 0;
  for (const Reading *r = later; r; r = r->later, ++n)
    if (strcmp(r->file, path) == 0) return n == 0 ? "is this task itself" : "begins from this task";
  return n > MOST_BASES ? "is one too many, one begun from the other: 8 are allowed" : NULL;
}

static SnNode *read_tree(const char *text, size_t size, const Memory *memory, const Reading *later, SnIssues *issues,
                         bool *based);

// The tree of the base that a member of a map names; NULL when a mistake was added.
static SnNode *read_base(const SnNode *member, const Memory *memory, const Reading *later, SnIssues *issues) {
  const char *name = member->kind == SN_NODE_SCALAR ? member->text : "", *file = issues->file;
  bool based;
  if (!is_name(name)) {
    sn_issue(issues, member->place, "base: '%.*s' is not the name of a task beside this file", MOST_NAME, name);
    return NULL;
  }
  char *path = path_beside(memory->names, file, name);
  const char *fault = path ? fault_of(path, later) : "does not fit into memory";
  if (fault) {
    sn_issue(issues, member->place, "base: '%s' %s", name, fault);
    return NULL;
  }
  SnError why;
  size_t size = 0;
  const char *text = sn_task_load_text(path, memory->tree, &size, &why);
  if (!text) {
    sn_issue(issues, member->place, "base: %.1000s", why.text);
    return NULL;
  }
  issues->file = path;
  SnNode *root = read_tree(text, size, memory, later, issues, &based);
  issues->file = file;
  return root;
}

// The tree of a text of the file issues->file, with its base; NULL when a mistake was added.
static SnNode *read_tree(const char *text, size_t size, const Memory *memory, const Reading *later, SnIssues *issues,
                         bool *based) {
  const Reading own = {issues->file, later};
  SnNode *root = sn_yaml_read(text, size, SN_TASK_MAX_ITEMS, memory->tree, issues);
  const SnNode *member = root && root->kind == SN_NODE_MAP ? sn_yaml_take(root, "base") : NULL;
  *based = member != NULL;
  if (!member) {
    if (!root || root->kind == SN_NODE_MAP || !later) return root;
    sn_issue(issues, root->place, "a base is a map");
    return NULL;
  }
  SnNode *base = read_base(member, memory, &own, issues);
  if (base) sn_yaml_join(root, base);
  return base ? root : NULL;
}

SnNode *sn_task_read_tree(const char *text, size_t size, SnArena *tree, SnArena *names, SnIssues *issues, bool *based) {
  const Memory memory = {tree, names};
  SnNode *root = read_tree(text, size, &memory, NULL, issues, based);
  if (!root || !*based || sn_yaml_count(root) <= SN_TASK_MAX_ITEMS) return root;
  sn_issue(issues, root->place, "too many entries in this file and those that it begins from");
  return NULL;
}
