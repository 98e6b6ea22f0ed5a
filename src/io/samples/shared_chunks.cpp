#include "samples/shared_chunks.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/node_chunks.h"

namespace jigsaw::inline samples {

namespace {

/// A line of each rank. Collective.
std::vector<std::string> told_by_all(const std::string& line, Communicator& world) {
  return split(world.broadcast_text(join(world.gather_text(line), "\n")), '\n');
}

}  // namespace

void share_chunks(Communicator& world) {
  const std::string host = host_name(), own = concat(::getpid(), " ", host);
  std::vector<std::string> here;  // the processes of this machine
  for (const std::string& process : told_by_all(own, world)) {
    const bool known = std::ranges::find(here, process) != here.end();
    if (!known && process.substr(process.find(' ') + 1) == host) here.push_back(process);
  }
  const auto place = static_cast<int>(std::ranges::find(here, own) - here.begin());
  const auto processes = static_cast<int>(std::ssize(here));
  // The first makes what the others open.
  std::shared_ptr<NodeChunks> node;
  if (processes > 1 && place == 0) node = NodeChunks::make(ChunkCache::most_bytes());
  const NodeChunks::Address made = node ? node->address() : NodeChunks::Address{};
  for (const std::string& line :
       told_by_all(concat(made.process, " ", made.descriptor, " ", made.token, " ", host), world)) {
    std::istringstream words(line);
    NodeChunks::Address address;
    std::string name;
    words >> address.process >> address.descriptor >> address.token >> name;
    if (name == host && address.process != 0 && processes > 1 && !node) node = NodeChunks::open(address);
  }
  ChunkCache::shared().share(place, processes, std::move(node));
}

}  // namespace jigsaw::inline samples
