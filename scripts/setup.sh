#!/usr/bin/env bash
# Installs the Debian packages that jigsaw-train needs and that are missing.
#
#   scripts/setup.sh            what building, testing and running need
#   scripts/setup.sh --checks   also what scripts/check.sh uses: clang-format, clang-tidy, shellcheck, mkdocs
#   scripts/setup.sh --readers  also xarray and CDO, with which a test opens forecasts
#   scripts/setup.sh --grib     also ecCodes, with which GRIB files are read
#   scripts/setup.sh --slurm    also SLURM, for tests/slurm
#
# With everything installed it changes nothing and needs neither network nor root.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  g++ cmake ninja-build pkg-config
  openmpi-bin libopenmpi-dev
  libhdf5-dev libnetcdf-dev libxxhash-dev zlib1g-dev libblosc-dev libzstd-dev libdeflate-dev
  libdnnl-dev
  libcli11-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev
)
case "${1-}" in
  "") ;;
  --checks) packages+=(clang-format clang-tidy shellcheck mkdocs mkdocs-material) ;;
  --readers) packages+=(python3-xarray python3-netcdf4 cdo) ;;
  --grib) packages+=(libeccodes-dev) ;;
  --slurm) packages+=(munge slurm-wlm slurm-wlm-basic-plugins slurm-client libpmix2) ;;
  -h | --help) usage && exit ;;
  *) die "unknown option $1; see --help" ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  say "this is not a Debian system; needed are the equivalents of: ${packages[*]}"
  exit
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2> /dev/null || true)
  [[ " $status" == *" installed "* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  say "all ${#packages[@]} packages are installed"
  exit
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo > /dev/null ||
    die "packages are missing and there is no sudo; run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@"
}

say "installing ${missing[*]}"
apt update
apt install -y --no-install-recommends "${missing[@]}"
