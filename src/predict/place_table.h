#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fields/file_set.h"
#include "fields/named_places.h"
#include "files/text_table_output.h"
#include "predict/forecast_file.h"

namespace jigsaw::inline predict {

/// Forecasts at places as a table of text, for spreadsheets and pandas: a line for each start, lead, member
/// and place, with the columns start, time (that the forecast is of), lead_hours, (number, of several
/// members,) station, latitude, longitude and each field in its unit, "t2m [K]"; nothing where a value is
/// missing. Times of means are those of their last step. Every failure is a DataError. For one thread at a
/// time.
class PlaceTable {
 public:
  /// @param contents  with places. @param path  the file, which is there and empty
  /// @param overlap   starts whose forecasts come together, lead by lead: their lines wait for those before
  /// them
  PlaceTable(FileSet& files, const ForecastContents& contents, const std::string& path, std::int64_t overlap);

  /// @param values  of the forecast from starts[start] at lead number `lead` of the contents, of a member:
  /// [fields, places].
  void write(std::int64_t start, std::int64_t lead, std::int64_t member, std::span<const float> values);
  /// Writes what is left, too. @param comment  a last line behind "# "; "" for none
  void close(const std::string& comment = "");

 private:
  TextTableOutput table_;
  NamedPlaces places_;
  std::vector<std::string> starts_, leads_;
  std::vector<std::vector<std::string>> times_;  ///< by start and lead
  std::size_t fields_;
  std::int64_t members_;
  std::int64_t overlap_;
  /// Lines of starts whose last lead is not here.
  std::map<std::int64_t, std::string> waiting_;
};

/// Whether what is written under this name is a table.
bool is_table_name(const std::string& output);

/// The comment that such a file was closed with; "" for none. @throws DataError  for one that begins
/// otherwise; FileError
std::string comment_of_table(const std::string& path);

}  // namespace jigsaw::inline predict
