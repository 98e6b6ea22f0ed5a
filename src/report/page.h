#pragma once
#include <string>
#include <vector>

namespace jigsaw::inline report {

struct ReportOptions {
  std::vector<std::string> runs;  ///< run directories, at least one
  std::string output;             ///< the HTML file
  std::string scores;     ///< evaluate's JSON or NetCDF for the first run; "": scores.json there, if any
  std::string forecast;   ///< a file of predict; "": none
  std::string maps = "";  ///< a file of maps of evaluate; "": none
};

/// One HTML file without scripts and without anything that it loads: pictures are inline SVG, with PNG inside
/// as data URLs. Of runs that are not over it shows what is there.
/// @throws ConfigError  for a folder that is no run's. @throws DataError  for files that are malformed.
std::string report_page(const ReportOptions& options);

/// Whether a file begins as such a page does. @throws FileError  when it cannot be read.
bool is_report_page(const std::string& path);

/// The same written to `output`, whole or not at all. @throws FileError  when it cannot; as report_page().
void write_report(const ReportOptions& options);

}  // namespace jigsaw::inline report
