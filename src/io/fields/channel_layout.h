#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline fields {

/// Yearly files of one data set [time, channel, latitude, longitude] that name neither dimensions nor
/// channels, as Makani takes them: the configuration's section data.makani.
struct MakaniOptions {
  std::string metadata;  ///< the name of a JSON file with all that follows
  std::string variable = "fields";
  std::vector<std::string> channels;
  int hours = 6;

  bool operator==(const MakaniOptions&) const = default;
  bool given() const { return !metadata.empty() || !channels.empty(); }
};
void declare(Keys<MakaniOptions>& keys);

/// The same with what is known of the grid. A file holds one year, which its name begins with, from its first
/// hour on.
struct ChannelLayout {
  std::string variable;
  std::vector<std::string> channels;
  int hours = 6;                              ///< from each time to the next
  std::vector<double> latitudes, longitudes;  ///< empty: from pole to pole and from 0 on, in equal steps

  /// Of the metadata's `h5_path`, `dhours` and `coords` (`channel`, `lat`, `lon`), if it is named.
  /// @param metadata  of makani_metadata(). @throws DataError
  ChannelLayout(const MakaniOptions& options, const std::string& metadata);
};

/// The metadata as read: its file's name, a zero, and its text; "" where none is named.
/// @param folder  from which a relative name starts. @throws DataError
std::string makani_metadata(const MakaniOptions& options, const std::filesystem::path& folder);

/// Rows from 90 on southward in equal steps: to −90 of an odd number, to one step before it of an even one.
std::vector<double> equiangular_latitudes(std::int64_t rows);
/// Columns from 0 on eastward around the globe.
std::vector<double> equiangular_longitudes(std::int64_t columns);

}  // namespace jigsaw::inline fields
