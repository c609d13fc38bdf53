// The coder of coupled segments (spec.md, section 7): every bit of a symbol is predicted by many models, each
// of which knows what followed in some context, and their guesses are mixed. All streams go through one
// coder, each symbol where the decoder needs it, so that what is known by then can be a context.
//
// Integers only, the same on every machine: what it makes is part of the format.
#pragma once

#include "etlz/backend/bit_coder.hpp"
#include "etlz/model/streams.hpp"

#include <array>
#include <memory>
#include <optional>

namespace etwrelog::etlz {

// What a value resembles: hashes that encoder and decoder know before its symbols. 0: nothing.
struct Hint {
  std::uint32_t lookup = 0, previous = 0, lead = 0, thread = 0;
};

// What the models have learnt, and their memory, which the next segment uses again.
class ContextModel {
public:
  // The fewest and the most bits of a place in the table of contexts, each of 32 bytes.
  static constexpr unsigned kLeastBits = 12, kMostBits = 21;
  static_assert(kMostBits < 32);

  ContextModel();
  ~ContextModel();
  ContextModel(const ContextModel &) = delete;
  ContextModel &operator=(const ContextModel &) = delete;

  // Forgets everything.
  void start(unsigned bits);
  // That start() takes.
  [[nodiscard]] static std::uint64_t memory_bytes(unsigned bits);
  // For so many bytes of events.
  [[nodiscard]] static unsigned bits_for(std::uint64_t bytes) {
    return std::clamp(static_cast<unsigned>(std::bit_width(bytes)) - 3 + (bytes < 8 ? 3 : 0), kLeastBits,
                      kMostBits);
  }

  // `Coder` is BitEncoder or BitDecoder. A byte of a stream: given, or found.
  template <class Coder> unsigned byte(Coder &coder, std::uint32_t stream, const Hint &hint, unsigned given);
  // `count` bits (1 to 64) behind `symbol` of a stream.
  template <class Coder>
  std::uint64_t bits(Coder &coder, std::uint32_t stream, unsigned symbol, const Hint &hint,
                     std::uint64_t given, unsigned count);

private:
  struct State;
  std::unique_ptr<State> state_;
};

struct NoCoder {};

template <bool kDecode> class ContextCoder {
public:
  using Coder = std::conditional_t<kDecode, BitDecoder, BitEncoder>;

  void start(ContextModel &model, unsigned bits,
             std::conditional_t<kDecode, Bytes, std::vector<std::uint8_t> &> code) {
    model_ = &model;
    model.start(bits);
    coder_.emplace(code);
  }
  unsigned byte(std::uint32_t stream, const Hint &hint, unsigned given) {
    return model_->byte(*coder_, stream, hint, given);
  }
  std::uint64_t bits(std::uint32_t stream, unsigned symbol, const Hint &hint, std::uint64_t given,
                     unsigned count) {
    return model_->bits(*coder_, stream, symbol, hint, given, count);
  }
  void finish() { coder_->finish(); }
  [[nodiscard]] double bits_written() const { return coder_->bits_written(); }
  // Of a decoder: it has read more than there is.
  [[nodiscard]] bool overrun() const { return coder_->overrun(); }
  [[nodiscard]] bool at_end() const { return coder_->at_end(); }

private:
  ContextModel *model_ = nullptr;
  std::optional<Coder> coder_;
};

} // namespace etwrelog::etlz
