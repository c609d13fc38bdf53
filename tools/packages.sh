# Sourced by tools/demo and tools/test: the Debian packages that the project builds with, and their installation.

etwrelog_packages=(
  g++ clang clang-format libclang-rt-dev cmake ninja-build pkg-config git python3 xz-utils
  libtbb-dev libzstd-dev libxxhash-dev libarchive-dev libre2-dev libpugixml-dev libfmt-dev libcli11-dev
  libsqlite3-dev libflatbuffers-dev
  nlohmann-json3-dev libgtest-dev libbenchmark-dev
  libfwnt-dev libdeflate-dev liblzma-dev zlib1g-dev libbz2-dev
  llvm-14-dev lld-14 libcurl4-openssl-dev libmspack-dev gcab libxml2-utils
  abigail-tools mingw-w64-x86-64-dev doxygen
  slurmctld slurmd slurm-client munge procps
)

install_missing_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "etwrelog: this is no Debian system: install the counterparts of these packages yourself:" >&2
    echo "  ${etwrelog_packages[*]}" >&2
    return 0
  fi
  local missing=() package
  for package in "${etwrelog_packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "etwrelog: error: these packages are missing and only root can install them:" >&2
    echo "  sudo apt-get install ${missing[*]}" >&2
    return 1
  fi
  echo "Installing: ${missing[*]}"
  apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
