#include "files/text_table_output.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Bytes that are written at once.
constexpr std::size_t kMostPending = std::size_t{1} << 20;

}  // namespace

TextTableOutput::TextTableOutput(const std::string& path) : file_(path, O_WRONLY) {}

std::string TextTableOutput::number(double value) {
  if (!std::isfinite(value)) return "";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

std::string TextTableOutput::line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    std::string cell = cells[i];
    std::ranges::replace_if(
        cell, [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
    line += csv_cell(cell);
  }
  return line + '\n';
}

void TextTableOutput::add(const std::string& lines) {
  pending_ += lines;
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
