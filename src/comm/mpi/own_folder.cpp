#include "comm/mpi/own_folder.h"

#include <cstdlib>

namespace jigsaw::inline comm {

namespace {

constexpr const char* kOfOpenMpi = "OMPI_MCA_orte_tmpdir_base";

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

OwnMpiFolder::OwnMpiFolder()
    : variable_(value_of(kOfOpenMpi).empty() ? "TMPDIR" : kOfOpenMpi),
      folder_("jigsaw-mpi", value_of(variable_)) {}

}  // namespace jigsaw::inline comm
