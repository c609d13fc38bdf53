#include "codec/deflate/matcher.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace etwrelog::codec::deflate {
namespace {

struct Effort {
  std::uint16_t good, lazy, nice, chain;
};
constexpr std::array<Effort, 10> kEfforts = {{{0, 0, 0, 0},
                                              {4, 4, 8, 4},
                                              {4, 5, 16, 8},
                                              {4, 6, 32, 32},
                                              {4, 4, 16, 16},
                                              {8, 16, 32, 32},
                                              {8, 16, 128, 128},
                                              {8, 32, 128, 256},
                                              {32, 128, 258, 1024},
                                              {32, 258, 258, 4096}}};
constexpr unsigned kReserve = kLongest + kShortest + 1;
constexpr std::uint32_t kFarForThree = 4096;
constexpr unsigned kFilteredMost = 5;

unsigned same_bytes(const std::uint8_t *a, const std::uint8_t *b, unsigned most) {
  unsigned n = 0;
  while (n + 8 <= most) {
    const std::uint64_t difference = load<std::uint64_t>(a + n) ^ load<std::uint64_t>(b + n);
    if (difference != 0) return n + static_cast<unsigned>(std::countr_zero(difference)) / 8;
    n += 8;
  }
  while (n < most && a[n] == b[n])
    ++n;
  return n;
}

} // namespace

void put_parameters(const Parameters &p, std::vector<std::uint8_t> &out) {
  for (const unsigned value : {static_cast<unsigned>(p.kind), unsigned{p.level}, unsigned{p.hash_bits},
                               unsigned{p.window_bits}, (p.filtered ? 1u : 0u) | (p.forgets ? 2u : 0u)})
    out.push_back(static_cast<std::uint8_t>(value));
}

bool take_parameters(Bytes &in, Parameters &p) {
  if (in.size() < kParameterBytes) return false;
  p.kind = static_cast<Parameters::Kind>(in[0]);
  p.level = in[1];
  p.hash_bits = in[2];
  p.window_bits = in[3];
  p.filtered = (in[4] & 1) != 0;
  p.forgets = (in[4] & 2) != 0;
  const bool possible = p.kind < Parameters::Kind::count_ && p.level >= 1 && p.level <= 9 &&
                        p.hash_bits >= 8 && p.hash_bits <= 16 && p.window_bits >= 9 && p.window_bits <= 15 &&
                        in[4] <= 3;
  in = in.subspan(kParameterBytes);
  return possible;
}

Matcher::Matcher() : head_(1u << 16), previous_(kWindow) {}

void Matcher::begin(const Parameters &parameters, std::uint64_t size) {
  parameters_ = parameters;
  const Effort &effort = kEfforts[parameters.level];
  good_ = effort.good, lazy_ = effort.lazy, nice_ = effort.nice, chain_ = effort.chain;
  shift_ = (parameters.hash_bits + kShortest - 1) / kShortest;
  hash_mask_ = (1u << parameters.hash_bits) - 1;
  window_mask_ = (1u << parameters.window_bits) - 1;
  most_ = (1u << parameters.window_bits) - kReserve;
  base_ += entered_;
  if (base_ >= UINT32_MAX || size >= UINT32_MAX - base_) { // the next places would look like earlier ones
    base_ = 0;
    std::ranges::fill(head_, 0);
    std::ranges::fill(previous_, 0);
  }
  entered_ = floor_ = 0;
  waiting_ = {};
  waiting_at_ = UINT64_MAX;
}

void Matcher::enter(const Content &content, std::uint64_t upto) {
  if (content.size() < kShortest) return;
  const std::uint64_t end = std::min(upto + 1, content.size() - kShortest + 1);
  if (entered_ >= end) return;
  const std::uint8_t *at = content.byte(entered_);
  auto place = static_cast<std::uint32_t>(base_ + entered_);
  for (; entered_ < end; ++entered_, ++place, ++at) {
    std::uint32_t &head = head_[hash(at)];
    previous_[place & window_mask_] = head;
    head = place;
  }
}

Matcher::Found Matcher::find(const Content &content, std::uint64_t at, unsigned beat,
                             std::uint64_t end) const {
  const std::uint64_t left = end - at;
  if (left < kShortest || at >= entered_) return {beat, 0};
  const auto most = static_cast<unsigned>(std::min<std::uint64_t>(left, kLongest));
  const unsigned nice = std::min(nice_, most);
  const unsigned chain = beat >= good_ ? chain_ / 4 : chain_;
  unsigned tries = chain;
  Found best{beat, 0};
  if (beat >= most) return best;
  const std::uint8_t *here = content.byte(at);
  const auto place = static_cast<std::uint32_t>(base_ + at);
  const std::uint64_t room = at - floor_; // distances are below this
  std::uint32_t candidate = previous_[place & window_mask_];
  std::uint32_t distance = place - candidate;
  if (distance == 0 || distance > most_ || distance >= room) return best;
  do {
    const std::uint8_t *there = here - distance;
    if (there[best.length] == here[best.length] && there[best.length - 1] == here[best.length - 1]) {
      const unsigned length = same_bytes(there, here, most);
      if (length > best.length) {
        best = {length, distance};
        if (length >= nice) break;
      }
    }
    candidate = previous_[candidate & window_mask_];
    distance = place - candidate;
  } while (distance != 0 && distance < most_ && distance < room && --tries != 0);
  walked_ += chain - tries;
  return best;
}

Matcher::Found Matcher::find_lazily(const Content &content, std::uint64_t at, unsigned beat,
                                    std::uint64_t end) const {
  const Found found = find(content, at, beat, end);
  const bool none = found.distance == 0 || (parameters_.filtered && found.length <= kFilteredMost) ||
                    (found.length == kShortest && found.distance > kFarForThree);
  return none ? Found{} : found;
}

Token Matcher::predict(const Content &content, std::uint64_t at, std::uint64_t end) {
  constexpr unsigned kNothing = kShortest - 1;
  auto match = [](const Found &found) {
    return Token{static_cast<std::uint16_t>(found.length), static_cast<std::uint16_t>(found.distance)};
  };
  switch (parameters_.kind) {
  case Parameters::Kind::runs: {
    if (at == 0 || end - at < kShortest) return {};
    const std::uint8_t *here = content.byte(at);
    const auto most = static_cast<unsigned>(std::min<std::uint64_t>(end - at, kLongest));
    const unsigned length = same_bytes(here - 1, here, most);
    return length >= kShortest ? match({length, 1}) : Token{};
  }
  case Parameters::Kind::greedy: {
    enter(content, at);
    const Found found = find(content, at, kNothing, end);
    return found.distance != 0 ? match(found) : Token{};
  }
  case Parameters::Kind::lazy: {
    enter(content, at);
    const Found found = waiting_at_ == at ? waiting_ : find_lazily(content, at, kNothing, end);
    waiting_at_ = UINT64_MAX;
    if (found.distance == 0) return {};
    if (found.length >= lazy_ || end - at < 2) return match(found);
    enter(content, at + 1);
    const Found next = find_lazily(content, at + 1, found.length, end);
    if (next.length <= found.length) return match(found);
    waiting_ = next;
    waiting_at_ = at + 1;
    return {};
  }
  default: return {};
  }
}

void Matcher::take(const Content &content, std::uint64_t at, Token predicted, Token token) {
  if (!(token == predicted)) waiting_at_ = UINT64_MAX;
  if (token.literal() || parameters_.kind == Parameters::Kind::literals ||
      parameters_.kind == Parameters::Kind::runs)
    return;
  const std::uint64_t end = at + token.bytes();
  if (parameters_.kind == Parameters::Kind::greedy && token.bytes() > lazy_)
    entered_ = std::max(entered_, end);
  else
    enter(content, end - 1);
}

void Matcher::pass(const Content &content, std::uint64_t at) {
  waiting_at_ = UINT64_MAX;
  if (parameters_.kind == Parameters::Kind::greedy || parameters_.kind == Parameters::Kind::lazy)
    enter(content, at);
}

} // namespace etwrelog::codec::deflate
