// Brings back a deflate stream from what it decodes to and a few corrections.
//
// Encoders make the same choice every time: matcher.hpp says which. What is stored of a stream are its blocks
// and the tokens that the rules get wrong. Four byte streams, in which units follow each other, a block or a
// piece of one each:
//
//   shape      a byte: bits 0-1 the type of the block; 2 it is the last; 3 a piece that goes on with a block;
//              4 the block goes on in the next unit; 5 the encoder saw nothing behind; 6 as many tokens as
//              the last unit that said how many; 7 the block is whole, holds tokens, and its head is what
//              trees.hpp says. Stored: a byte, the bits before its length, and a varint, its length. Others:
//              unless bit 6, varint of the tokens (65536 at most); if bit 5, varint of the bytes they are;
//              varint of the corrections. Behind the last unit a byte, the bits that fill the stream's last
//              one.
//   heads      of other dynamic blocks: format.hpp
//   places     for each correction: varint of the tokens of the unit since the last one; varint: 0 a literal,
//              else the length less 2, where 257 is 258 in its unusual form
//   distances  of corrections that are matches: u16, less 1
//
// All of this is part of the archive format.
#pragma once

#include "codec/deflate/matcher.hpp"
#include "codec/deflate/reader.hpp"
#include "codec/deflate/trees.hpp"

namespace etwrelog::codec::deflate {

struct Corrections {
  std::vector<std::uint8_t> shape, heads, places, distances;

  [[nodiscard]] std::size_t size() const {
    return shape.size() + heads.size() + places.size() + distances.size();
  }
  void clear() { shape.clear(), heads.clear(), places.clear(), distances.clear(); }
};

// The same, being read.
struct CorrectionsView {
  Bytes shape, heads, places, distances;
  [[nodiscard]] bool empty() const {
    return shape.empty() && heads.empty() && places.empty() && distances.empty();
  }
};

// What a stream decodes to, as stretch of what a fetch has.
struct Stretch {
  Fetch content;
  std::uint64_t from = 0, size = 0;
};

struct Measured {
  std::uint64_t end = 0;     // offset behind the stream
  std::uint64_t decoded = 0; // bytes
};
// Reads the stream at `at` to its end. It decodes to the front of `content` or all of it; nullopt if not, or
// if something cannot be read.
[[nodiscard]] std::optional<Measured> measure(const Fetch &compressed, std::uint64_t at,
                                              const Stretch &content);

// What the streams of one file are followed with, and for how long. A stream can be made to have long chains
// everywhere, and 4096 candidates are looked at for each byte then. In real traces it is 129 a byte at most,
// and finding parameters takes 3.4e8 at most.
struct Following {
  Matcher matcher;
  std::uint64_t searched = 0, bytes = 0; // candidates, for parameters; bytes that were followed
  bool search_cut = false;               // that of a stream was: no other is searched
  std::uint64_t most_of_stream = 1u << 29, most_searched = 1u << 30; // for parameters
  // Candidates beyond so many a byte, while a stream is taken apart or put together. A reader takes more than
  // a writer ever asks for.
  std::uint64_t most_predicted = 1u << 28, most_restored = std::uint64_t{1} << 33;
  static constexpr std::uint64_t kPredictedPerByte = 256, kRestoredPerByte = 512;

  [[nodiscard]] bool may_search() const { return !search_cut && searched < most_searched; }
  [[nodiscard]] bool may_predict() const { return walked() <= most_predicted + kPredictedPerByte * bytes; }
  [[nodiscard]] bool may_restore() const { return walked() <= most_restored + kRestoredPerByte * bytes; }
  [[nodiscard]] std::uint64_t walked() const { return matcher.walked() - searched; }
};

struct FoundParameters {
  Parameters parameters;
  bool explains_all = false;
};
// The parameters that explain the first MiB of a stream best, as far as the search goes; `likely` if they
// explain all of that, or nothing may be searched.
[[nodiscard]] FoundParameters find_parameters(const Fetch &compressed, std::uint64_t at,
                                              const Stretch &content, const Parameters &likely,
                                              Following &following);

// Takes a stream apart, unit by unit.
class Predictor {
public:
  Predictor(const Fetch &compressed, std::uint64_t at, const Stretch &content, const Parameters &parameters,
            Following &following);

  // Appends a unit. Foreign: as Reader::next, or predicting takes too long.
  [[nodiscard]] Step next(Corrections &out);
  [[nodiscard]] const Reader &reader() const { return reader_; }
  struct Counts {
    std::uint64_t tokens = 0, corrected = 0;
  };
  [[nodiscard]] const Counts &counts() const { return counts_; }

private:
  void put_tokens(const Unit &unit, std::uint8_t shape, Corrections &out);

  Reader reader_;
  Content content_;
  Following &following_;
  Unit unit_;
  std::uint64_t at_ = 0, last_count_ = 0;
  std::vector<std::pair<std::size_t, Token>> wrong_;
  Frequencies frequencies_;
  std::vector<std::uint8_t> head_;
  Counts counts_;
};

// Puts a stream together again. Safe on any input.
class Restorer {
public:
  Restorer(const Stretch &content, const Parameters &parameters, Following &following);

  // Takes a unit and appends bytes of the stream to `out`: all of them but for the last bits, unless it is
  // over. Foreign: the corrections do not fit, the content cannot be read (error()), or it takes too long
  // (Following::may_restore).
  [[nodiscard]] Step next(CorrectionsView &in, std::vector<std::uint8_t> &out);
  [[nodiscard]] const std::optional<Error> &error() const { return content_.error(); }

private:
  struct Shape;
  [[nodiscard]] bool put_stored(const Shape &shape, CorrectionsView &in, std::vector<std::uint8_t> &out);
  [[nodiscard]] bool put_tokens(const Shape &shape, CorrectionsView &in, std::vector<std::uint8_t> &out);
  [[nodiscard]] bool take_tokens(const Shape &shape, CorrectionsView &in);
  [[nodiscard]] bool put_head(Bytes &heads, std::vector<std::uint8_t> &out);
  [[nodiscard]] bool put_token(Token token, std::vector<std::uint8_t> &out);
  void put(std::uint64_t bits, unsigned count, std::vector<std::uint8_t> &out);
  [[nodiscard]] bool put_symbol(const Code &code, unsigned symbol, std::vector<std::uint8_t> &out);

  Content content_;
  Following &following_;
  std::uint64_t at_ = 0, last_count_ = 0;
  bool inside_ = false, over_ = false; // of a block; of the stream
  BlockType type_ = BlockType::stored;
  bool final_ = false;
  std::vector<Token> tokens_; // of a unit; the length of a literal is its byte
  Frequencies frequencies_;
  std::vector<std::uint8_t> head_;
  Code literals_, distances_;
  std::uint64_t hold_ = 0;
  unsigned held_ = 0;
};

} // namespace etwrelog::codec::deflate
