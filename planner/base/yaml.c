#include "planner/base/yaml.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "physics/base/number_text.h"
#include "planner/base/decimal.h"

enum { YAML_MAX_DEPTH = 32, YAML_MAX_TEXT = 1 << 16 };

// ---- mistakes ----

void sn_issues_begin(SnIssues *issues, const char *file, SnError *err) {
  *issues = (SnIssues){.file = file, .err = err};
  if (err) {
    err->code = SN_OK;
    err->text[0] = 0;
  }
}

// Whether the text has this line.
static bool issue_stands(const SnIssues *issues, const char *line) {
  const char *text = issues->err->text, *end = text + issues->used;
  const size_t length = strlen(line);
  while (text < end) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    const size_t n = (size_t)((next ? next : end) - text);
    if (n == length && memcmp(text, line, n) == 0) return true;
    text += n + 1;
  }
  return false;
}

void sn_issue(SnIssues *issues, SnPlace place, const char *format, ...) {
  ++issues->count;
  if (!issues->err) return;
  char line[1600];
  const char *file = place.file ? place.file : issues->file;
  int n = place.line > 0 ? snprintf(line, sizeof line, "%s:%d:%d: ", file, place.line, place.column)
                         : snprintf(line, sizeof line, "%s: ", file);
  if (n < 0 || n >= (int)sizeof line) n = 0;
  va_list args;
  va_start(args, format);
  vsnprintf(line + n, sizeof line - (size_t)n, format, args);
  va_end(args);
  if (issue_stands(issues, line)) {
    ++issues->repeated;
    return;
  }
  // Room is kept for the line that counts what did not fit.
  const size_t capacity = sizeof issues->err->text - 64;
  const size_t length = strlen(line) + (issues->used > 0);
  if (issues->used + length >= capacity) return;
  issues->used += (size_t)snprintf(issues->err->text + issues->used, capacity - issues->used, "%s%s",
                                   issues->used > 0 ? "\n" : "", line);
}

void sn_issue_memory(SnIssues *issues, SnPlace place) {
  issues->memory = true;
  sn_issue(issues, place, "out of memory");
}

// Lines in the text so far.
static int issue_lines(const SnIssues *issues) {
  int lines = issues->used > 0;
  for (size_t i = 0; i < issues->used; ++i) lines += issues->err->text[i] == '\n';
  return lines;
}

SnCode sn_issues_end(SnIssues *issues, SnCode code) {
  if (issues->count == 0) return SN_OK;
  if (issues->memory) code = SN_ERR_MEMORY;
  if (issues->err) {
    issues->err->code = code;
    const int more = issues->count - issues->repeated - issue_lines(issues);
    if (more > 0)
      snprintf(issues->err->text + issues->used, sizeof issues->err->text - issues->used, "\n... and %d more", more);
  }
  return code;
}

// ---- tree ----

typedef struct TreeReader {
  yaml_parser_t parser;
  SnArena *arena;
  SnIssues *issues;
  int left;  // nodes that may still be made
} TreeReader;

static SnPlace place_of(const TreeReader *t, yaml_mark_t mark) {
  return (SnPlace){(int)mark.line + 1, (int)mark.column + 1, t->issues->file};
}

// Next event; false after a mistake.
static bool next_event(TreeReader *t, yaml_event_t *event) {
  if (yaml_parser_parse(&t->parser, event)) return true;
  const yaml_mark_t mark = t->parser.problem ? t->parser.problem_mark : t->parser.mark;
  if (t->parser.error == YAML_MEMORY_ERROR)
    sn_issue_memory(t->issues, place_of(t, mark));
  else
    sn_issue(t->issues, place_of(t, mark), "not YAML: %s", t->parser.problem ? t->parser.problem : "unreadable");
  return false;
}

static SnNode *new_node(TreeReader *t, SnNodeKind kind, SnPlace place) {
  if (t->left-- <= 0) {
    sn_issue(t->issues, place, "too many entries in one file");
    return NULL;
  }
  SnNode *node = sn_arena_alloc(t->arena, sizeof *node);
  if (!node) {
    sn_issue_memory(t->issues, place);
    return NULL;
  }
  node->kind = kind;
  node->place = place;
  return node;
}

static SnNode *read_node(TreeReader *t, const yaml_event_t *event, int depth);

static void append(SnNode *parent, SnNode *child, SnNode **last) {
  if (*last)
    (*last)->next = child;
  else
    parent->first = child;
  *last = child;
  ++parent->n;
}

// The members of a map or the items of a list, up to its end event.
static bool read_children(TreeReader *t, SnNode *parent, int depth) {
  SnNode *last = NULL;
  for (;;) {
    yaml_event_t event;
    if (!next_event(t, &event)) return false;
    if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT) {
      yaml_event_delete(&event);
      return true;
    }
    const char *key = NULL;
    bool twice = false;
    const SnPlace key_place = place_of(t, event.start_mark);
    if (parent->kind == SN_NODE_MAP) {
      const bool scalar = event.type == YAML_SCALAR_EVENT && event.data.scalar.length < YAML_MAX_TEXT;
      if (scalar) key = sn_arena_text(t->arena, (const char *)event.data.scalar.value, event.data.scalar.length);
      yaml_event_delete(&event);
      if (!key) {
        if (scalar)
          sn_issue_memory(t->issues, key_place);
        else
          sn_issue(t->issues, key_place, "a key must be a plain name");
        return false;
      }
      twice = sn_yaml_member(parent, key) != NULL;
      if (twice) sn_issue(t->issues, key_place, "'%s' is given twice", key);
      if (!next_event(t, &event)) return false;
    }
    SnNode *child = read_node(t, &event, depth + 1);
    yaml_event_delete(&event);
    if (!child) return false;
    child->key = key;
    child->key_place = key_place;
    if (!twice) append(parent, child, &last);  // a map has each name once, as its readers expect
  }
}

static SnNode *read_node(TreeReader *t, const yaml_event_t *event, int depth) {
  const SnPlace place = place_of(t, event->start_mark);
  if (depth > YAML_MAX_DEPTH) {
    sn_issue(t->issues, place, "nested more than %d levels deep", YAML_MAX_DEPTH);
    return NULL;
  }
  SnNode *node = NULL;
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      if (event->data.scalar.anchor) break;
      if (event->data.scalar.length >= YAML_MAX_TEXT ||
          strlen((const char *)event->data.scalar.value) != event->data.scalar.length) {
        sn_issue(t->issues, place, "text too long, or with a zero byte");
        return NULL;
      }
      node = new_node(t, SN_NODE_SCALAR, place);
      if (!node) return NULL;
      node->text = sn_arena_text(t->arena, (const char *)event->data.scalar.value, event->data.scalar.length);
      node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
      return node->text ? node : NULL;
    case YAML_SEQUENCE_START_EVENT:
      if (event->data.sequence_start.anchor) break;
      node = new_node(t, SN_NODE_LIST, place);
      return node && read_children(t, node, depth) ? node : NULL;
    case YAML_MAPPING_START_EVENT:
      if (event->data.mapping_start.anchor) break;
      node = new_node(t, SN_NODE_MAP, place);
      return node && read_children(t, node, depth) ? node : NULL;
    default:
      break;
  }
  sn_issue(t->issues, place, "anchors and aliases are not taken");
  return NULL;
}

// The one document of the file.
static SnNode *read_document(TreeReader *t) {
  SnNode *root = NULL;
  for (;;) {
    yaml_event_t event;
    if (!next_event(t, &event)) return NULL;
    const yaml_event_type_t type = event.type;
    const SnPlace place = place_of(t, event.start_mark);
    if (type == YAML_STREAM_END_EVENT) {
      yaml_event_delete(&event);
      if (!root) sn_issue(t->issues, (SnPlace){.line = 1, .column = 1}, "the file is empty");
      return root;
    }
    if (type == YAML_DOCUMENT_START_EVENT && root) {
      yaml_event_delete(&event);
      sn_issue(t->issues, place, "a second document; only one is taken");
      return NULL;
    }
    const bool content =
        type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT;
    if (content) root = read_node(t, &event, 0);
    yaml_event_delete(&event);
    if (content && !root) return NULL;
  }
}

SnNode *sn_yaml_read(const char *text, size_t size, int max_nodes, SnArena *arena, SnIssues *issues) {
  TreeReader t = {.arena = arena, .issues = issues, .left = max_nodes};
  if (!yaml_parser_initialize(&t.parser)) {
    sn_issue_memory(issues, (SnPlace){0});
    return NULL;
  }
  yaml_parser_set_encoding(&t.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&t.parser, (const unsigned char *)text, size);
  SnNode *root = read_document(&t);
  yaml_parser_delete(&t.parser);
  return root;
}

const SnNode *sn_yaml_member(const SnNode *map, const char *key) {
  for (const SnNode *c = map->first; c; c = c->next)
    if (strcmp(c->key, key) == 0) return c;
  return NULL;
}

// ---- values ----

static const char *kind_name(const SnNode *node) {
  return node->kind == SN_NODE_SCALAR ? "text" : (node->kind == SN_NODE_LIST ? "a list" : "a map");
}

// True when the whole of a scalar is one finite number.
static bool scan_number(const SnNode *node, double *x) {
  if (node->kind != SN_NODE_SCALAR || node->quoted || !node->text[0]) return false;
  const char c = node->text[0];
  if (!isdigit((unsigned char)c) && c != '-' && c != '+' && c != '.') return false;
  char *end = NULL;
  *x = sn_decimal_read(node->text, &end);
  return *end == 0 && isfinite(*x);
}

static bool bounded(double lo, double hi) { return lo != 0 || hi != 0; }

double sn_yaml_number(SnReader *r, const SnNode *node, const char *what, double lo, double hi, double fallback) {
  double x = 0;
  const char *text = node->kind == SN_NODE_SCALAR ? node->text : kind_name(node);
  if (!scan_number(node, &x)) {
    sn_issue(r->issues, node->place, "%s: '%s' is not a finite number", what, text);
    return fallback;
  }
  if (bounded(lo, hi) && !(x >= lo && x <= hi)) {
    sn_issue(r->issues, node->place, "%s: %s is out of bounds, allowed is %s to %s", what, text,
             sn_number_text(lo).text, sn_number_text(hi).text);
    return fallback;
  }
  return x;
}

const char *sn_yaml_text(SnReader *r, const SnNode *node, const char *what) {
  if (node->kind == SN_NODE_SCALAR && node->text[0]) return node->text;
  sn_issue(r->issues, node->place, "%s: a name is wanted, this is %s", what,
           node->kind == SN_NODE_SCALAR ? "empty" : kind_name(node));
  return NULL;
}

static void read_integer(SnReader *r, const SnNode *node, const SnYamlField *f, int *out) {
  const int before = r->issues->count;
  const double x = sn_yaml_number(r, node, f->name, f->lo, f->hi, 0);
  if (r->issues->count > before) return;
  if (x != floor(x) || fabs(x) > 2147483647.0)
    sn_issue(r->issues, node->place, "%s: %s is not a whole number", f->name, node->text);
  else
    *out = (int)x;
}

static void read_bool(SnReader *r, const SnNode *node, const SnYamlField *f, bool *out) {
  const char *text = node->kind == SN_NODE_SCALAR && !node->quoted ? node->text : "";
  if (strcmp(text, "true") == 0)
    *out = true;
  else if (strcmp(text, "false") == 0)
    *out = false;
  else
    sn_issue(r->issues, node->place, "%s: allowed is true or false", f->name);
}

// Index of `text` among names joined by '|', or -1.
static int choice_index(const char *choices, const char *text) {
  const size_t n = strlen(text);
  int i = 0;
  for (const char *c = choices; *c; ++i) {
    const size_t m = strcspn(c, "|");
    if (m == n && strncmp(c, text, n) == 0) return i;
    c += m + (c[m] == '|');
  }
  return -1;
}

static void read_choice(SnReader *r, const SnNode *node, const SnYamlField *f, int *out) {
  const int i = node->kind == SN_NODE_SCALAR ? choice_index(f->choices, node->text) : -1;
  SnKnownNames known;
  if (i >= 0) {
    *out = i;
    return;
  }
  sn_known_begin(&known, node->text, 0);
  sn_known_add_choices(&known, f->choices);
  sn_issue(r->issues, node->place, "%s: '%s' is unknown, allowed is %s%s", f->name,
           node->kind == SN_NODE_SCALAR ? node->text : kind_name(node), f->choices, sn_known_near(&known));
}

static void read_numbers(SnReader *r, const SnNode *node, const SnYamlField *f, void *target) {
  const int n = node->kind == SN_NODE_LIST ? node->n : 1;
  double *x = sn_arena_alloc(r->arena, sizeof *x * (size_t)(n > 0 ? n : 1));
  if (!x) {
    sn_issue_memory(r->issues, node->place);
    return;
  }
  if (n == 0) {
    sn_issue(r->issues, node->place, "%s: a number or a list of numbers is wanted", f->name);
    return;
  }
  if (node->kind == SN_NODE_LIST) {
    int i = 0;
    for (const SnNode *c = node->first; c; c = c->next) x[i++] = sn_yaml_number(r, c, f->name, f->lo, f->hi, 0);
  } else {
    x[0] = sn_yaml_number(r, node, f->name, f->lo, f->hi, 0);
  }
  memcpy((char *)target + f->offset, &x, sizeof x);
  memcpy((char *)target + f->count, &n, sizeof n);
}

static void read_field(SnReader *r, const SnNode *node, const SnYamlField *f, void *target) {
  void *out = (char *)target + f->offset;
  switch (f->type) {
    case SN_YAML_NUMBER:
      *(double *)out = sn_yaml_number(r, node, f->name, f->lo, f->hi, *(double *)out);
      break;
    case SN_YAML_INTEGER:
      read_integer(r, node, f, out);
      break;
    case SN_YAML_BOOL:
      read_bool(r, node, f, out);
      break;
    case SN_YAML_TEXT: {
      const char *text = sn_yaml_text(r, node, f->name);
      if (text) *(char **)out = sn_arena_text(r->arena, text, strlen(text));
      break;
    }
    case SN_YAML_CHOICE:
      read_choice(r, node, f, out);
      break;
    case SN_YAML_NUMBERS:
      read_numbers(r, node, f, target);
      return;
    case SN_YAML_CUSTOM:
      f->read(r, node, out);
      break;
  }
  if (f->count) *(bool *)((char *)target + f->count) = true;
}

static const SnYamlField *find_field(const SnYamlField *field, int nfield, const char *name) {
  for (int i = 0; i < nfield; ++i)
    if (strcmp(field[i].name, name) == 0) return &field[i];
  return NULL;
}

void sn_yaml_unknown(SnIssues *issues, const SnNode *member, const char *what, SnKnownNames *known) {
  sn_issue(issues, member->key_place, "%s: unknown field '%s', allowed is %s%s", what, member->key,
           sn_known_list(known), sn_known_near(known));
}

// The names of all fields; `key`, which is none of them, may be NULL.
static void field_names(const SnYamlField *field, int nfield, const char *key, SnKnownNames *known) {
  sn_known_begin(known, key, 0);
  for (int i = 0; i < nfield; ++i) sn_known_add(known, field[i].name);
}

void sn_yaml_fill(SnReader *r, const SnNode *map, const char *what, const SnYamlField *field, int nfield,
                  void *target) {
  SnKnownNames known;
  if (map->kind != SN_NODE_MAP) {
    field_names(field, nfield, NULL, &known);
    sn_issue(r->issues, map->place, "%s: a map with the fields %s is wanted, this is %s", what, sn_known_list(&known),
             kind_name(map));
    return;
  }
  for (const SnNode *c = map->first; c; c = c->next) {
    const SnYamlField *f = find_field(field, nfield, c->key);
    if (f) {
      read_field(r, c, f, target);
    } else {
      field_names(field, nfield, c->key, &known);
      sn_yaml_unknown(r->issues, c, what, &known);
    }
  }
  for (int i = 0; i < nfield; ++i)
    if (field[i].required && !sn_yaml_member(map, field[i].name))
      sn_issue(r->issues, map->place, "%s: field '%s' is missing", what, field[i].name);
}
