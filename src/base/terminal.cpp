#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace jigsaw::inline base {

namespace {

constexpr int kUsualColumns = 80, kFewestColumns = 40;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

int columns_of_stdout() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return std::max<int>(size.ws_col, kFewestColumns);
}

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::kBold:
      return "\033[1m";
    case Colour::kFaint:
      return "\033[2m";
    case Colour::kRed:
      return "\033[31m";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kNone:
      break;
  }
  return "";
}

}  // namespace

Terminal Terminal::of_process(bool quiet) {
  Terminal terminal;
  terminal.quiet = quiet;
  if (::isatty(STDOUT_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return terminal;
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  terminal.rewrites = !dumb;
  terminal.colours = !dumb && !is_set("NO_COLOR");
  terminal.columns = columns_of_stdout();
  return terminal;
}

std::string painted(const Terminal& terminal, Colour colour, std::string_view text) {
  if (!terminal.colours || colour == Colour::kNone) return std::string(text);
  return concat(code_of(colour), text, "\033[0m");
}

std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\033[")) {
      i = text.find('m', i);
      if (i == std::string_view::npos) break;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

int columns_of(std::string_view text) {
  int columns = 0;
  for (const char byte : without_colours(text))
    columns += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  return columns;
}

std::vector<std::string> wrapped(const std::string& text, int columns, int indent) {
  if (columns <= 0 || columns_of(text) <= columns) return {text};
  std::vector<std::string> lines;
  std::string line;
  const std::vector<std::string> words = split(text, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool first = i == 0 || line.find_first_not_of(' ') == std::string::npos;
    if (!first && columns_of(line) + 1 + columns_of(words[i]) > columns) {
      lines.push_back(line);
      line = std::string(static_cast<std::size_t>(indent), ' ') + words[i];
    } else {
      line += (i == 0 ? "" : " ") + words[i];
    }
  }
  lines.push_back(line);
  return lines;
}

}  // namespace jigsaw::inline base
