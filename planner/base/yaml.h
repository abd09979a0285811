// YAML files into typed structs, by tables. A file is first read into a small tree (maps, lists, scalars, each
// with its place), then a table of fields fills a struct from a map. Every mistake is collected with file,
// line and column; nothing stops at the first.
//
// Not taken, on purpose: anchors and aliases (they can blow up a small file), tags, several documents,
// the same key twice.
#ifndef SINEW_PLANNER_BASE_YAML_H_
#define SINEW_PLANNER_BASE_YAML_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/known_names.h"
#include "physics/base/status.h"
#include "planner/base/arena.h"

// Holds a place in a file, counted from 1.
typedef struct SnPlace {
  int line, column;
  const char *file;  // NULL: that of the list of mistakes
} SnPlace;

// Collects the mistakes of one file. Text that does not fit is counted, not lost silently.
typedef struct SnIssues {
  const char *file;
  SnError *err;  // may be NULL
  int count;     // mistakes so far
  int repeated;  // lines among them that stand in the text already
  bool memory;   // one of them is no mistake: memory was lacking
  size_t used;   // characters of err->text
} SnIssues;

// Starts a list for `file`: err is emptied.
void sn_issues_begin(SnIssues *issues, const char *file, SnError *err);
// Adds "file:line:column: text" (without a place when place.line is 0). The file is that of the place.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void sn_issue(SnIssues *issues, SnPlace place, const char *format, ...);
// Adds that memory was lacking, which is nobody's mistake.
void sn_issue_memory(SnIssues *issues, SnPlace place);
// Returns SN_OK without mistakes; else `code`, which is also set in err, or SN_ERR_MEMORY where memory was lacking.
SnCode sn_issues_end(SnIssues *issues, SnCode code);

typedef enum SnNodeKind { SN_NODE_SCALAR, SN_NODE_LIST, SN_NODE_MAP } SnNodeKind;

typedef struct SnNode SnNode;
struct SnNode {
  SnNodeKind kind;
  SnPlace place;
  const char *text;  // scalar
  bool quoted;       // scalar in quotes: never a number
  const char *key;   // name as a member of a map, else NULL
  SnPlace key_place;
  int n;  // children of a list or map
  SnNode *first, *next;
};

// Reads text[size] into a tree that lives in the arena; NULL when a mistake was added. Takes at most
// `max_nodes` nodes and 32 levels. Places are those of issues->file.
SnNode *sn_yaml_read(const char *text, size_t size, int max_nodes, SnArena *arena, SnIssues *issues);

// Returns a member of a map by name, or NULL.
const SnNode *sn_yaml_member(const SnNode *map, const char *key);

// yaml_tree.c: takes a member out of a map, by name; NULL: it has none.
SnNode *sn_yaml_take(SnNode *map, const char *key);
// yaml_tree.c: adds to a map what it lacks of another one, whose nodes move. Maps that both have are joined, too.
void sn_yaml_join(SnNode *map, SnNode *base);
// yaml_tree.c: returns the number of nodes of a tree.
int sn_yaml_count(const SnNode *node);
// yaml_tree.c: writes a tree as a text in the arena that sn_yaml_read makes the same tree of, but for places. Returns
// NULL when it is longer than max_bytes, or out of memory: then the arena has failed.
char *sn_yaml_write(const SnNode *root, size_t max_bytes, SnArena *arena);

typedef enum SnYamlType {
  SN_YAML_NUMBER,   // double
  SN_YAML_INTEGER,  // int
  SN_YAML_BOOL,     // bool: true or false
  SN_YAML_TEXT,     // char *
  SN_YAML_CHOICE,   // int: index into choices
  SN_YAML_NUMBERS,  // double *, with its count in an int: a number or a list
  SN_YAML_CUSTOM    // read(context, node, target)
} SnYamlType;

typedef struct SnReader {
  SnArena *arena;
  SnIssues *issues;
  void *context;  // for custom fields
} SnReader;

// Describes a field of a map. Offsets are into the struct that the table fills.
typedef struct SnYamlField {
  const char *name;
  SnYamlType type;
  bool required;
  size_t offset;
  size_t count;         // NUMBERS: offset of the count; others: offset of a bool that says it was there, 0: none
                        // (so that bool cannot be the first member)
  double lo, hi;        // bounds of numbers, both allowed; lo == hi == 0: any finite number
  const char *choices;  // names joined by '|'
  void (*read)(SnReader *reader, const SnNode *node, void *target);
} SnYamlField;

// Fills a struct from a map. Unknown and missing fields are mistakes; the text lists the allowed names.
void sn_yaml_fill(SnReader *reader, const SnNode *map, const char *what, const SnYamlField *field, int nfield,
                  void *target);

// Adds the mistake that a map `what` has no field of the key of `member`. `known` was begun with that key, and has the
// names that are allowed.
void sn_yaml_unknown(SnIssues *issues, const SnNode *member, const char *what, SnKnownNames *known);

// Reads a single value. Adds a mistake and returns the fallback when the node is something else.
double sn_yaml_number(SnReader *reader, const SnNode *node, const char *what, double lo, double hi, double fallback);
const char *sn_yaml_text(SnReader *reader, const SnNode *node, const char *what);

#endif
