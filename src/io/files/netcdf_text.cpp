#include "files/netcdf_text.h"

#include <netcdf.h>

#include "base/error.h"
#include "base/text.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

std::string text_of_netcdf(const std::string& path, const std::string& attribute) {
  check_hdf5_for_netcdf(path, External::kRefused);
  const auto lock = lock_io();
  const auto check = [&](int status) {
    if (status != NC_NOERR) throw DataError(concat("cannot read ", path, ": ", nc_strerror(status)));
  };
  struct Opened {
    int id = -1;
    ~Opened() {
      if (id >= 0) nc_close(id);
    }
  } file;
  check(nc_open(path.c_str(), NC_NOWRITE, &file.id));
  int type = 0;
  std::size_t length = 0;
  const int status = nc_inq_att(file.id, NC_GLOBAL, attribute.c_str(), &type, &length);
  if (status == NC_ENOTATT) return "";
  check(status);
  if (type != NC_CHAR) return "";
  std::string text(length, '\0');
  check(nc_get_att_text(file.id, NC_GLOBAL, attribute.c_str(), text.data()));
  return text;
}

}  // namespace jigsaw::inline files
