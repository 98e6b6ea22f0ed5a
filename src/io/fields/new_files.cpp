#include "fields/new_files.h"

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "fields/file_mark.h"

namespace jigsaw::inline fields {

namespace {

constexpr std::int64_t kMostNoted = std::int64_t{1} << 24;

std::set<std::string> noted_in(const std::filesystem::path& list) {
  try {
    const std::vector<std::string> marks = split(read_text(list.string(), kMostNoted), '\n');
    return {marks.begin(), marks.end()};
  } catch (const FileError&) {
    return {};
  }
}

/// The new ones first, then as many of the others as there is room for.
void note(const std::filesystem::path& list, const std::set<std::string>& marks,
          const std::set<std::string>& others) {
  std::string text;
  for (const std::set<std::string>* some : {&marks, &others}) {
    for (const std::string& mark : *some) {
      if (!mark.empty() && std::ssize(text) < kMostNoted / 2) text += mark + "\n";
    }
  }
  try {
    std::filesystem::create_directories(list.parent_path());
    write_text_atomically(list.string(), text);
  } catch (const std::exception&) {
    // The next run reads them once more.
  }
}

void probe_as_noted(const std::vector<std::string>& paths, Dimensions dimensions, External external,
                    const std::filesystem::path& cache) {
  const std::filesystem::path list = cache.empty() ? cache : cache / "files_read";
  std::set<std::string> known;
  if (!list.empty()) known = noted_in(list);
  std::vector<std::string> fresh;
  std::set<std::string> marks;
  for (const std::string& path : paths) {
    const std::string mark = file_mark(path, dimensions, external);
    if (!mark.empty() && known.contains(mark)) continue;
    fresh.push_back(path);
    if (!mark.empty()) marks.insert(mark);
  }
  if (fresh.empty()) return;
  probe_files(fresh, dimensions, external);
  if (list.empty() || marks.empty()) return;
  note(list, marks, known);
}

}  // namespace

void probe_new_files(const std::vector<std::string>& paths, Dimensions dimensions, External external,
                     const std::filesystem::path& cache, Communicator& communicator) {
  if (probe_program().empty()) return;
  together(communicator, [&] {
    if (communicator.rank() == 0) probe_as_noted(paths, dimensions, external, cache);
  });
}

}  // namespace jigsaw::inline fields
