# What syslab needs from the distribution, and how it gets there. Sourced by tools/quickstart, tools/test and .ci/run.
# Names are those of Debian 12 and Ubuntu 24.04.

build_packages=(
  g++ meson ninja-build pkg-config python3
  libfmt-dev nlohmann-json3-dev libsqlite3-dev libsodium-dev libcli11-dev libdlpack-dev librapidcheck-dev libopenblas-dev
  libgtest-dev libgmock-dev
)
# Tests prove the ways in from Python, being started by mpirun, and what tools/bundle makes (patchelf); benchmarks of
# host-side costs are built where their library is.
test_packages=(gnuplot-nox libbenchmark-dev openmpi-bin patchelf python3-numpy python3-torch)
# A peer of the communicators, built in where it is found.
optional_packages=(libgloo-dev)
# LaTeX, so that what reports write is compiled: 135 MB to fetch, half a minute to install.
check_packages=(clang-format ccache texlive-latex-base texlive-latex-recommended texlive-science)
# For tools/sanitize: clang, its OpenMP (with Archer) and what turns addresses into lines.
sanitizer_packages=(clang libomp-dev llvm)

say() {
  if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then printf '\n\033[1m%s\033[0m\n' "$*" >&2; else printf '\n%s\n' "$*" >&2; fi
}
die() { printf '%s\n' "$*" >&2; exit 2; }

# missing_packages NAME… : those that are not installed, one a line.
missing_packages() {
  local name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s\n' "$name"
  done
}

# ensure_packages INSTALL NAME… : installs what is missing with apt when INSTALL is 1; otherwise names it and stops.
ensure_packages() {
  local install=$1 missing=() apt=(apt-get)
  shift
  command -v dpkg-query >/dev/null || die "This is no Debian or Ubuntu system. Install the libraries that README.md names, then build with: meson setup build && ninja -C build"
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$install" != 1 ]; then
    die "Missing packages: ${missing[*]}
Install them with:  sudo apt-get install --no-install-recommends ${missing[*]}"
  fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "Missing packages: ${missing[*]}
Neither root nor sudo is at hand: ask an administrator to install them."
    apt=(sudo apt-get)
  fi
  say "Installing with ${apt[*]}: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { "${apt[@]}" update -q && "${apt[@]}" install -y -q --no-install-recommends "${missing[@]}"; } >&2 ||
    die "The packages could not be installed; what ${apt[*]} said stands above. Who may install does it with:
  apt-get install --no-install-recommends ${missing[*]}"
}

# configure DIRECTORY OPTION… : a build directory, made if it is not there. One that is there gets these options, too, and
# keeps the others that somebody gave it.
configure() {
  local directory=$1
  shift
  if [ ! -f "$directory/build.ninja" ]; then
    meson setup "$directory" "$@" >&2
  elif [ $# -gt 0 ]; then
    meson setup --reconfigure "$directory" "$@" >&2
  fi
}
