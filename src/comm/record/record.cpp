#include "comm/record/record.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "comm/record/recorded_transfers.h"

namespace jigsaw::inline comm {

namespace {

/// Holds what is sent, as transfers do, until it is waited for.
class Shaped : public Pending::Operation {
 public:
  Shaped(Array sent, Array result, std::shared_ptr<RecordedTransfers> transfers,
         RecordedTransfers::Number number)
      : sent_(std::move(sent)),
        result_(std::move(result)),
        transfers_(std::move(transfers)),
        number_(std::move(number)) {}
  ~Shaped() override { transfers_->dropped(number_); }
  Array wait() override {
    transfers_->waited(number_);
    sent_ = Array();
    return std::move(result_);
  }
  bool poll() override { return true; }

 private:
  Array sent_, result_;
  std::shared_ptr<RecordedTransfers> transfers_;
  RecordedTransfers::Number number_;
};

class RecordCommunicator : public Communicator {
 public:
  RecordCommunicator(Context& context, int rank, int size, CallObserver* observer)
      : Communicator(context),
        rank_(rank),
        size_(size),
        transfers_(std::make_shared<RecordedTransfers>(context, observer)) {}
  RecordCommunicator(const RecordCommunicator& parent, const std::string& label, int rank, int size)
      : Communicator(parent, label), rank_(rank), size_(size), transfers_(parent.transfers_) {}

  RecordedTransfers* transfers() const {
    return context().device() == Device::kMeta ? transfers_.get() : nullptr;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort(int exit_code) override {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

 protected:
  std::unique_ptr<Pending::Operation> do_start(Call call) override {
    const Sent sent = sent_in(call);
    *sent_counter(call.kind) += sent;
    Array result(host(), call.result_shape, call.send.dtype(), call.result_purpose);
    RecordedTransfers::Number number = transfers_->started(call, label(), sent);
    return std::make_unique<Shaped>(std::move(call.send), std::move(result), transfers_, std::move(number));
  }
  /// Of texts from another rank nothing is known.
  Call do_control(Call call) override {
    if (call.control == Control::kReduce) {
      count_control(call, sent_by(call, rank_, size_));
      return call;
    }
    if (call.texts.empty()) call.texts.emplace_back();
    std::vector<std::int64_t> bytes;
    for (const std::string& text : call.texts) bytes.push_back(std::ssize(text));
    count_control(call, sent_by_texts(call.control, call.root, rank_, size_, bytes));
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
  Sent sent_in(const Call& call) {
    if (call.kind != Collective::kAllToAll || call.block == 0) return sent_by(call, rank_, size_);
    if (!of_forwarded_bytes_) of_forwarded_bytes_ = sent_to_forward(rank_, size_);
    const auto bytes = static_cast<double>(call.block * size_of(call.send.dtype()));
    return {of_forwarded_bytes_->messages, of_forwarded_bytes_->bytes * bytes};
  }
  void count_control(const Call& call, const Sent& sent) {
    *sent_counter(call.kind) += sent;
    transfers_->control(call, label(), sent);
  }

  int rank_;
  int size_;
  std::shared_ptr<RecordedTransfers> transfers_;
  std::optional<Sent> of_forwarded_bytes_;  // by a call of blocks of one byte; found once
};

}  // namespace

RecordedTransfers* recorded_transfers(Communicator& communicator) {
  const auto* const records = dynamic_cast<RecordCommunicator*>(&communicator);
  return records != nullptr ? records->transfers() : nullptr;
}

std::unique_ptr<Communicator> make_record_communicator(Context& context, int rank, int size,
                                                       CallObserver* observer) {
  if (rank < 0 || rank >= size) throw CommError(concat("there is no rank ", rank, " of ", size));
  return std::make_unique<RecordCommunicator>(context, rank, size, observer);
}

}  // namespace jigsaw::inline comm
