#pragma once
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// Observes the calls of a recording rank, in their order. The work between them is what its context has
/// counted.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// A call in which something travels is started, or a control call made.
  ///
  /// @param label  of the group, of more than one rank. @param sent  what this rank hands to the transport.
  /// @return       the number by which waited() names it.
  virtual std::size_t started(const Call& call, const std::string& label, const Sent& sent) = 0;
  /// Its result is asked for; of control calls at once.
  virtual void waited(std::size_t number) = 0;
};

/// Rank `rank` of `size`, without the others: every call is checked, logged and counted, results have the
/// right shape and arbitrary contents (none on meta arrays), control values are those of this rank on all.
/// abort() ends the process.
///
/// @param observer  outlives the communicator and all that are split off it; may be null.
std::unique_ptr<Communicator> make_record_communicator(Context& context, int rank, int size,
                                                       CallObserver* observer = nullptr);

}  // namespace jigsaw::inline comm
