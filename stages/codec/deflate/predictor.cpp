#include "codec/deflate/predictor.hpp"

#include "codec/correction_bytes.hpp"

#include <algorithm>

namespace etwrelog::codec::deflate {
namespace {

constexpr std::uint64_t kSample = 1u << 20; // decoded bytes that parameters are found by
constexpr std::size_t kSampleUnits = 4096;  // of blocks that hold nothing there may be any number

} // namespace

std::optional<Measured> measure(const Fetch &compressed, std::uint64_t at, const Stretch &content) {
  Reader reader(compressed, at, content.content, content.from, content.size);
  Unit unit;
  for (;;) {
    switch (reader.next(unit)) {
    case Step::more: break;
    case Step::end: return Measured{reader.end(), reader.decoded()};
    default: return std::nullopt;
    }
  }
}

namespace {

// The front of a stream, on which parameters are tried.
class Sample {
public:
  Sample(const Fetch &compressed, std::uint64_t at, const Stretch &content, Following &following)
      : content_(content), matcher_(following.matcher),
        most_walked_(matcher_.walked() +
                     std::min(following.most_of_stream, following.most_searched - following.searched)) {
    Reader reader(compressed, at, content.content, content.from, content.size);
    while (reader.decoded() < kSample && units_.size() < kSampleUnits) {
      if (reader.next(unit_) != Step::more) break;
      units_.push_back(unit_);
    }
    for (const Unit &unit : units_) {
      flushes_ |= unit.flushed;
      for (const Token &token : unit.tokens) {
        matches_ += token.literal() ? 0u : 1u;
        furthest_ = std::max<unsigned>(furthest_, token.distance);
      }
    }
  }

  // How many tokens the parameters get wrong; `enough` of them end the count.
  [[nodiscard]] std::uint64_t wrong(const Parameters &parameters, std::uint64_t enough) {
    const Stretch &stretch = content_;
    Content content(
        [&stretch](std::uint64_t at, MutableBytes into) { return stretch.content(stretch.from + at, into); },
        stretch.size);
    matcher_.begin(parameters, content.size());
    std::uint64_t at = 0, wrong = 0;
    for (const Unit &unit : units_) {
      const std::uint64_t end = unit.flushed ? at + unit.bytes : content.size();
      if (unit.type == BlockType::stored)
        for (std::uint64_t i = 0; i < unit.bytes; ++i) {
          if (!content.reach(at)) return enough;
          matcher_.pass(content, at++);
        }
      for (const Token &token : unit.tokens) {
        if (!content.reach(at)) return enough;
        const Token predicted = matcher_.predict(content, at, end);
        matcher_.take(content, at, predicted, token);
        at += token.bytes();
        if (!(token == predicted) && ++wrong >= enough) return wrong;
        if (matcher_.walked() > most_walked_) return enough;
      }
      if (unit.flushed) matcher_.cut(at);
    }
    return wrong;
  }
  [[nodiscard]] std::uint64_t matches() const { return matches_; }
  [[nodiscard]] unsigned furthest() const { return furthest_; }
  [[nodiscard]] bool flushes() const { return flushes_; }

private:
  const Stretch &content_;
  Unit unit_;
  std::vector<Unit> units_;
  std::uint64_t matches_ = 0;
  unsigned furthest_ = 0;
  bool flushes_ = false;
  Matcher &matcher_;
  const std::uint64_t most_walked_;
};

} // namespace

FoundParameters find_parameters(const Fetch &compressed, std::uint64_t at, const Stretch &content,
                                const Parameters &likely, Following &following) {
  if (!following.may_search()) return {likely, false};
  const std::uint64_t walked_before = following.matcher.walked();
  Sample sample(compressed, at, content, following);
  Parameters best = likely;
  std::uint64_t fewest = sample.wrong(likely, UINT64_MAX);
  auto attempt = [&](const Parameters &parameters) {
    if (fewest == 0) return;
    const std::uint64_t wrong = sample.wrong(parameters, fewest);
    if (wrong >= fewest) return;
    fewest = wrong;
    best = parameters;
  };
  if (sample.matches() == 0) attempt({.kind = Parameters::Kind::literals});
  if (sample.furthest() <= 1) attempt({.kind = Parameters::Kind::runs});
  // Each if it explains more than what was found before. What is rare comes last.
  auto attempt_levels = [&](Parameters parameters) {
    for (const unsigned level : {6u, 9u, 1u, 5u, 8u, 7u, 3u, 4u, 2u}) {
      parameters.kind = level < 4 ? Parameters::Kind::greedy : Parameters::Kind::lazy;
      parameters.level = static_cast<std::uint8_t>(level);
      attempt(parameters);
    }
  };
  attempt_levels({});
  if (sample.flushes()) attempt_levels({.forgets = true});
  for (unsigned bits = 14; bits >= 9 && sample.furthest() < 1u << bits; --bits)
    attempt_levels({.window_bits = static_cast<std::uint8_t>(bits)});
  for (unsigned bits = 16; bits >= 8; --bits) {
    Parameters parameters = best;
    parameters.hash_bits = static_cast<std::uint8_t>(bits);
    attempt(parameters);
  }
  if (best.hash_bits != Parameters().hash_bits) attempt_levels(best);
  Parameters filtered = best;
  filtered.filtered = true;
  attempt(filtered);
  const std::uint64_t walked = following.matcher.walked() - walked_before;
  following.searched += walked;
  following.search_cut = walked > following.most_of_stream;
  return {best, fewest == 0};
}

// --- Taking apart

namespace {

constexpr unsigned kTypeBits = 3, kFinal = 4, kGoesOn = 8, kUnfinished = 16, kNothingBehind = 32,
                   kSameCount = 64, kUsualHead = 128;

Fetch stretch_of(const Stretch &stretch) {
  return [content = stretch.content, from = stretch.from](std::uint64_t at, MutableBytes into) {
    return content(from + at, into);
  };
}

} // namespace

Predictor::Predictor(const Fetch &compressed, std::uint64_t at, const Stretch &content,
                     const Parameters &parameters, Following &following)
    : reader_(compressed, at, content.content, content.from, content.size),
      content_(stretch_of(content), content.size), following_(following) {
  following_.matcher.begin(parameters, content.size);
}

Step Predictor::next(Corrections &out) {
  const Step step = reader_.next(unit_);
  if (step == Step::foreign) return step;
  if (step == Step::end) {
    out.shape.push_back(reader_.last_filler());
    return step;
  }
  const unsigned shape = static_cast<unsigned>(unit_.type) | (unit_.final ? kFinal : 0) |
                         (unit_.begins ? 0 : kGoesOn) | (unit_.ends ? 0 : kUnfinished) |
                         (unit_.flushed ? kNothingBehind : 0);
  if (unit_.type != BlockType::stored) {
    put_tokens(unit_, static_cast<std::uint8_t>(shape), out);
    return content_.error() || !following_.may_predict() ? Step::foreign : step;
  }
  out.shape.push_back(static_cast<std::uint8_t>(shape));
  out.shape.push_back(unit_.filler);
  put_number(out.shape, unit_.bytes);
  for (std::uint64_t i = 0; i < unit_.bytes; ++i) {
    if (!content_.reach(at_)) return Step::foreign;
    following_.matcher.pass(content_, at_++);
  }
  following_.bytes += unit_.bytes;
  return step;
}

void Predictor::put_tokens(const Unit &unit, std::uint8_t shape, Corrections &out) {
  Matcher &matcher = following_.matcher;
  const std::uint64_t end = unit.flushed ? at_ + unit.bytes : content_.size();
  wrong_.clear();
  frequencies_.clear();
  std::size_t number = 0, since = 0;
  for (const Token &token : unit.tokens) {
    if (!content_.reach(at_)) return;
    if (token.literal())
      frequencies_.count_literal(*content_.byte(at_));
    else
      frequencies_.count_match(token);
    const Token predicted = matcher.predict(content_, at_, end);
    matcher.take(content_, at_, predicted, token);
    at_ += token.bytes();
    following_.bytes += token.bytes();
    if (!following_.may_predict()) return;
    if (!(token == predicted)) {
      wrong_.emplace_back(number - since, token);
      since = number + 1;
    }
    ++number;
  }
  if (unit.flushed) matcher.cut(at_);
  counts_.tokens += unit.tokens.size();
  counts_.corrected += wrong_.size();
  const bool same = unit.tokens.size() == last_count_;
  last_count_ = unit.tokens.size();
  bool usual = unit.type == BlockType::dynamic && unit.begins && unit.ends && !unit.tokens.empty();
  if (usual) {
    predict_head(frequencies_, head_);
    usual = head_ == unit.head;
  }
  out.shape.push_back(static_cast<std::uint8_t>(shape | (same ? kSameCount : 0) | (usual ? kUsualHead : 0)));
  if (!same) put_number(out.shape, unit.tokens.size());
  if (unit.flushed) put_number(out.shape, unit.bytes);
  put_number(out.shape, wrong_.size());
  if (!usual) out.heads.insert(out.heads.end(), unit.head.begin(), unit.head.end());
  for (const auto &[tokens, token] : wrong_) {
    put_number(out.places, tokens);
    put_number(out.places, token.literal() ? 0u : token.length - 2u);
    if (token.literal()) continue;
    const unsigned distance = token.distance - 1u;
    out.distances.push_back(static_cast<std::uint8_t>(distance));
    out.distances.push_back(static_cast<std::uint8_t>(distance >> 8));
  }
}

// --- Putting together

struct Restorer::Shape {
  unsigned bits = 0;
  [[nodiscard]] bool has(unsigned bit) const { return (bits & bit) != 0; }
};

Restorer::Restorer(const Stretch &content, const Parameters &parameters, Following &following)
    : content_(stretch_of(content), content.size), following_(following) {
  following_.matcher.begin(parameters, content.size);
}

Step Restorer::next(CorrectionsView &in, std::vector<std::uint8_t> &out) {
  if (over_ || in.shape.empty()) return Step::foreign;
  if (!inside_ && final_) { // the bits that fill the last byte
    const unsigned filler = in.shape.front(), count = (8 - held_ % 8) % 8;
    in.shape = in.shape.subspan(1);
    if (filler >> count != 0 || at_ != content_.size()) return Step::foreign;
    put(filler, count, out);
    over_ = true;
    return Step::end;
  }
  const Shape shape{in.shape.front()};
  in.shape = in.shape.subspan(1);
  const unsigned type = shape.bits & kTypeBits;
  if (type > 2 || shape.has(kGoesOn) != inside_) return Step::foreign;
  if (inside_ && (static_cast<BlockType>(type) != type_ || shape.has(kFinal) != final_)) return Step::foreign;
  if (!inside_) {
    type_ = static_cast<BlockType>(type);
    final_ = shape.has(kFinal);
    put((final_ ? 1u : 0u) | type << 1, 3, out);
  }
  const bool good = type_ == BlockType::stored ? put_stored(shape, in, out) : put_tokens(shape, in, out);
  return good ? Step::more : Step::foreign;
}

bool Restorer::put_stored(const Shape &shape, CorrectionsView &in, std::vector<std::uint8_t> &out) {
  std::uint64_t size = 0;
  if (shape.has(kUnfinished | kNothingBehind | kSameCount | kUsualHead) || in.shape.empty()) return false;
  const unsigned filler = in.shape.front(), count = (8 - held_ % 8) % 8;
  in.shape = in.shape.subspan(1);
  if (filler >> count != 0 || !take_number(in.shape, size) || size > 0xFFFF || size > content_.size() - at_)
    return false;
  put(filler, count, out);
  put(size, 16, out);
  put(size ^ 0xFFFF, 16, out);
  for (std::uint64_t i = 0; i < size; ++i) {
    if (!content_.reach(at_)) return false;
    out.push_back(*content_.byte(at_));
    following_.matcher.pass(content_, at_++);
  }
  following_.bytes += size;
  return true;
}

bool Restorer::put_head(Bytes &heads, std::vector<std::uint8_t> &out) {
  const Bytes all = heads;
  if (!take_codes(heads, literals_, distances_)) return false;
  const Bytes head = all.first(all.size() - heads.size());
  put(head[0], 5, out);
  put(head[1], 5, out);
  put(head[2], 4, out);
  const unsigned lengths = head[2] + 4u;
  Code of_lengths;
  of_lengths.lengths.assign(kLengthSymbols, 0);
  for (unsigned i = 0; i < lengths; ++i) {
    put(head[3 + i], 3, out);
    of_lengths.lengths[kLengthOrder[i]] = head[3 + i];
  }
  if (!of_lengths.make()) return false;
  for (std::size_t at = 3 + lengths; at < head.size(); ++at) {
    const unsigned symbol = head[at];
    if (!put_symbol(of_lengths, symbol, out)) return false;
    if (symbol >= 16) put(head[++at], repeat_bits(symbol), out);
  }
  return true;
}

bool Restorer::put_tokens(const Shape &shape, CorrectionsView &in, std::vector<std::uint8_t> &out) {
  const bool usual = shape.has(kUsualHead);
  if (usual && (type_ != BlockType::dynamic || inside_ || shape.has(kUnfinished))) return false;
  if (!take_tokens(shape, in) || (usual && tokens_.empty())) return false;
  if (type_ == BlockType::fixed && !inside_) {
    literals_ = fixed_literals();
    distances_ = fixed_distances();
  } else if (usual) {
    predict_head(frequencies_, head_);
    Bytes head(head_);
    if (!put_head(head, out)) return false;
  } else if (!inside_ && !put_head(in.heads, out)) {
    return false;
  }
  for (const Token &token : tokens_)
    if (!put_token(token, out)) return false;
  inside_ = shape.has(kUnfinished);
  return inside_ || put_symbol(literals_, kEndOfBlock, out);
}

bool Restorer::take_tokens(const Shape &shape, CorrectionsView &in) {
  Matcher &matcher = following_.matcher;
  tokens_.clear();
  frequencies_.clear();
  std::uint64_t count = last_count_, bytes = content_.size() - at_, corrections = 0;
  if (!shape.has(kSameCount) && !take_number(in.shape, count)) return false;
  if (shape.has(kNothingBehind) && !take_number(in.shape, bytes)) return false;
  if (!take_number(in.shape, corrections)) return false;
  if (count > Unit::kMostTokens || bytes > content_.size() - at_ || corrections > count) return false;
  last_count_ = count;
  const std::uint64_t end = at_ + bytes;
  std::uint64_t until = 0; // the next correction
  if (corrections > 0 && !take_number(in.places, until)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at_ >= end || !content_.reach(at_) || !following_.may_restore()) return false;
    const Token predicted = matcher.predict(content_, at_, end);
    Token token = predicted;
    if (corrections > 0 && until-- == 0) {
      std::uint64_t length = 0;
      if (!take_number(in.places, length) || length > kUnusualLength - 2) return false;
      if (length == 0) {
        token = {};
      } else {
        if (in.distances.size() < 2) return false;
        const unsigned distance = load<std::uint16_t>(in.distances.data()) + 1u;
        in.distances = in.distances.subspan(2);
        if (distance > kWindow || distance > at_) return false;
        token = {static_cast<std::uint16_t>(length + 2), static_cast<std::uint16_t>(distance)};
      }
      if (--corrections > 0 && !take_number(in.places, until)) return false;
    }
    if (token.bytes() > end - at_) return false;
    if (token.literal()) {
      tokens_.push_back({*content_.byte(at_), 0});
      frequencies_.count_literal(*content_.byte(at_));
    } else {
      tokens_.push_back(token);
      frequencies_.count_match(token);
    }
    matcher.take(content_, at_, predicted, token);
    at_ += token.bytes();
    following_.bytes += token.bytes();
  }
  if (shape.has(kNothingBehind)) matcher.cut(at_);
  return corrections == 0;
}

bool Restorer::put_token(Token token, std::vector<std::uint8_t> &out) {
  if (token.literal()) return put_symbol(literals_, token.length, out);
  const unsigned symbol = length_symbol(token.length), back = distance_symbol(token.distance);
  if (!put_symbol(literals_, symbol, out)) return false;
  put(token.bytes() - kLengths[symbol - 257].first, kLengths[symbol - 257].bits, out);
  if (!put_symbol(distances_, back, out)) return false;
  put(token.distance - kDistances[back].first, kDistances[back].bits, out);
  return true;
}

bool Restorer::put_symbol(const Code &code, unsigned symbol, std::vector<std::uint8_t> &out) {
  if (symbol >= code.lengths.size() || code.lengths[symbol] == 0) return false;
  put(code.bits[symbol], code.lengths[symbol], out);
  return true;
}

void Restorer::put(std::uint64_t bits, unsigned count, std::vector<std::uint8_t> &out) {
  hold_ |= bits << held_;
  held_ += count;
  while (held_ >= 8) {
    out.push_back(static_cast<std::uint8_t>(hold_));
    hold_ >>= 8;
    held_ -= 8;
  }
}

} // namespace etwrelog::codec::deflate
