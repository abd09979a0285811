// The latency that plans meet: how old they are when they come into force.
#include <math.h>

#include "clients/libsinew_client/wire.h"
#include "clients/plant/plant.h"

bool plant_latency_note(PlantLatency *l, double age) {
  l->age[l->n % PLANT_AGES] = age;
  ++l->n;
  double oldest = 0, second = 0;
  for (int i = 0; i < l->n && i < PLANT_AGES; ++i) {
    second = fmax(second, fmin(oldest, l->age[i]));
    oldest = fmax(oldest, l->age[i]);
  }
  const bool enough = l->n >= PLANT_AGES;  // a shorter one is believed only then
  const double rows = ceil((enough ? second : oldest) / l->step - 1e-6);
  const double wanted = fmin(fmax(rows, 1) * l->step, l->longest);
  if (wanted == l->told || (wanted < l->told && !enough)) return false;
  l->told = wanted;
  return true;
}

SinewStatus plant_latency_tell(const PlantLatency *l, SinewClient *client, uint64_t session, SinewError *err) {
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  settings.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  settings.latency = l->told;
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  set.session = session;
  set.settings = &settings;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &set;
  return sn_wire_send(client, &request, NULL, err);
}
