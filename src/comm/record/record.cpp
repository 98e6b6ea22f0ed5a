#include "comm/record/record.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace jigsaw {

namespace {

class Shaped : public Pending::Operation {
 public:
  explicit Shaped(Array result) : result_(std::move(result)) {}
  Array wait() override { return std::move(result_); }
  bool poll() override { return true; }

 private:
  Array result_;
};

class RecordCommunicator : public Communicator {
 public:
  RecordCommunicator(Context& context, int rank, int size)
      : Communicator(context), rank_(rank), size_(size) {}
  RecordCommunicator(const RecordCommunicator& parent, const std::string& label, int rank, int size)
      : Communicator(parent, label), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort(int exit_code) override {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

 protected:
  std::unique_ptr<Pending::Operation> do_start(Call call) override {
    return std::make_unique<Shaped>(
        Array(context(), call.result_shape, call.send.dtype(), call.result_purpose));
  }
  std::vector<std::string> do_control(Call call) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), call.text);
  }
  std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                         std::int64_t) override {
    const auto own = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<RecordCommunicator>(*this, label, static_cast<int>(own),
                                                static_cast<int>(members.size()));
  }

 private:
  int rank_;
  int size_;
};

}  // namespace

std::unique_ptr<Communicator> make_record_communicator(Context& context, int rank, int size) {
  if (rank < 0 || rank >= size) throw CommError(concat("there is no rank ", rank, " of ", size));
  return std::make_unique<RecordCommunicator>(context, rank, size);
}

}  // namespace jigsaw
