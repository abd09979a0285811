// Contacts of a body.
#include <string.h>

#include "clients/libsinew/data_private.h"
#include "physics/constraint/constraint.h"

int sinew_data_ncon(const SinewData *data) { return data ? *data->body->world.ncon : 0; }

SinewStatus sinew_data_contact(const SinewData *data, int i, SinewContact *contact, SinewError *err) {
  if (!data || !contact)
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_data_contact: %s is NULL", data ? "contact" : "data");
  const SnWorld *w = &data->body->world;
  if (i < 0 || i >= *w->ncon)
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_data_contact: there is no contact %d; the body has %d", i,
                    *w->ncon);
  const SnContact *from = w->contact + i;
  *contact = (SinewContact){
      .dist = from->dist, .dim = from->dim, .geom = {from->geom[0], from->geom[1]}, .efc_address = from->efc_address};
  memcpy(contact->pos, from->pos, sizeof contact->pos);
  memcpy(contact->frame, from->frame, sizeof contact->frame);
  memcpy(contact->friction, from->friction, sizeof contact->friction);
  sn_contact_force(w, i, contact->force);
  return api_ok(err);
}
