#!/usr/bin/env bash
# Builds the documents as a site in build/site; links between them that lead nowhere are errors.
#
#   scripts/docs.sh            once (needs mkdocs and mkdocs-material: scripts/setup.sh --checks)
#   scripts/docs.sh --serve    and again whenever a document changes, on http://127.0.0.1:8000
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  "")
    # Quiet, it does not say either what it stumbles over.
    if ! mkdocs build --strict --quiet; then
      mkdocs build --strict || true
      die "the site does not build"
    fi
    say "the site is in build/site/index.html"
    ;;
  --serve) mkdocs serve ;;
  -h | --help) usage ;;
  *) die "unknown option $1; see --help" ;;
esac
