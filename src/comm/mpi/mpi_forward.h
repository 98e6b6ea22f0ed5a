#pragma once
#include <memory>
#include <vector>

#include "comm/mpi/mpi_transfer.h"

namespace jigsaw::inline comm {

/// What a rank sends whom when all_to_alls of its group forward.
struct ForwardRoute {
  std::vector<Level> levels;
  std::vector<std::vector<std::vector<int>>> brought;  ///< see forwarded_from()
  int rank, ranks;

  ForwardRoute(const std::vector<Level>& of_rank, int own, int size)
      : levels(of_rank), brought(forwarded_from(of_rank, size, own)), rank(own), ranks(size) {}
};

/// Adds the stages of an all_to_all by levels, in blocks of `call.block` elements.
/// @param call, host  outlive the transfer.
void forward_blocks(MpiTransfer& transfer, const Call& call, const Array& result,
                    const std::shared_ptr<const ForwardRoute>& route, const Context& host);

}  // namespace jigsaw::inline comm
