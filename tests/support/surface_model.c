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

void sn_adhesion_load(SnOracle *o, bool elliptic) {
  char xml[2000];
  snprintf(xml, sizeof xml,
           "<mujoco><option cone='%s' impratio='3'/><worldbody><geom type='plane' size='3 3 1' adhesion='2' "
           "condim='4'/><body pos='0 .1 .065' euler='5 3 0'><freejoint/><geom type='box' size='.1 .05 .06' condim='6' "
           "friction='1 .05 .01' adhesion='3' gap='.02' solref='.02 1' solimp='.3 .9 .02'/></body>"
           "<body pos='1 0 .099'><freejoint/><geom name='a' size='.1' adhesion='5' gap='.05'/></body>"
           "<body pos='1.22 0 .099'><freejoint/><geom name='b' size='.1' condim='4' adhesion='40'/></body>"
           "<body pos='2 0 .5'><joint type='slide' axis='0 0 1'/><joint axis='0 1 0'/><geom type='box' size='.3 .3 "
           ".05'/></body><body pos='2.1 0 .346'><freejoint/><geom size='.1' condim='1' adhesion='60' gap='.01'/></body>"
           "</worldbody><contact><pair geom1='a' geom2='b' adhesion='7' condim='4' gap='.05'/></contact></mujoco>",
           elliptic ? "elliptic" : "pyramidal");
  sn_oracle_load_string(o, xml);
}
