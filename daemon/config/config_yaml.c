// The configuration file: YAML events of one flat mapping, each pair handed to sn_config_set.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "daemon/config/config.h"

typedef struct Reader {
  yaml_parser_t parser;
  const char *file;
  SnConfig *config;
  SnError *err;
  bool failed;
  bool given[SN_CONFIG_SETTINGS];
} Reader;

// Adds "file:line:column: text" to the error.
static void complain(Reader *r, yaml_mark_t at, const char *text) {
  if (r->failed) {
    size_t n = strlen(r->err->text);
    snprintf(r->err->text + n, sizeof r->err->text - n, "\n%s:%zu:%zu: %s", r->file, at.line + 1, at.column + 1, text);
  } else {
    sn_fail(r->err, SN_ERR_FORMAT, "%s:%zu:%zu: %s", r->file, at.line + 1, at.column + 1, text);
  }
  r->failed = true;
}

static bool next(Reader *r, yaml_event_t *event) {
  if (yaml_parser_parse(&r->parser, event)) return true;
  if (r->parser.error == YAML_MEMORY_ERROR) {
    complain(r, r->parser.mark, "out of memory");
    r->err->code = SN_ERR_MEMORY;
  } else {
    complain(r, r->parser.problem_mark, r->parser.problem ? r->parser.problem : "cannot be read");
  }
  return false;
}

static void set(Reader *r, const char *name, const yaml_event_t *value) {
  SnError err = {0};
  if (sn_config_set(r->config, name, (const char *)value->data.scalar.value, &err) != SN_OK)
    complain(r, value->start_mark, err.text);
}

// Returns the row of a setting, or -1.
static int row_of(const char *name) {
  for (int i = 0; i < sn_config_count(); i++)
    if (!strcmp(sn_config_info(i)->name, name)) return i;
  return -1;
}

// Whether the setting takes a sequence; unknown names do not.
static bool is_list(const char *name) {
  const int row = row_of(name);
  return row >= 0 && sn_config_info(row)->type == SN_CONFIG_IS_LIST;
}

// Notes that a setting is given; a second time is a mistake.
static void note(Reader *r, const char *name, yaml_mark_t at) {
  const int row = row_of(name);
  if (row < 0) return;
  char text[100];
  snprintf(text, sizeof text, "'%s' is given twice", name);
  if (r->given[row]) complain(r, at, text);
  r->given[row] = true;
}

// The entries of a sequence, up to its end. False when the file cannot be read further.
static bool read_sequence(Reader *r, const char *name, yaml_mark_t at) {
  yaml_event_t event;
  bool allowed = is_list(name), scalar = true;
  if (!allowed) complain(r, at, "a sequence is allowed only for models and tasks");
  while (scalar) {
    if (!next(r, &event)) return false;
    scalar = event.type == YAML_SCALAR_EVENT;
    bool end = event.type == YAML_SEQUENCE_END_EVENT;
    if (scalar && allowed) set(r, name, &event);
    if (!scalar && !end) complain(r, event.start_mark, "an entry of a sequence must be a folder");
    yaml_event_delete(&event);
    if (!scalar && !end) return false;
  }
  return true;
}

static bool read_value(Reader *r, const char *name) {
  yaml_event_t event;
  if (!next(r, &event)) return false;
  bool ok = true;
  if (event.type == YAML_SCALAR_EVENT)
    set(r, name, &event);
  else if (event.type == YAML_SEQUENCE_START_EVENT)
    ok = read_sequence(r, name, event.start_mark);
  else {
    complain(r, event.start_mark, "a value must be a text, a number or a sequence of these");
    ok = false;
  }
  yaml_event_delete(&event);
  return ok;
}

// Reads the settings. False when the file cannot be read further.
static bool read_mapping(Reader *r) {
  yaml_event_t event;
  char name[64];
  for (;;) {
    if (!next(r, &event)) return false;
    bool is_name = event.type == YAML_SCALAR_EVENT;
    if (is_name) snprintf(name, sizeof name, "%s", (const char *)event.data.scalar.value);
    if (is_name) note(r, name, event.start_mark);
    if (!is_name && event.type != YAML_MAPPING_END_EVENT)
      complain(r, event.start_mark, "the name of a setting is expected");
    const bool end = event.type == YAML_MAPPING_END_EVENT;
    yaml_event_delete(&event);
    if (!is_name || !read_value(r, name)) return end;
  }
}

// Reads what stands behind the settings, which is nothing.
static void read_end(Reader *r) {
  yaml_event_t event;
  bool end = false;
  while (!end && next(r, &event)) {
    end = event.type == YAML_STREAM_END_EVENT || event.type == YAML_DOCUMENT_START_EVENT;
    if (event.type == YAML_DOCUMENT_START_EVENT) complain(r, event.start_mark, "a second document; only one is taken");
    yaml_event_delete(&event);
  }
}

SnCode sn_config_load(SnConfig *config, const char *file, SnError *err) {
  FILE *f = fopen(file, "rb");
  if (!f) return sn_fail(err, SN_ERR_IO, "'%s': %s", file, strerror(errno));
  struct stat st;
  if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
    fclose(f);
    return sn_fail(err, SN_ERR_IO, "'%s' is a folder; a YAML file of settings is expected", file);
  }
  SnError local;
  Reader r = {.file = file, .config = config, .err = err ? err : &local};
  if (!yaml_parser_initialize(&r.parser)) {
    fclose(f);
    return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", file);
  }
  yaml_parser_set_input_file(&r.parser, f);

  // Stream start, document start, mapping start; an empty file changes nothing.
  yaml_event_type_t type = YAML_NO_EVENT;
  for (int i = 0; i < 3 && type != YAML_STREAM_END_EVENT && !r.failed; i++) {
    yaml_event_t event;
    if (!next(&r, &event)) break;
    type = event.type;
    if (i == 2 && type != YAML_MAPPING_START_EVENT)
      complain(&r, event.start_mark, "the file must be a mapping of settings, as 'tcp: tcp://127.0.0.1:7440'");
    yaml_event_delete(&event);
  }
  if (type == YAML_MAPPING_START_EVENT && read_mapping(&r)) read_end(&r);
  yaml_parser_delete(&r.parser);
  fclose(f);
  return r.failed ? r.err->code : SN_OK;
}
