// A deflate stream as blocks and tokens, compared with what it is to decode to. Safe on any input.
#pragma once

#include "codec/deflate/source.hpp"

namespace etwrelog::codec::deflate {

// A block, or a piece of a long one.
struct Unit {
  static constexpr std::size_t kMostTokens = 1u << 16;

  BlockType type = BlockType::stored;
  bool begins = true, ends = true; // of its block
  bool final = false;              // the last block
  bool flushed = false;            // an empty stored block follows: the encoder saw nothing behind this one
  std::uint8_t filler = 0;         // bits up to the length of a stored block
  std::vector<std::uint8_t> head;  // of a dynamic block: format.hpp; of its first piece
  std::vector<Token> tokens;
  std::uint64_t bytes = 0; // decoded
};

enum class Step : std::uint8_t { more, end, foreign };

class Reader {
public:
  // The stream that begins at `at` of `compressed`; it is to decode to what `content` holds from `from` on.
  Reader(Fetch compressed, std::uint64_t at, Fetch content, std::uint64_t from, std::uint64_t size);

  // The next unit; at the end of the stream none. Foreign: no deflate stream, or it decodes to something
  // else, or the input could not be read (error()).
  [[nodiscard]] Step next(Unit &unit);
  // Decoded so far.
  [[nodiscard]] std::uint64_t decoded() const { return at_; }
  // Behind the stream, once it has ended, and the bits that fill its last byte.
  [[nodiscard]] std::uint64_t end() const { return bits_.at(); }
  [[nodiscard]] std::uint8_t last_filler() const { return last_filler_; }
  [[nodiscard]] const std::optional<Error> &error() const {
    return bits_.error() ? bits_.error() : content_.error();
  }

private:
  enum class State : std::uint8_t { between, inside, end };

  [[nodiscard]] bool begin_block(Unit &unit);
  [[nodiscard]] bool read_head(Unit &unit);
  [[nodiscard]] bool read_stored(Unit &unit);
  [[nodiscard]] bool read_tokens(Unit &unit);
  [[nodiscard]] bool take_match(unsigned symbol, Unit &unit);
  [[nodiscard]] bool empty_stored_follows();

  BitReader bits_;
  Content content_;
  std::uint64_t at_ = 0;
  State state_ = State::between;
  BlockType type_ = BlockType::stored;
  bool final_ = false;
  std::uint8_t last_filler_ = 0;
  Code literals_, distances_;
  SymbolTable literal_table_, distance_table_;
};

} // namespace etwrelog::codec::deflate
