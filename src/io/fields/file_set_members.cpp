// Members of ensembles: which files of a set hold which of them.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "fields/sort_unique.h"

namespace jigsaw::inline fields {

/// The members of an ensemble that are chosen. Files without an ensemble hold them for all.
void FileSet::find_members(const Field& field, std::vector<Part>& parts) {
  const MemberChoice& choice = selection_.member;
  if (choice.number || choice.all) {
    const std::vector<std::vector<double>> numbers = numbers_of_members(parts);
    if (choice.all) return take_all_members(parts, numbers);
    return take_member(parts, numbers);
  }
  for (const Part& part : parts) {
    const std::int64_t count = part.axes.member < 0 ? 1 : part.variable->shape[part.axes.member];
    if (count == 1) continue;
    DataFile& file = use(part.file);
    const std::string& name = dimension(*part.variable, part.axes.member);
    throw DataError(concat(field.variable, " in ", file.file().path(), " is of an ensemble, whose dimension ",
                           name, " has ", count, " members, ", file.describe_members(name, count),
                           "; data.member (of init: --member) says which one is taken, or \"all\""));
  }
}

/// By part, in its order; none of what holds them for all. A scalar coordinate counts where other files of
/// the field have members along a dimension, or another such number.
std::vector<std::vector<double>> FileSet::numbers_of_members(const std::vector<Part>& parts) {
  std::vector<std::vector<double>> numbers(parts.size());
  std::set<double> along, scalars;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    if (part.axes.member < 0) continue;
    numbers[p] = use(part.file).member_numbers(dimension(*part.variable, part.axes.member),
                                               part.variable->shape[part.axes.member]);
    along.insert(numbers[p].begin(), numbers[p].end());
  }
  std::vector<std::size_t> of_scalars;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto scalar = parts[p].axes.member < 0 ? use(parts[p].file).scalar_member() : std::nullopt;
    if (!scalar) continue;
    numbers[p] = scalar->values;
    scalars.insert(scalar->values.front());
    of_scalars.push_back(p);
  }
  if (along.empty() && scalars.size() < 2)
    for (const std::size_t p : of_scalars) numbers[p].clear();
  return numbers;
}

/// Of the parts that hold members those with the chosen one are left.
void FileSet::take_member(std::vector<Part>& parts, const std::vector<std::vector<double>>& numbers) {
  const double number = *selection_.member.number;
  std::vector<Part> left;
  std::vector<double> known;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto found = std::ranges::find(numbers[p], number);
    known.insert(known.end(), numbers[p].begin(), numbers[p].end());
    if (!numbers[p].empty() && found == numbers[p].end()) continue;
    left.push_back(std::move(parts[p]));
    if (!numbers[p].empty()) left.back().members = {found - numbers[p].begin()};
  }
  const bool taken =
      known.empty() || std::ranges::any_of(left, [](const Part& part) { return !part.members.empty(); });
  if (taken) {
    parts = std::move(left);
    return;
  }
  const Part& first = parts.front();
  DataFile& file = use(first.file);
  sort_unique(known);
  std::string there = join(known, ", ");
  if (parts.size() == 1)
    there = file.describe_members(dimension(*first.variable, first.axes.member),
                                  first.variable->shape[first.axes.member]);
  throw DataError(concat("data.member is ", number, ", and ", first.variable->name, " in ",
                         first_and_more(file.file().path(), std::ssize(parts) - 1, "file"),
                         " has the members ", there));
}

/// Files of an ensemble have the same members, whatever their order, or, where these are parted among files,
/// none in common; together those that other fields have.
void FileSet::take_all_members(std::vector<Part>& parts, const std::vector<std::vector<double>>& numbers) {
  const auto path_of = [&](std::size_t p) { return use(parts[p].file).file().path(); };
  std::vector<std::pair<std::vector<double>, std::size_t>> groups;  // sorted numbers, and the first part
  std::vector<double> all;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<double> sorted = numbers[p];
    if (sorted.empty()) continue;
    sort_unique(sorted);
    if (sorted.size() != numbers[p].size()) {
      throw DataError(concat(parts[p].variable->name, " in ", path_of(p), " has the members ",
                             join(numbers[p], ", "), ", of which one stands twice; number each once"));
    }
    const auto known = std::ranges::find(groups, sorted, &std::pair<std::vector<double>, std::size_t>::first);
    parts[p].group = static_cast<std::int32_t>(known - groups.begin());
    if (known != groups.end()) continue;
    for (const auto& [others, other] : groups) {
      std::vector<double> common;
      std::ranges::set_intersection(sorted, others, std::back_inserter(common));
      if (common.empty()) continue;
      throw DataError(
          concat(parts[p].variable->name, " in ", path_of(p), " has the members ", join(numbers[p], ", "),
                 ", and in ", path_of(other), " ", join(numbers[other], ", "),
                 "; with data.member \"all\" two files have the same members, or none in common"));
    }
    all.insert(all.end(), sorted.begin(), sorted.end());
    groups.emplace_back(std::move(sorted), p);
  }
  if (groups.empty()) return;
  sort_unique(all);
  const std::string where = first_and_more(path_of(groups.front().second), std::ssize(groups) - 1, "file");
  if (members_.empty()) {
    members_ = all;
    members_file_ = where;
  }
  if (members_ != all) {
    throw DataError(concat(parts.front().variable->name, " in ", where, " has the members ", join(all, ", "),
                           ", and ", members_file_, " ", join(members_, ", "),
                           "; with data.member \"all\" all fields have the same members"));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (groups.size() == 1) parts[p].group = kAllGroups;
    for (const double member : members_) {
      const auto found = std::ranges::find(numbers[p], member);
      if (!numbers[p].empty())
        parts[p].members.push_back(found == numbers[p].end() ? -1 : found - numbers[p].begin());
    }
  }
}

/// Of each member; none where all parts have the same.
std::vector<std::int32_t> FileSet::groups_of(const std::vector<Part>& parts) {
  std::vector<std::int32_t> groups;
  for (const Part& part : parts) {
    if (part.group == kAllGroups) continue;
    groups.resize(part.members.size(), 0);
    for (std::size_t m = 0; m < groups.size(); ++m)
      if (part.members[m] >= 0) groups[m] = part.group;
  }
  return groups;
}

/// Which member states come from, where it is one.
void FileSet::note_member(const Part& part) {
  const bool scalar = part.axes.member < 0;
  if ((scalar && part.members.empty()) || part.members.size() > 1) return;
  DataFile& file = use(part.file);
  const std::string name =
      scalar ? file.scalar_member().value().name : dimension(*part.variable, part.axes.member);
  if (members_differ_ || !noted_members_.insert({part.file, name}).second) return;
  CoordinateDescription found = scalar ? file.scalar_member().value() : file.describe(name);
  const std::size_t position = part.members.empty() ? 0 : static_cast<std::size_t>(part.members[0]);
  if (position < found.values.size()) {
    found.values = {found.values[position]};
  } else if (selection_.member.number) {
    found.values = {*selection_.member.number};  // members are counted where nothing says their numbers
  } else {
    return;
  }
  found.bounds.clear();
  found.bounds_name.clear();
  if (!std::isfinite(found.values[0])) return;
  members_differ_ = member_ && member_->values != found.values;
  member_ = members_differ_ ? std::nullopt : std::optional(std::move(found));
}

std::vector<FileSet::LoneMember> FileSet::lone_members(const Field& field) {
  std::vector<LoneMember> found;
  for (const Part& part : series(field).parts) {
    if (part.axes.member >= 0 || !part.members.empty()) continue;
    Pin pin(*this, part.file);
    const std::optional<CoordinateDescription> scalar = pin.file().scalar_member();
    if (!scalar || scalar->name == "number" || scalar->values.empty() || !std::isfinite(scalar->values[0]))
      continue;
    if (std::ranges::find(found, scalar->values[0], &LoneMember::number) == found.end())
      found.push_back({scalar->values[0], scalar->name, pin.file().file().path()});
  }
  return found;
}

std::int32_t FileSet::members_of(const Field& field) const {
  const std::vector<Part>& parts = series(field).parts;
  const bool differ =
      std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.members.size() > 1; });
  return differ ? members() : 1;
}

}  // namespace jigsaw::inline fields
