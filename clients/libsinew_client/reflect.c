#include "clients/libsinew_client/reflect.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/text.h"
#include "physics/base/known_names.h"

// The memory of a field inside a message.
static void *member(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  return (char *)(uintptr_t)message + field->offset;
}
static void *quantifier(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  return (char *)(uintptr_t)message + field->quantifier_offset;
}

static bool is_oneof(const ProtobufCFieldDescriptor *field) { return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF; }

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  if (is_oneof(field) && *(uint32_t *)quantifier(message, field) != field->id) return false;
  return field->type != PROTOBUF_C_TYPE_MESSAGE || *(void **)member(message, field) != NULL;
}

static size_t element_size(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
      return 8;
    case PROTOBUF_C_TYPE_BOOL:
      return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
      return sizeof(void *);
    default:
      return 4;
  }
}

//------------------------------------------------------------------------------------------ to JSON

static cJSON *value_to_json(const ProtobufCFieldDescriptor *field, const void *value) {
  switch (field->type) {
    case PROTOBUF_C_TYPE_DOUBLE:
      return cJSON_CreateNumber(*(const double *)value);  // printed as null where it is not finite
    case PROTOBUF_C_TYPE_UINT32:
      return cJSON_CreateNumber(*(const uint32_t *)value);
    case PROTOBUF_C_TYPE_UINT64:
      return cJSON_CreateNumber((double)*(const uint64_t *)value);
    case PROTOBUF_C_TYPE_BOOL:
      return cJSON_CreateBool(*(const protobuf_c_boolean *)value);
    case PROTOBUF_C_TYPE_STRING:
      return cJSON_CreateString(*(char *const *)value ? *(char *const *)value : "");
    case PROTOBUF_C_TYPE_MESSAGE:
      return sn_message_to_json(*(ProtobufCMessage *const *)value);
    case PROTOBUF_C_TYPE_ENUM: {
      const ProtobufCEnumValue *e = protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)value);
      return e ? cJSON_CreateString(e->name) : cJSON_CreateNumber(*(const int *)value);
    }
    default:
      return cJSON_CreateNull();  // the schema uses no other type
  }
}

cJSON *sn_message_to_json(const ProtobufCMessage *message) {
  cJSON *object = cJSON_CreateObject();
  for (unsigned i = 0; object && i < message->descriptor->n_fields; ++i) {
    const ProtobufCFieldDescriptor *field = message->descriptor->fields + i;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
      const size_t n = *(size_t *)quantifier(message, field), size = element_size(field->type);
      cJSON *array = cJSON_AddArrayToObject(object, field->name);
      const char *data = *(char **)member(message, field);
      for (size_t k = 0; k < n; ++k) cJSON_AddItemToArray(array, value_to_json(field, data + k * size));
    } else if (is_present(message, field)) {
      cJSON_AddItemToObject(object, field->name, value_to_json(field, member(message, field)));
    }
  }
  return object;
}

//-------------------------------------------------------------------------------------------- clear

static void clear_value(const ProtobufCFieldDescriptor *field, void *value) {
  if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
    sn_message_clear(*(ProtobufCMessage **)value);
    free(*(void **)value);
  } else if (field->type == PROTOBUF_C_TYPE_STRING && *(const void **)value != field->default_value &&
             *(const void **)value != (const void *)protobuf_c_empty_string) {
    free(*(void **)value);
  }
}

static void clear_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  void *value = member(message, field);
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    size_t *n = quantifier(message, field);
    for (size_t k = 0; k < *n; ++k) clear_value(field, *(char **)value + k * element_size(field->type));
    free(*(void **)value);
    *n = 0;
    *(void **)value = NULL;
  } else if (is_present(message, field)) {
    clear_value(field, value);
    memset(value, 0, element_size(field->type));
    if (is_oneof(field)) *(uint32_t *)quantifier(message, field) = 0;
  }
}

void sn_message_clear(ProtobufCMessage *message) {
  if (!message) return;
  for (unsigned i = 0; i < message->descriptor->n_fields; ++i) clear_field(message, message->descriptor->fields + i);
}

//---------------------------------------------------------------------------------------- from JSON

static bool complain(char *error, size_t size, const char *field, const char *expected) {
  snprintf(error, size, "%s: expected %s", field, expected);
  return false;
}

static bool json_number(const cJSON *json, double *x) {
  if (cJSON_IsNumber(json))
    *x = json->valuedouble;
  else if (cJSON_IsString(json) && strcmp(json->valuestring, "inf") == 0)
    *x = INFINITY;
  else if (cJSON_IsString(json) && strcmp(json->valuestring, "-inf") == 0)
    *x = -INFINITY;
  else if (cJSON_IsString(json) && strcmp(json->valuestring, "nan") == 0)
    *x = NAN;
  else
    return false;
  return true;
}

static bool json_whole(const cJSON *json, double max, double *x) {
  return json_number(json, x) && *x >= 0 && *x <= max && floor(*x) == *x;
}

static bool message_value(const ProtobufCFieldDescriptor *field, const cJSON *json, void *value, char *error,
                          size_t size) {
  const ProtobufCMessageDescriptor *type = field->descriptor;
  if (!cJSON_IsObject(json)) return complain(error, size, field->name, "an object");
  ProtobufCMessage *child = malloc(type->sizeof_message);
  if (!child) return complain(error, size, field->name, "memory");
  type->message_init(child);
  *(ProtobufCMessage **)value = child;
  return sn_message_from_json(child, json, error, size);
}

static bool value_from_json(const ProtobufCFieldDescriptor *field, const cJSON *json, void *value, char *error,
                            size_t size) {
  double x = 0;
  switch (field->type) {
    case PROTOBUF_C_TYPE_DOUBLE:
      return json_number(json, value) || complain(error, size, field->name, "a number");
    case PROTOBUF_C_TYPE_UINT32:
      if (!json_whole(json, UINT32_MAX, &x)) return complain(error, size, field->name, "a whole number from 0");
      *(uint32_t *)value = (uint32_t)x;
      return true;
    case PROTOBUF_C_TYPE_UINT64:
      if (!json_whole(json, 0x1p53, &x)) return complain(error, size, field->name, "a whole number from 0 to 2^53");
      *(uint64_t *)value = (uint64_t)x;
      return true;
    case PROTOBUF_C_TYPE_BOOL:
      if (!cJSON_IsBool(json)) return complain(error, size, field->name, "true or false");
      *(protobuf_c_boolean *)value = cJSON_IsTrue(json);
      return true;
    case PROTOBUF_C_TYPE_STRING:
      if (!cJSON_IsString(json)) return complain(error, size, field->name, "a text");
      *(char **)value = strdup(json->valuestring);
      return *(char **)value || complain(error, size, field->name, "memory");
    case PROTOBUF_C_TYPE_MESSAGE:
      return message_value(field, json, value, error, size);
    default:
      return complain(error, size, field->name, "a type that requests use");
  }
}

static bool array_from_json(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, const cJSON *json,
                            char *error, size_t size) {
  if (!cJSON_IsArray(json)) return complain(error, size, field->name, "an array");
  const size_t n = (size_t)cJSON_GetArraySize(json), bytes = element_size(field->type);
  char *data = calloc(n ? n : 1, bytes);
  if (!data) return complain(error, size, field->name, "memory");
  *(char **)member(message, field) = data;
  size_t k = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, json) {
    *(size_t *)quantifier(message, field) = k + 1;
    if (!value_from_json(field, item, data + bytes * k++, error, size)) return false;
  }
  return true;
}

// Lists the fields of n types, in place of one of the name that none has.
static void say_unknown(const ProtobufCMessageDescriptor *const *types, int n, const char *kind, const char *name,
                        const char *more, char *error, size_t size) {
  SnKnownNames known;
  sn_known_begin(&known, name, 0);
  for (int t = 0; t < n; ++t)
    for (unsigned i = 0; i < types[t]->n_fields; ++i) sn_known_add(&known, types[t]->fields[i].name);
  snprintf(error, size, "unknown %s '%.200s'; there are %s%s%s", kind, name, sn_known_list(&known), more,
           sn_known_near(&known));
}

int sn_message_owner(const ProtobufCMessageDescriptor *const *types, int n, const char *assignment, const char *kind,
                     const char *more, char *error, size_t error_size) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(assignment, "="), assignment);
  for (int t = 0; t < n; ++t)
    if (protobuf_c_message_descriptor_get_field_by_name(types[t], name)) return t;
  say_unknown(types, n, kind, name, more, error, error_size);
  return -1;
}

static bool unknown_field(const ProtobufCMessageDescriptor *type, const char *name, char *error, size_t size) {
  say_unknown(&type, 1, "field", name, "", error, size);
  return false;
}

// Sets one field from JSON. What the field held is freed: a name may come twice.
static bool field_from_json(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, const cJSON *json,
                            char *error, size_t size) {
  clear_field(message, field);
  if (field->label == PROTOBUF_C_LABEL_REPEATED) return array_from_json(message, field, json, error, size);
  // The case is set first, so that sn_message_clear finds what a failure leaves behind.
  if (is_oneof(field)) *(uint32_t *)quantifier(message, field) = field->id;
  return value_from_json(field, json, member(message, field), error, size);
}

bool sn_message_from_json(ProtobufCMessage *message, const cJSON *json, char *error, size_t error_size) {
  const cJSON *item;
  cJSON_ArrayForEach(item, json) {
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, item->string);
    if (!field) return unknown_field(message->descriptor, item->string, error, error_size);
    // As in protobuf's own JSON, null is an absent field.
    if (!cJSON_IsNull(item) && !field_from_json(message, field, item, error, error_size)) return false;
  }
  return true;
}

bool sn_message_set(ProtobufCMessage *message, const char *assignment, char *error, size_t error_size) {
  const char *equals = strchr(assignment, '=');
  if (!equals || equals == assignment) {
    snprintf(error, error_size, "'%s': expected name=value", assignment);
    return false;
  }
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
  const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
  if (!field || field->type == PROTOBUF_C_TYPE_MESSAGE)
    return unknown_field(message->descriptor, name, error, error_size);
  // Text stays text; anything else reads as JSON does.
  cJSON *json = field->type == PROTOBUF_C_TYPE_STRING ? cJSON_CreateString(equals + 1)
                                                      : cJSON_ParseWithOpts(equals + 1, NULL, true);
  const bool ok = field_from_json(message, field, json, error, error_size);
  cJSON_Delete(json);
  return ok;
}

//-------------------------------------------------------------------------------------------- print

static void print_scalar(FILE *out, const ProtobufCFieldDescriptor *field, const void *value) {
  if (field->type == PROTOBUF_C_TYPE_UINT64) {  // a double would lose digits
    fprintf(out, "%" PRIu64, *(const uint64_t *)value);
    return;
  }
  cJSON *json = value_to_json(field, value);
  if (cJSON_IsString(json)) {
    sn_print_text(out, json->valuestring, false);
  } else if (cJSON_IsNumber(json)) {
    fprintf(out, field->type == PROTOBUF_C_TYPE_UINT32 ? "%.0f" : "%.9g", json->valuedouble);
  } else {
    fputs(cJSON_IsTrue(json) ? "true" : "false", out);
  }
  cJSON_Delete(json);
}

static void print_array(FILE *out, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, int indent) {
  enum { SHOWN = 8 };
  const size_t n = *(size_t *)quantifier(message, field), size = element_size(field->type);
  const char *data = *(char **)member(message, field);
  if (n == 0) return;
  if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
    for (size_t k = 0; k < n; ++k) {
      fprintf(out, "%*s%s %zu:\n", indent, "", field->name, k);
      sn_message_print(out, *(ProtobufCMessage *const *)(const void *)(data + k * size), indent + 2);
    }
    return;
  }
  fprintf(out, "%*s%s:", indent, "", field->name);
  for (size_t k = 0; k < n && k < SHOWN; ++k) {
    fputc(' ', out);
    print_scalar(out, field, data + k * size);
  }
  if (n > SHOWN) fprintf(out, " ... (%zu)", n);
  fputc('\n', out);
}

void sn_message_print(FILE *out, const ProtobufCMessage *message, int indent) {
  for (unsigned i = 0; i < message->descriptor->n_fields; ++i) {
    const ProtobufCFieldDescriptor *field = message->descriptor->fields + i;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
      print_array(out, message, field, indent);
    } else if (is_present(message, field) && field->type == PROTOBUF_C_TYPE_MESSAGE) {
      fprintf(out, "%*s%s:\n", indent, "", field->name);
      sn_message_print(out, *(ProtobufCMessage *const *)member(message, field), indent + 2);
    } else if (is_present(message, field)) {
      fprintf(out, "%*s%s: ", indent, "", field->name);
      print_scalar(out, field, member(message, field));
      fputc('\n', out);
    }
  }
}
