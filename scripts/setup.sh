#!/usr/bin/env bash
# Installs the Debian packages that jigsaw-train needs and that are missing.
#
#   scripts/setup.sh            what building, testing and running need
#   scripts/setup.sh --checks   also what scripts/check.sh uses: clang-format, clang-tidy, shellcheck, mkdocs
#   scripts/setup.sh --readers  also xarray and CDO, with which a test opens forecasts
#   scripts/setup.sh --grib     also ecCodes, with which GRIB files are read
#   scripts/setup.sh --slurm    also SLURM, for tests/slurm
#   scripts/setup.sh --cuda     also the headers of cuDNN's frontend, by which builds with CUDA and cuDNN 9 (which it
#                               does not install) compute attention: from PyPI into build/
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
cuda=false cudnn_frontend=1.18.0
case "${1-}" in
  "") ;;
  --checks) packages+=(clang-format clang-tidy shellcheck mkdocs mkdocs-material) ;;
  --readers) packages+=(python3-xarray python3-netcdf4 cdo) ;;
  --grib) packages+=(libeccodes-dev) ;;
  --cuda)
    cuda=true
    [[ -e build/cudnn-frontend-$cudnn_frontend ]] || packages+=(ca-certificates curl unzip)
    ;;
  --slurm) packages+=(munge slurm-wlm slurm-wlm-basic-plugins slurm-client libpmix2) ;;
  -h | --help) usage && exit ;;
  *) die "unknown option $1; see --help" ;;
esac

# Headers alone, of NVIDIA's MIT licence; later versions need libnvrtc when a program starts.
get_cudnn_frontend() {
  local version=$cudnn_frontend folder wheel
  local from=https://files.pythonhosted.org/packages/13/c7/c3624b3ed77b102618f26295e816b27f1c3ebb1143730237a9f51d403c3f
  local sum=382ea063b92cbfd5b442cb75ff8422932d78276aecf139e46713ed1ad3d07af4
  folder=build/cudnn-frontend-$version
  [[ ! -e $folder ]] || return 0
  say "fetching the headers of cuDNN's frontend $version"
  mkdir -p build
  wheel=$(mktemp -p build --suffix .whl)
  # shellcheck disable=SC2064
  trap "rm -rf '$wheel' '$wheel.d'" EXIT
  curl -fsSL --connect-timeout 20 --retry 3 -o "$wheel" "$from/nvidia_cudnn_frontend-$version-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
  sha256sum --quiet -c - <<< "$sum  $wheel" || die "the headers of cuDNN's frontend are not those that were asked for"
  unzip -q "$wheel" 'include/*' '*/licenses/*' -d "$wheel.d"
  mv -T "$wheel.d" "$folder"
}
finish() {
  [[ $cuda == false ]] || get_cudnn_frontend
  exit
}

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  say "this is not a Debian system; needed are the equivalents of: ${packages[*]}"
  finish
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2> /dev/null || true)
  [[ " $status" == *" installed "* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  say "all ${#packages[@]} packages are installed"
  finish
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
finish
