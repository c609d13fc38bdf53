// Compiled to a PDB by the tests of symbols (clang and lld, for Windows). The names and lines in here are
// what they expect: `lines` in the comments are looked up by text, so the file may grow.
extern "C" int _fltused = 0;

namespace game {

struct Body {
  int mass;
  __attribute__((always_inline)) int weight(int gravity) const {
    return mass * gravity + 3; // line: weight
  }
};

__attribute__((always_inline)) inline int inner(int a) {
  Body body{a};
  volatile int sink = body.weight(a * 7); // line: inner
  return sink + a;
}

__attribute__((noinline)) int physics(int a) {
  int sum = inner(a + 1); // line: physics
  for (int i = 0; i < a; ++i)
    sum += inner(i); // line: physics loop
  return sum;
}

class Scene {
public:
  __attribute__((noinline)) int update(int frame);
  volatile int state = 0;
};

int Scene::update(int frame) {
  state = frame; // line: update
  return physics(frame) + state;
}

} // namespace game

static __attribute__((noinline)) int local_helper(int a) {
  volatile int b = a; // line: helper
  return b * 2;
}

extern "C" void entry() {
  game::Scene scene;
  volatile int result = scene.update(4) + local_helper(3); // line: entry
  (void)result;
}
