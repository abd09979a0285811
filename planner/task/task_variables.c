// Variables of a task: `variables: {NAME: value}`, and `$NAME` where a value stands. A value is a number, a text or a
// list of these, and refers to no other variable; so the tree that comes out has a bounded size. What has been put in
// place keeps the place of its definition, for messages: there it can be changed.
#include <ctype.h>
#include <string.h>

#include "planner/task/task_private.h"

// The name that a node refers to; NULL: it is a value. In quotes a $ is a letter like others.
static const char *reference(const SnNode *node) {
  const bool is = node->kind == SN_NODE_SCALAR && !node->quoted && node->text[0] == '$';
  return is ? node->text + 1 : NULL;
}

static bool is_name(const char *text) {
  for (const char *c = text; *c; ++c)
    if (!isalnum((unsigned char)*c) && *c != '_') return false;
  return text[0] != '\0' && !isdigit((unsigned char)text[0]);
}

// Adds an issue where a variable has no name, or is no number, no text and no list of these.
static void check_variable(const SnNode *v, SnIssues *issues) {
  bool fits = v->kind != SN_NODE_MAP && !reference(v);
  for (const SnNode *c = v->first; c && fits; c = c->next) fits = c->kind == SN_NODE_SCALAR && !reference(c);
  if (!is_name(v->key))
    sn_issue(issues, v->key_place, "variables: '%.60s' is no name, allowed are letters, digits and '_'", v->key);
  if (!fits) sn_issue(issues, v->place, "variables: '%.60s': a number, a text or a list of these is wanted", v->key);
}

// Adds an issue where a node refers to a variable that there is not.
static void no_variable(const SnNode *node, const SnNode *variables, SnIssues *issues) {
  SnKnownNames known;
  sn_known_begin(&known, reference(node), SN_TASK_NAMES);
  for (const SnNode *v = variables ? variables->first : NULL; v; v = v->next) sn_known_add(&known, v->key);
  sn_issue(issues, node->place, "there is no variable '%.60s', there is %s%s", reference(node), sn_known_list(&known),
           sn_known_near(&known));
}

// Puts variables into what is below a node, and counts how often each is used. `times` has one entry a variable.
static void put_into(SnNode *node, const SnNode *variables, int *times, SnIssues *issues) {
  for (SnNode *c = node->first; c; c = c->next) {
    const char *name = reference(c);
    const SnNode *v = name && variables ? variables->first : NULL;
    int k = 0;
    for (; v && strcmp(v->key, name) != 0; v = v->next) ++k;
    if (name && !v) {
      no_variable(c, variables, issues);
    } else if (v) {
      ++times[k];
      c->kind = v->kind;
      c->place = v->place;
      c->text = v->text;
      c->quoted = v->quoted;
      c->n = v->n;
      c->first = v->first;
    } else {
      put_into(c, variables, times, issues);
    }
  }
}

bool sn_task_put_variables(SnNode *root, SnArena *arena, SnIssues *issues) {
  const int before = issues->count;
  const SnNode *variables = sn_yaml_take(root, "variables");
  if (variables && variables->kind != SN_NODE_MAP) {
    sn_issue(issues, variables->place, "variables: a map from names to numbers, texts or lists is wanted");
    return false;
  }
  int *times = sn_arena_alloc(arena, sizeof *times * (size_t)(variables ? variables->n + 1 : 1));
  if (!times) {
    sn_issue_memory(issues, root->place);
    return false;
  }
  for (const SnNode *v = variables ? variables->first : NULL; v; v = v->next) check_variable(v, issues);
  put_into(root, variables, times, issues);
  // What a base has for its own terms need not be used by those that replace them.
  int k = 0;
  for (const SnNode *v = variables ? variables->first : NULL; v; v = v->next, ++k)
    if (times[k] == 0 && strcmp(v->key_place.file, issues->file) == 0)
      sn_issue(issues, v->key_place, "variables: '%.60s' is not used; write $%.60s for a value", v->key, v->key);
  return issues->count == before;
}
