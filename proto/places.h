// Folders of models and tasks that the daemon and the tools beside it look in when nobody names one: one rule for all
// of them. Files of the installation lie beside the program, fetched ones in the user's cache folder.
#ifndef SINEW_PROTO_PLACES_H_
#define SINEW_PROTO_PLACES_H_

#include <stdbool.h>
#include <stddef.h>

enum { SN_PLACE_SIZE = 512, SN_PLACES_OF_MODELS = 4 };

// Lists folders of models as in the daemon's setting `models`, "FOLDER" or "NAME=FOLDER", whether they exist or not.
// They are those of the installation, and those of MyoSuite, dm_control and Gymnasium where setup puts them. Returns
// how many.
int sn_places_of_models(char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE]);

// Writes the installation's folder of tasks into path[size]. Returns false when it cannot be told.
bool sn_place_of_tasks(char *path, size_t size);

// Writes the installation's file of the wire's schema, as descriptors, likewise.
bool sn_place_of_schema(char *path, size_t size);

// Returns the folder of an entry "FOLDER" or "NAME=FOLDER"; *name gets the bytes of NAME, 0 where it has none.
const char *sn_place_folder(const char *entry, size_t *name);

#endif
