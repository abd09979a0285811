#include "tests/support/surface_model.h"

#include <stdio.h>

void sn_surface_load(SnOracle *o, bool elliptic) {
  char xml[2000];
  snprintf(
      xml, sizeof xml,
      "<mujoco><option cone='%s' impratio='3'/><worldbody><geom type='plane' size='3 3 1' surfacevel='.5 -.2 .1 0 0 "
      ".7' condim='4'/><body pos='0 0 .3' euler='3 5 0'><joint type='slide' axis='1 0 0'/><joint axis='0 1 0' "
      "pos='.1 0 0'/><geom type='box' size='.3 .3 .05' surfacevel='1 .3 .2 .1 .2 2' condim='4'/></body>"
      "<body pos='0 .1 .42' euler='20 10 0'><freejoint/><geom type='box' size='.1 .05 .06' condim='6' friction='1 "
      ".05 .01'/></body><body pos='1 0 .099'><freejoint/><geom size='.1' condim='6' friction='1 .05 .01' "
      "surfacevel='0 .3 0 1 0 2'/></body><body pos='1.18 0 .099'><freejoint/><geom size='.1' condim='4'/></body>"
      "</worldbody></mujoco>",
      elliptic ? "elliptic" : "pyramidal");
  sn_oracle_load_string(o, xml);
}
