// A task that begins from another one. `base: NAME` names a task beside its file, which may have a base itself. What a
// file says replaces what its base says: member by member in maps, and lists as a whole. Terms and measures of success
// may be given as a map by name, which changes, adds to and takes away from the list of the base.
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

char *sn_task_path_beside(SnArena *arena, const char *file, const char *name, const char *ending) {
  const char *slash = strrchr(file, '/');
  const size_t folder = slash ? (size_t)(slash + 1 - file) : 0, n = folder + strlen(name) + strlen(ending) + 1;
  char *path = sn_arena_alloc(arena, n);
  if (path) snprintf(path, n, "%.*s%s%s", (int)folder, file, name, ending);
  return path;
}

// What speaks against reading `path` for one that begins from it; NULL: nothing.
static const char *fault_of(const char *path, const Reading *later) {
  int n = 0;
  for (const Reading *r = later; r; r = r->later, ++n)
    if (strcmp(r->file, path) == 0) return n == 0 ? "is this task itself" : "begins from this task";
  return n > MOST_BASES ? "is one too many, one begun from the other: 8 are allowed" : NULL;
}

// ---- terms and measures by name ----

// The link of a list to the entry of that name, or the one at its end.
static SnNode **link_of(SnNode *list, const char *name) {
  SnNode **at = &list->first;
  for (; *at; at = &(*at)->next) {
    const SnNode *own = (*at)->kind == SN_NODE_MAP ? sn_yaml_member(*at, "name") : NULL;
    if (own && own->kind == SN_NODE_SCALAR && strcmp(own->text, name) == 0) break;
  }
  return at;
}

static bool is_null(const SnNode *node) {
  const char *text = node->kind == SN_NODE_SCALAR && !node->quoted ? node->text : NULL;
  return text && (!text[0] || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

// Adds to an entry that was given by name what it lacks of the base's: members as a whole. Where that has none of the
// name, its name alone.
static bool complete(SnNode *entry, SnNode *base, SnArena *arena) {
  for (const SnNode *c = entry->first; base && c; c = c->next) sn_yaml_take(base, c->key);
  SnNode *rest = base ? base->first : sn_arena_alloc(arena, sizeof *rest), *last = rest;
  if (!rest) return false;
  if (!base)
    *rest = (SnNode){.place = entry->key_place,
                     .text = entry->key,
                     .quoted = entry->key[0] == '$',
                     .key = "name",
                     .key_place = entry->key_place};
  while (last->next) last = last->next;
  last->next = entry->first;
  entry->first = rest;
  entry->n += base ? base->n : 1;
  return true;
}

// Adds an issue where ~ shall take away what the list has not.
static void no_entry(const SnNode *list, const SnNode *entry, const char *what, SnIssues *issues) {
  SnKnownNames known;
  sn_known_begin(&known, entry->key, SN_TASK_NAMES);
  for (const SnNode *c = list->first; c; c = c->next) {
    const SnNode *name = c->kind == SN_NODE_MAP ? sn_yaml_member(c, "name") : NULL;
    if (name && name->kind == SN_NODE_SCALAR) sn_known_add(&known, name->text);
  }
  sn_issue(issues, entry->key_place, "%s: there is no '%.60s' that ~ could take away%s", what, entry->key,
           sn_known_near(&known));
}

// Puts an entry that was given by name into the list of the base.
static void put_entry(SnNode *list, SnNode *entry, const char *what, SnArena *arena, SnIssues *issues) {
  SnNode **at = link_of(list, entry->key), *base = *at;
  const SnNode *name = entry->kind == SN_NODE_MAP ? sn_yaml_member(entry, "name") : NULL;
  if (is_null(entry) && base) {
    *at = base->next;
    --list->n;
  } else if (is_null(entry)) {
    no_entry(list, entry, what, issues);
  } else if (entry->kind != SN_NODE_MAP || name) {
    sn_issue(issues, name ? name->key_place : entry->place, "%s: '%.60s': %s", what, entry->key,
             name ? "its name stands before it" : "a map of its fields is wanted, or ~ to take it away");
  } else if (complete(entry, base, arena)) {
    entry->next = base ? base->next : NULL;
    entry->key = NULL;
    *at = entry;
    list->n += !base;
  } else {
    sn_issue_memory(issues, entry->place);
  }
}

// Makes a list of entries that a tree has as a map by name, beginning from the list of its base (NULL: none). Returns
// whether it has such a map.
static bool join_named(SnNode *root, SnNode *base, const char *what, SnArena *arena, SnIssues *issues) {
  SnNode *own = root->first;
  while (own && strcmp(own->key, what) != 0) own = own->next;
  if (!own || own->kind != SN_NODE_MAP) return false;
  const SnNode *list = base ? sn_yaml_take(base, what) : NULL;
  SnNode *entry = own->first;
  if (list && list->kind != SN_NODE_LIST) {
    sn_issue(issues, list->place, "%s: a list, or a map by name, is wanted", what);
    list = NULL;
  }
  own->kind = SN_NODE_LIST;
  own->first = list ? list->first : NULL;
  own->n = list ? list->n : 0;
  while (entry) {
    SnNode *next = entry->next;
    put_entry(own, entry, what, arena, issues);
    entry = next;
  }
  return true;
}

// ---- reading ----

static SnNode *read_tree(const char *text, size_t size, const Memory *memory, const Reading *later, SnIssues *issues,
                         bool *changed);

// The tree of the base that a member of a map names; NULL when a mistake was added.
static SnNode *read_base(const SnNode *member, const Memory *memory, const Reading *later, SnIssues *issues) {
  const char *name = member->kind == SN_NODE_SCALAR ? member->text : "", *file = issues->file;
  bool changed;
  if (!is_name(name)) {
    sn_issue(issues, member->place, "base: '%.*s' is not the name of a task beside this file", MOST_NAME, name);
    return NULL;
  }
  char *path = sn_task_path_beside(memory->names, file, name, ".yaml");
  if (!path) {
    sn_issue_memory(issues, member->place);
    return NULL;
  }
  const char *fault = fault_of(path, later);
  if (fault) {
    sn_issue(issues, member->place, "base: '%s' %s", name, fault);
    return NULL;
  }
  SnError why;
  size_t size = 0;
  const char *text = sn_task_load_text(path, memory->tree, &size, &why);
  if (!text) {
    issues->memory |= why.code == SN_ERR_MEMORY;
    sn_issue(issues, member->place, "base: %.1000s", why.text);
    return NULL;
  }
  issues->file = path;
  SnNode *root = read_tree(text, size, memory, later, issues, &changed);
  issues->file = file;
  return root;
}

// The tree of a text of the file issues->file, with its base; NULL when a mistake was added.
static SnNode *read_tree(const char *text, size_t size, const Memory *memory, const Reading *later, SnIssues *issues,
                         bool *changed) {
  const Reading own = {issues->file, later};
  SnNode *root = sn_yaml_read(text, size, SN_TASK_MAX_ITEMS, memory->tree, issues);
  const SnNode *member = root && root->kind == SN_NODE_MAP ? sn_yaml_take(root, "base") : NULL;
  *changed = member != NULL;
  if (!root) return NULL;
  if (root->kind != SN_NODE_MAP) {
    if (later) sn_issue(issues, root->place, "a base is a map");
    return later ? NULL : root;
  }
  SnNode *base = member ? read_base(member, memory, &own, issues) : NULL;
  if (member && !base) return NULL;
  const int before = issues->count;
  *changed |= join_named(root, base, "terms", memory->tree, issues);
  *changed |= join_named(root, base, "success", memory->tree, issues);
  if (base) sn_yaml_join(root, base);
  return issues->count == before ? root : NULL;
}

SnNode *sn_task_read_tree(const char *text, size_t size, SnArena *tree, SnArena *names, SnIssues *issues,
                          bool *changed) {
  const Memory memory = {tree, names};
  SnNode *root = read_tree(text, size, &memory, NULL, issues, changed);
  if (!root || root->kind != SN_NODE_MAP) return root;
  *changed |= sn_yaml_member(root, "variables") != NULL;
  if (!sn_task_put_variables(root, tree, issues)) return NULL;
  if (sn_yaml_count(root) <= SN_TASK_MAX_ITEMS) return root;
  sn_issue(issues, root->place, "too many entries with those that it begins from, and its variables in place");
  return NULL;
}
