#!/usr/bin/env bash
# Installs a finished build into an empty prefix, moves the prefix, and builds and runs hosts against it: with
# find_package, with pkg-config, and as a subproject.
#
# usage: install_test.sh <cmake> <build folder> <source folder>
# CC, CXX, CFLAGS and CXXFLAGS are those of the build; STATIC is ON when it made libfoldkv.a.
set -euo pipefail

cmake=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "failed: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
prefix=$work/moved

# What is installed: the public headers and nothing of the inside; no path of the build or source folder.
headers=$(cd "$prefix/include" && find . -type f | LC_ALL=C sort | tr '\n' ' ')
[ "$headers" = "./foldkv/foldkv.h ./foldkv/foldkv.hpp " ] || fail "installed headers are $headers"
if grep -rIlF -e "$build" -e "$source" -e "$work/first" "$prefix"; then
  fail "the files above name a folder of the build"
fi
library=$(find "$prefix" -name 'libfoldkv.so.1')
[ -n "$library" ] || fail "no libfoldkv.so.1"
libdir=$(dirname "$library")
if [ -e "$prefix/bin/foldkv-lab" ]; then
  "$prefix/bin/foldkv-lab" --help >/dev/null || fail "the installed foldkv-lab does not run"
fi

components="Headers;Shared"
[ "${STATIC:-OFF}" = ON ] && components="$components;Static"
echo "find_package, components $components"
"$cmake" -S "$source/tests/install/find_package" -B "$work/find" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCOMPONENTS="$components" -DCMAKE_BUILD_TYPE=Release >"$work/find.log" || { cat "$work/find.log"; fail "configure"; }
"$cmake" --build "$work/find" >>"$work/find.log" || { cat "$work/find.log"; fail "build"; }
(cd "$work/find" && ctest --output-on-failure --no-tests=error)

echo "find_package refuses what is not there"
if "$cmake" -S "$source/tests/install/find_package" -B "$work/refused" -DCMAKE_PREFIX_PATH="$prefix" \
  "-DCOMPONENTS=Shared;Cuda" >"$work/refused.log" 2>&1; then
  fail "accepted the component Cuda"
fi
grep -q "the component Cuda is not here" "$work/refused.log" || { cat "$work/refused.log"; fail "refused for another reason"; }

echo "pkg-config"
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"
[ "$(pkg-config --modversion foldkv)" = "$(sed -n 's/^#define FOLDKV_VERSION_M[AI][JN]OR //p; s/^#define FOLDKV_VERSION_PATCH //p' \
  "$source/include/foldkv/foldkv.h" | paste -sd.)" ] || fail "the version of foldkv.pc"
# shellcheck disable=SC2046,SC2086
${CC:-cc} ${CFLAGS:-} -std=c99 -o "$work/shared" "$source/tests/install/consumer.c" $(pkg-config --cflags --libs foldkv) -lm
"$work/shared"
if [ "${STATIC:-OFF}" = ON ]; then
  # -lfoldkv would take the shared library that stands beside; the archive is named by its path instead.
  # shellcheck disable=SC2046,SC2086
  ${CC:-cc} ${CFLAGS:-} -std=c99 -DFOLDKV_STATIC -o "$work/static" "$source/tests/install/consumer.c" \
    $(pkg-config --cflags foldkv) "$libdir/libfoldkv.a" $(pkg-config --static --libs foldkv | sed 's/-lfoldkv\b//')
  env -u LD_LIBRARY_PATH "$work/static"
fi

echo "subproject"
"$cmake" -S "$source/tests/install/subdirectory" -B "$work/sub" -DFOLDKV_SOURCE_DIR="$source" >"$work/sub.log" 2>&1 ||
  { cat "$work/sub.log"; fail "configure as a subproject"; }
