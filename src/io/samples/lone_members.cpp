#include "samples/lone_members.h"

#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline samples {

bool require_one_member(FileSet& files, const std::vector<Field>& fields, const MemberChoice& choice) {
  struct Known {
    std::string field;
    FileSet::LoneMember member;
  };
  std::optional<Known> first;
  for (const Field& field : fields) {
    for (const FileSet::LoneMember& member : files.lone_members(field)) {
      const std::string is = concat(field.name(), " in ", member.path, " is of the member ", member.number,
                                    " alone (", member.name, ")");
      if (choice.all && files.members() > 1) {
        throw DataError(concat(is, ", and others have the members ", join(files.member_numbers(), ", "),
                               "; with data.member \"all\" all fields have the same members"));
      }
      if (choice.number && member.number != *choice.number)
        throw DataError(concat(is, ", and data.member is ", *choice.number));
      if (!first) first = Known{field.name(), member};
      if (!choice.number && member.number != first->member.number) {
        throw DataError(concat(is, ", and ", first->field, " in ", first->member.path, " of the member ",
                               first->member.number,
                               choice.all ? "; with data.member \"all\" all fields have the same members"
                                          : "; data.member says which one is taken, or \"all\": each is a "
                                            "series of samples"));
      }
    }
  }
  return first && choice.number;
}

}  // namespace jigsaw::inline samples
