// Trees of YAML joined, and written as text.
#include <string.h>
#include <yaml.h>

#include "planner/base/yaml.h"

// ---- joining ----

SnNode *sn_yaml_take(SnNode *map, const char *key) {
  for (SnNode **at = &map->first; *at; at = &(*at)->next) {
    SnNode *node = *at;
    if (strcmp(node->key, key) != 0) continue;
    *at = node->next;
    node->next = NULL;
    --map->n;
    return node;
  }
  return NULL;
}

void sn_yaml_join(SnNode *map, SnNode *base) {
  SnNode **end = &map->first;
  for (SnNode *own = map->first; own; own = own->next) {
    SnNode *same = sn_yaml_take(base, own->key);
    if (same && own->kind == SN_NODE_MAP && same->kind == SN_NODE_MAP) sn_yaml_join(own, same);
    end = &own->next;
  }
  *end = base->first;
  map->n += base->n;
}

int sn_yaml_count(const SnNode *node) {
  int n = 1;
  for (const SnNode *c = node->first; c; c = c->next) n += sn_yaml_count(c);
  return n;
}

// ---- writing ----

enum { BLOCK_DEPTH = 2 };  // levels that are written line by line; those within stand in one line each

// Emits an event that was made, or not.
static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int made) {
  return made && yaml_emitter_emit(emitter, event);
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, bool quoted) {
  yaml_event_t event;
  const yaml_scalar_style_t style = quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
  return emit(
      emitter, &event,
      yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1, style));
}

static bool emit_node(yaml_emitter_t *emitter, const SnNode *node, int depth);

static bool emit_children(yaml_emitter_t *emitter, const SnNode *node, int depth) {
  for (const SnNode *c = node->first; c; c = c->next)
    if ((c->key && !emit_scalar(emitter, c->key, false)) || !emit_node(emitter, c, depth + 1)) return false;
  return true;
}

static bool emit_node(yaml_emitter_t *emitter, const SnNode *node, int depth) {
  const bool block = depth < BLOCK_DEPTH;
  yaml_event_t event;
  if (node->kind == SN_NODE_SCALAR) return emit_scalar(emitter, node->text, node->quoted);
  if (node->kind == SN_NODE_MAP)
    return emit(emitter, &event,
                yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                                    block ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE)) &&
           emit_children(emitter, node, depth) && emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
  return emit(emitter, &event,
              yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                   block ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE)) &&
         emit_children(emitter, node, depth) && emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static bool emit_document(yaml_emitter_t *emitter, const SnNode *root) {
  yaml_event_t event;
  return emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
         emit(emitter, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
         emit_node(emitter, root, 0) && emit(emitter, &event, yaml_document_end_event_initialize(&event, 1)) &&
         emit(emitter, &event, yaml_stream_end_event_initialize(&event)) && yaml_emitter_flush(emitter);
}

char *sn_yaml_write(const SnNode *root, size_t max_bytes, SnArena *arena) {
  yaml_emitter_t emitter;
  size_t written = 0;
  char *text = sn_arena_alloc(arena, max_bytes + 1);
  if (!text) return NULL;
  if (!yaml_emitter_initialize(&emitter)) {
    arena->failed = true;
    return NULL;
  }
  yaml_emitter_set_output_string(&emitter, (unsigned char *)text, max_bytes, &written);
  yaml_emitter_set_width(&emitter, -1);
  yaml_emitter_set_unicode(&emitter, 1);
  const bool complete = emit_document(&emitter, root);
  if (!complete && emitter.error != YAML_WRITER_ERROR) arena->failed = true;
  yaml_emitter_delete(&emitter);
  text[complete ? written : 0] = '\0';
  return complete ? text : NULL;
}
