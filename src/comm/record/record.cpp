#include "comm/record/record.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace jigsaw::inline comm {

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
    *sent_counter(call.kind) += sent_by(call, rank_, size_);
    return std::make_unique<Shaped>(Array(host(), call.result_shape, call.send.dtype(), call.result_purpose));
  }
  /// Of texts from another rank nothing is known.
  Call do_control(Call call) override {
    if (call.control == Control::kReduce) {
      *sent_counter(call.kind) += sent_by(call, rank_, size_);
      return call;
    }
    if (call.texts.empty()) call.texts.emplace_back();
    std::vector<std::int64_t> bytes;
    for (const std::string& text : call.texts) bytes.push_back(std::ssize(text));
    *sent_counter(call.kind) += sent_by_texts(call.control, call.root, rank_, size_, bytes);
    if (rank_ != call.root) return call;
    const auto own = static_cast<std::size_t>(rank_), ranks = static_cast<std::size_t>(size_);
    if (call.control == Control::kGather) call.texts.resize(ranks, call.texts.front());
    if (call.control == Control::kScatter) call.texts = {call.texts[own]};
    return call;
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

}  // namespace jigsaw::inline comm
