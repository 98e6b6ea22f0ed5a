#include "files/text_table_output.h"

#include <fcntl.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "base/disk.h"
#include "base/error.h"

namespace jigsaw::inline files {

namespace {

/// Bytes that are written at once.
constexpr std::size_t kMostPending = std::size_t{1} << 20;

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

}  // namespace

TextTableOutput::TextTableOutput(const std::string& path) : file_(path, O_WRONLY) {}

std::string TextTableOutput::number(double value) {
  if (!std::isfinite(value)) return "";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

void TextTableOutput::add_line(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) pending_ += ',';
    pending_ += quoted_cell(cells[i]);
  }
  pending_ += '\n';
  if (pending_.size() >= kMostPending) flush();
}

void TextTableOutput::flush() {
  try {
    file_.write(std::as_bytes(std::span(pending_)), bytes_);
  } catch (const FileError& error) {
    refuse_output<DataError>(error, error.what());
  }
  bytes_ += std::ssize(pending_);
  pending_.clear();
}

void TextTableOutput::close() {
  flush();
}

}  // namespace jigsaw::inline files
