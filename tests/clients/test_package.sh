#!/usr/bin/env bash
# Installs into a temporary folder, moves it, and looks at what other builds find there: headers for C99 and C++17,
# pkg-config, the CMake package, the archive, run paths; no folder of the build is named.
#   test_package.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }
cmake --install "$build" --prefix "$work/first" >/dev/null
prefix=$work/moved
mv "$work/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libsinew.so)")

# Nothing names where it was built, or where it was first installed.
for place in "$(realpath "$source")" "$(realpath "$build")" "$work"; do
  named=$(grep -rlaF -- "$place" "$prefix" | grep -vE '/systemd/' || true)
  [ -z "$named" ] || fail "$place is named by $named"
done
runpath() { readelf -d "$1" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p'; }
[ "$(runpath "$lib/libsinew.so")" = "\$ORIGIN/sinew" ] || fail "libsinew.so looks for backends in $(runpath "$lib/libsinew.so")"
[ -z "$(runpath "$lib/libsinew_client.so")" ] || fail "libsinew_client.so has a run path"
for library in libsinew libsinew_client; do
  [ "$(readelf -d "$lib/$library.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" = "$library.so.0" ] || fail "$library.so has another soname"
done

# The headers by themselves, and together.
export PKG_CONFIG_PATH=$lib/pkgconfig
for headers in sinew.h sinew_client.h "sinew.h sinew_client.h" "sinew_client.h sinew.h"; do
  for header in $headers; do echo "#include <$header>"; done >"$work/use.c"
  echo 'int main(void) { return 0; }' >>"$work/use.c"
  cp "$work/use.c" "$work/use.cpp"
  strict="-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only"
  # shellcheck disable=SC2046,SC2086
  cc -std=c99 -Wstrict-prototypes $strict $(pkg-config --cflags sinew sinew-client) "$work/use.c"
  # shellcheck disable=SC2046,SC2086
  c++ -std=c++17 $strict -Wold-style-cast -Wuseless-cast $(pkg-config --cflags sinew sinew-client) "$work/use.cpp"
done
[ "$(pkg-config --modversion sinew)" = "$(pkg-config --modversion sinew-client)" ] || fail "the versions of both differ"

# A program three ways: shared by pkg-config, the archive by pkg-config, and by CMake. Each prints the version.
cat >"$work/use.c" <<'END'
#include <sinew.h>
#include <stdio.h>

int main(void) {
  puts(sinew_version());
  return sinew_model_load("nothing.xml", NULL) != NULL;
}
END
version=$(pkg-config --modversion sinew)
# shellcheck disable=SC2046
cc -std=c99 -o "$work/shared" "$work/use.c" $(pkg-config --cflags --libs sinew)
[ "$(LD_LIBRARY_PATH=$lib "$work/shared")" = "$version" ] || fail "the library tells another version"
# shellcheck disable=SC2046
cc -std=c99 -o "$work/static" "$work/use.c" $(pkg-config --cflags --libs --static sinew | sed 's/-lsinew /-l:libsinew.a /')
if readelf -d "$work/static" | grep 'libsinew\.so' >/dev/null; then fail "the archive was not linked"; fi
[ "$("$work/static")" = "$version" ] || fail "the archive tells another version"

# Both libraries in one program, of C and of C++: types, statuses and errors are the same.
cat >"$work/both.c" <<'END'
#include <sinew_client.h>
#include <stdio.h>

int main(void) {
  SinewError err;
  const SinewModel *model = sinew_model_load("nothing.xml", &err);
  printf("%s, ", sinew_status_name(err.status));
  const SinewClient *client = sinew_client_connect("ipc:///nowhere/at/all", 0.05, 0, &err);
  printf("%s\n", sinew_status_name(err.status));
  return model != NULL || client != NULL;
}
END
cp "$work/both.c" "$work/both.cpp"
# shellcheck disable=SC2046
cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o "$work/both" "$work/both.c" $(pkg-config --cflags --libs sinew sinew-client)
# shellcheck disable=SC2046
c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -o "$work/both++" "$work/both.cpp" $(pkg-config --cflags --libs sinew-client sinew)
for program in both both++; do
  said=$(LD_LIBRARY_PATH=$lib "$work/$program") || fail "$program found a model or a daemon"
  [ "$said" = "not found, timeout" ] || fail "$program says '$said'"
done

# sinew-import is found from the library's place, from lib/TRIPLET, too, and beside the program; elsewhere it is missed.
cat >"$work/import.c" <<'END'
#include <sinew.h>
#include <stdio.h>

int main(void) {
  SinewError err;
  sinew_model_free(sinew_model_read("<mujoco/>", 9, NULL, &err));
  puts(err.text);
  return err.status;
}
END
mkdir -p "$work/program" "$work/else/bin" "$work/else/lib/triplet"
# shellcheck disable=SC2046
cc -std=c99 -o "$work/program/import" "$work/import.c" $(pkg-config --cflags --libs sinew)
cp "$lib/libsinew.so.0" "$work/else/lib/triplet"
# imports FOLDER STATUS: with the library of this folder the program ends so.
imports() {
  local status=0
  LD_LIBRARY_PATH=$1 XDG_CACHE_HOME=$work/cache "$work/program/import" >"$work/log" || status=$?
  [ "$status" = "$2" ] || fail "an import with the library in $1 ends with $status: $(cat "$work/log")"
}
imports "$lib" 0
imports "$work/else/lib/triplet" 7
grep -q "sinew-import, which reads .*, is neither beside .* nor at $work/else/lib/triplet," "$work/log" || fail "$(cat "$work/log")"
for folder in else/bin program; do
  printf '#!/bin/sh\nexec "%s/bin/sinew-import" "$@"\n' "$prefix" >"$work/$folder/sinew-import"
  chmod +x "$work/$folder/sinew-import"
  imports "$work/else/lib/triplet" 0
  rm "$work/$folder/sinew-import"
done

# The library finds backends beside itself wherever it lies; here one of the tests.
cat >"$work/finds.c" <<'END'
#include <sinew.h>
#include <stdio.h>

int main(void) {
  SinewError err;
  SinewBackend *backend = sinew_backend_open("emulator_double", NULL, &err);
  if (!backend) return puts(err.text), 1;
  sinew_backend_close(backend);
  return 0;
}
END
# shellcheck disable=SC2046
cc -std=c99 -o "$work/finds" "$work/finds.c" $(pkg-config --cflags --libs sinew)
finds() { XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$lib "$work/finds"; }
if finds >/dev/null; then fail "a backend is found that is not installed"; fi
cp "$build/lib/sinew/libsinew_emulator_double.so" "$lib/sinew"
finds || fail "the moved library does not find a backend beside it"

# project PACKAGE...: a CMake project that finds sinew by these words.
project() {
  cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(use LANGUAGES C)
find_package(sinew $* REQUIRED)
foreach(kind sinew static)
  add_executable(by_\${kind} use.c)
  target_link_libraries(by_\${kind} PRIVATE sinew::\${kind})
endforeach()
if(NOT TARGET sinew::client)
  message(FATAL_ERROR "no sinew::client")
endif()
END
  cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1
}
project "$version" COMPONENTS sinew client static || { cat "$work/log" >&2; fail "CMake does not find the package"; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the project does not build"; }
for kind in sinew static; do [ "$("$work/build/by_$kind")" = "$version" ] || fail "sinew::$kind tells another version"; done
if project 99; then fail "CMake takes this for version 99"; fi
if project COMPONENTS nonsense; then fail "CMake finds a component that there is not"; fi
echo "a moved copy is found by pkg-config and CMake, shared and as an archive"
