# shellcheck shell=bash
# What the scripts that measure beside PyTorch share; to be sourced. PyTorch is looked for in /usr/bin/python3 (Debian's
# python3-torch, with libopenblas0-openmp), or in $PYTHON.
python=${PYTHON-/usr/bin/python3}

# number KEY LINE: the value of a key of a JSON line; fails where the line has none.
number() { sed -nE "s/.*\"$1\": ?([0-9.e+-]+).*/\1/p" <<< "$2" | grep .; }

# median NUMBER…
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

has_torch() { "$python" -c 'import torch' 2> /dev/null; }

# Ends the script where there is no PyTorch.
need_torch() {
  has_torch && return
  echo "no PyTorch here: no ratio"
  exit
}

# tuned_as LINE SCRIPT ARGUMENT…: runs a script of PyTorch's with the tuning that its first run found and told in LINE.
tuned_as() {
  local one settings environment=() options=()
  mapfile -t settings < <("$python" - "$1" << 'END'
import json, sys
tuning = json.loads(sys.argv[1])["tuning"]
print("JIGSAW_PEER_TUNED=" + json.dumps(tuning))
options = tuning.pop("options", "")
print(*[f"{name}={value}" for name, value in tuning.items()], sep="\n")
print(*options.split(), sep="\n")
END
  )
  ((${#settings[@]} > 0)) || return
  for one in "${settings[@]}"; do
    [[ -n $one ]] || continue  # no options
    if [[ $one == *=* ]]; then environment+=("$one"); else options+=("$one"); fi
  done
  env "${environment[@]}" "$python" "${@:2}" "${options[@]}"
}
