// Reads headers of files for whoever starts it (files/probe.h).
#include <cstring>

#include "files/probe.h"

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], jigsaw::Probe::kCommand) != 0) return 1;
  return jigsaw::run_probe();
}
