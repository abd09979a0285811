#!/usr/bin/env bash
# clients/setup.sh: our models beside those of MyoSuite that they include, in a cache folder of its own. Nothing is fetched.
set -euo pipefail
SOURCE=$2
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
# shellcheck source=clients/setup.sh
. "$SOURCE/clients/setup.sh"
myosuite=$SINEW_CACHE/myosuite-2.12.2/myosuite
chain=$myosuite/simhive/MPL_sim/assets/handL_chain.xml
placed=$myosuite/envs/myo/assets/sinew
mkdir -p "$(dirname "$chain")"
printf '<mujocoinclude>\n  <site name="prosthesis/palm_back" pos="0 0 0"/>\n</mujocoinclude>\n' >"$chain"

sinew_place_models
for file in "$SOURCE"/clients/myosuite/*.xml; do cmp "$file" "$placed/${file##*/}"; done
grep -A1 palm_back "$placed/prosthesis_with_racket.xml" | grep -q '<include file="racket.xml"/>'
[ "$(find "$placed" -type f | wc -l)" = "$(($(find "$SOURCE/clients/myosuite" -name '*.xml' | wc -l) + 1))" ]

# A second time nothing is written; what was changed is put right.
find "$placed" -type f -printf '%f %T@\n' | sort >"$XDG_CACHE_HOME/before"
sinew_place_models
find "$placed" -type f -printf '%f %T@\n' | sort | cmp - "$XDG_CACHE_HOME/before"
echo changed >"$placed/racket.xml"
sinew_place_models
cmp "$SOURCE/clients/myosuite/racket.xml" "$placed/racket.xml"

# A hand of another version is told.
echo '<mujocoinclude/>' >"$chain"
if sinew_place_models 2>"$XDG_CACHE_HOME/err"; then echo "a hand without that site is taken" >&2; exit 1; fi
grep -q "no site prosthesis/palm_back" "$XDG_CACHE_HOME/err"

# Folders as the options of programs have them, whatever is in their names.
SINEW_CACHE="/a %s b"
[ "$(sinew_model_options | head -1)" = "--models=/a %s b/myosuite-2.12.2" ]
[ "$(sinew_model_options | wc -l)" = 3 ]
echo "models are put where what they include is found"
