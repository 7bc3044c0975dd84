# What syslab needs from the distribution, and how it gets there. Sourced by tools/quickstart, tools/test and .ci/run.
# Names are those of Debian 12 and Ubuntu 24.04.
# shellcheck shell=bash disable=SC2034  # the arrays are for scripts that source this

build_packages=(
  g++ meson ninja-build pkg-config python3
  libfmt-dev nlohmann-json3-dev libsqlite3-dev libsodium-dev libseccomp-dev libcli11-dev libtomlplusplus-dev libdlpack-dev librapidcheck-dev libopenblas-dev
  libgtest-dev libgmock-dev
)
# What a report draws its figures with, and what quickstart therefore has.
report_packages=(gnuplot-nox)
# Tests prove the ways in from Python, being started by mpirun, what tools/bundle makes (patchelf), that files for GitHub
# parse (python3-yaml) and which files and connections are opened (strace); benchmarks of host-side costs are built where
# their library is.
test_packages=("${report_packages[@]}" libbenchmark-dev openmpi-bin patchelf python3-numpy python3-torch python3-yaml strace)
# A peer of the communicators, built in where it is found.
optional_packages=(libgloo-dev)
# For .ci/lint. And LaTeX, so that what reports write is compiled: 135 MB to fetch, half a minute to install.
check_packages=(clang-format ccache codespell flake8 mypy shellcheck texlive-latex-base texlive-latex-recommended texlive-science)
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

# options_for_this_machine : what a build from nothing is configured with, one option a line. Files are compiled in groups,
# which takes less than half of the time; CUDA for the GPUs that are here, and where there is none, or no nvcc, without it.
options_for_this_machine() {
  printf '%s\n' -Dunity=on -Dunity_size=8 -Djoined_tests=true
  local capabilities architectures=()
  capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -uV) || capabilities=
  for capability in $capabilities; do
    case $capability in
      9.0) architectures+=(90a) ;;  # 'a': wgmma and TMA are of this architecture alone
      8.* | [1-9][0-9].*) architectures+=("${capability/./}") ;;
      *[!0-9.]*) ;;                 # words: "No devices were found"
      *) say "A GPU of compute capability $capability: kernels need 8.0 or later, so it is not built for" ;;
    esac
  done
  if [ ${#architectures[@]} = 0 ]; then
    printf '%s\n' -Dcuda=disabled
  elif ! command -v nvcc >/dev/null; then
    say "There is a GPU, and no nvcc in PATH: building without CUDA"
    printf '%s\n' -Dcuda=disabled
  else
    printf '%s\n' -Dcuda=enabled "-Dgpu_archs=$(IFS=,; printf '%s' "${architectures[*]}")"
  fi
}

# configure_for_this_machine DIRECTORY : a build directory, made if it is not there. One that is there stays as it is.
configure_for_this_machine() {
  local options
  mapfile -t options < <(options_for_this_machine)
  [ -f "$1/build.ninja" ] || configure "$1" "${options[@]}"
}
