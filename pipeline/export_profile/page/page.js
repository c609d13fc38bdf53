// Looks around in one profile. All numbers shown are sums over the samples that are selected: by process, by thread, and
// by the stretch of time, ends included.
(function () {
  'use strict';
  const $ = id => document.getElementById(id);
  const data = JSON.parse($('data').textContent);
  const meta = data.meta, unit = meta.unit;
  const what = meta.kind === 'events' ? 'events' : meta.kind === 'cpu' ? 'samples' : 'switches', What = what[0].toUpperCase() + what.slice(1); // what has stacks
  const PROCESS = 1, FIRST_CODE = 3, KERNEL = 3, JIT = 5, NOTE = 8; // styles: 0 root, 1 process, 2 thread, then kinds of code

  // Columns are base64 of variable-length integers.
  function column(text, Type, count) {
    const bytes = atob(text), out = new Type(count);
    for (let at = 0, i = 0; i < count; ++i) {
      let value = 0, scale = 1, byte;
      do { byte = bytes.charCodeAt(at++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
      out[i] = value;
    }
    return out;
  }
  const nodeCount = data.nodes.count, sampleCount = data.samples.count;
  const up = column(data.nodes.up, Uint32Array, nodeCount), nameOf = column(data.nodes.name, Uint32Array, nodeCount);
  const time = column(data.samples.time, Float64Array, sampleCount), threadOf = column(data.samples.thread, Uint32Array, sampleCount);
  const nodeOf = column(data.samples.node, Uint32Array, sampleCount);
  const weight = data.samples.weight ? column(data.samples.weight, Float64Array, sampleCount) : new Float64Array(sampleCount).fill(1);
  const beside = data.samples.beside ? column(data.samples.beside, Float64Array, sampleCount) : new Float64Array(sampleCount); // µs
  const parent = new Uint32Array(nodeCount), processOf = new Int32Array(nodeCount);
  for (let i = 1; i < nodeCount; ++i) parent[i] = i - up[i];
  for (let i = 1; i < sampleCount; ++i) time[i] += time[i - 1];
  const names = data.names, styles = data.styles, moduleOf = data.nameModule, whyOf = data.nameWhy, estimated = new Set(data.estimated);
  processOf[0] = -1;
  for (let i = 1; i < nodeCount; ++i) processOf[i] = parent[i] === 0 ? data.nodeProcess.indexOf(i) : processOf[parent[i]];

  // A frame below another of the same name (or module) is not counted a second time.
  function repeats(key) {
    const out = new Uint8Array(nodeCount);
    for (let i = 1; i < nodeCount; ++i)
      for (let at = parent[i], k = key(i); at !== 0 && !out[i]; at = parent[at]) if (key(at) === k) out[i] = 1;
    return out;
  }
  // What the command line lists by module: several builds of a module, and several notes of a text, are one row.
  const moduleText = n => moduleOf[n] >= 0 && styles[n] !== NOTE ? data.modules[moduleOf[n]].name :
    styles[n] < FIRST_CODE || styles[n] === NOTE ? names[n] : styles[n] === JIT ? '(compiled at run time)' : styles[n] === KERNEL ? '(unknown kernel code)' : '(unknown code)';
  // Each build by itself, where its symbols are what counts.
  const buildText = n => moduleOf[n] < 0 ? '' : JSON.stringify(data.modules[moduleOf[n]]);
  const numbered = text => { // by name
    const known = new Map();
    return names.map((_, n) => { const t = text(n); if (!known.has(t)) known.set(t, known.size); return known.get(t) * 2 + (styles[n] < FIRST_CODE ? 1 : 0); });
  };
  const KEYS = { function: names.map((_, n) => n), module: numbered(moduleText), build: numbered(buildText) };
  const again = {};
  for (const by of Object.keys(KEYS)) again[by] = repeats(i => KEYS[by][nameOf[i]]);

  const children = (() => {
    const first = new Uint32Array(nodeCount + 1), order = new Uint32Array(nodeCount);
    for (let i = 1; i < nodeCount; ++i) ++first[parent[i] + 1];
    for (let i = 0; i < nodeCount; ++i) first[i + 1] += first[i];
    const next = first.slice();
    for (let i = 1; i < nodeCount; ++i) order[next[parent[i]]++] = i;
    return i => order.subarray(first[i], first[i + 1]);
  })();

  const end = meta.duration;
  const state = { process: -1, thread: -1, from: 0, to: end, tab: 'flame', zoom: 0, focus: 0, search: '', sort: 'self', by: 'function', open: new Set([0]) };
  let self = new Float64Array(nodeCount), total = new Float64Array(nodeCount), perThread, perProcess, sum = 0;

  // ---- numbers -------------------------------------------------------------------------------------------------
  const group = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',');
  const amount = weight => group(weight / meta.weight); // in the unit
  // Half the width of the 95 % confidence interval of a share, in percent: samples are drawn, times are measured.
  const error = (part, of) => unit === 'samples' && of > 0 ? ' ±' + (196 * Math.sqrt(part / of * (1 - part / of) / of)).toFixed(part / of < 0.1 ? 2 : 1) : '';
  const percent = (part, of) => of > 0 ? (100 * part / of).toFixed(part / of < 0.1 ? 2 : 1) + ' %' : '–';
  const seconds = ns => (ns / 1e9).toFixed(end < 2e9 ? 4 : 3);
  const first = t => { let a = 0, b = sampleCount; while (a < b) { const m = (a + b) >> 1; if (time[m] < t) a = m + 1; else b = m; } return a; };
  // Of waits, as --from and --to have it, only those that began and ended in the stretch.
  const part = () => state.from > 0 || state.to < end;
  const within = meta.kind === 'wait' ? i => !part() || time[i] + weight[i] + beside[i] * 1000 <= state.to
    : meta.kind === 'ready' ? i => !part() || (time[i] - beside[i] * 1000 >= state.from && time[i] + weight[i] <= state.to) : () => true;
  const root = () => state.process < 0 ? 0 : data.nodeProcess[state.process];

  function compute() {
    self.fill(0);
    perThread = new Float64Array(data.threads.length); perProcess = new Float64Array(data.processes.length);
    sum = 0;
    for (let i = first(state.from); i < sampleCount && time[i] <= state.to; ++i) {
      if (!within(i)) continue;
      const thread = threadOf[i], process = data.threads[thread][1];
      perThread[thread] += weight[i]; perProcess[process] += weight[i];
      if ((state.process >= 0 && process !== state.process) || (state.thread >= 0 && thread !== state.thread)) continue;
      self[nodeOf[i]] += weight[i]; sum += weight[i];
    }
    total.set(self);
    for (let i = nodeCount - 1; i > 0; --i) total[parent[i]] += total[i];
  }

  function rows(by) {
    const key = KEYS[by], seen = again[by], out = new Map();
    for (let i = 1; i < nodeCount; ++i) {
      const n = nameOf[i];
      if (total[i] === 0 || styles[n] < FIRST_CODE) continue;
      let row = out.get(key[n]);
      if (!row) out.set(key[n], row = { module: moduleOf[n], name: by === 'module' ? moduleText(n) : names[n], self: 0, total: 0 });
      row.self += self[i];
      if (!seen[i]) row.total += total[i];
    }
    return [...out.values()];
  }

  const matches = new Map();
  function match(name) { // by name's number
    if (state.search === '') return false;
    let hit = matches.get(name);
    if (hit === undefined) matches.set(name, hit = names[name].toLowerCase().includes(state.search));
    return hit;
  }
  function foundWeight() { // what passes through a match, once
    const inside = new Uint8Array(nodeCount); let found = 0;
    for (let i = 1; i < nodeCount; ++i) {
      if (inside[parent[i]]) inside[i] = 1;
      else if (total[i] > 0 && match(nameOf[i])) { inside[i] = 1; found += total[i]; }
    }
    return found;
  }

  // ---- colours -------------------------------------------------------------------------------------------------
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const HUES = { 3: [22, 92, 74, 'kernel'], 4: [212, 72, 77, 'native'], 5: [135, 44, 70, 'JIT-compiled'], 6: [184, 46, 80, 'inlined'], 7: [288, 30, 82, 'no module'], 8: [48, 30, 85, 'note'] };
  const PALETTE = ['#4c78a8', '#f58518', '#54a24b', '#e45756', '#72b7b2', '#b279a2', '#d4ac0d', '#9d755d'], REST = '#a6adb8';
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function hash(text) { let h = 2166136261; for (let i = 0; i < text.length; ++i) h = Math.imul(h ^ text.charCodeAt(i), 16777619); return (h ^ (h >>> 15)) >>> 0; }
  const colours = new Map();
  function colour(name) {
    let c = colours.get(name);
    if (c) return c;
    const hue = HUES[styles[name]];
    if (!hue) c = css('--root');
    else {
      const shade = hash(names[name].split(/[!+]/)[0]) % 3, light = hue[2] + hash(names[name]) % 2 * 5 - 2;
      c = `hsl(${hue[0] + shade * 7 - 7} ${dark.matches ? hue[1] * 0.6 : hue[1]}% ${dark.matches ? light - 12 : light}%)`;
    }
    colours.set(name, c);
    return c;
  }
  const ranking = data.processes.map((_, i) => i), whole = new Float64Array(data.processes.length);
  for (let i = 0; i < sampleCount; ++i) whole[data.threads[threadOf[i]][1]] += weight[i];
  ranking.sort((a, b) => whole[b] - whole[a] || a - b);
  const rank = []; ranking.forEach((p, i) => { rank[p] = i; });
  const processColour = p => PALETTE[rank[p]] || REST;

  // ---- drawing helpers -----------------------------------------------------------------------------------------
  function canvas(element, height) {
    const ratio = devicePixelRatio || 1, width = element.clientWidth;
    if (height) element.style.height = height + 'px';
    element.width = Math.max(1, Math.round(width * ratio)); element.height = Math.max(1, Math.round((height || element.clientHeight) * ratio));
    const g = element.getContext('2d');
    g.scale(ratio, ratio);
    return [g, width, height || element.clientHeight];
  }
  function add(to, tag, text, attributes) {
    const e = document.createElement(tag);
    if (text !== undefined && text !== null) e.textContent = text;
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    to.appendChild(e);
    return e;
  }
  function table(to, heads) {
    const t = add(add(to, 'div', null, { class: 'table' }), 'table'), tr = add(add(t, 'thead'), 'tr');
    heads.forEach(h => add(tr, 'th', h[0], h[1] ? { class: 'n' } : {}));
    return add(t, 'tbody');
  }
  const tip = $('tip');
  function showTip(text, event) {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
  }

  // ---- use over time -------------------------------------------------------------------------------------------
  const PAD = { left: 46, right: 8, top: 8, bottom: 20 };
  const timeCanvas = $('time');
  let plot = { width: 1, x: t => t, t: x => x };
  function drawTime() {
    const [g, width, height] = canvas(timeCanvas), w = width - PAD.left - PAD.right, h = height - PAD.top - PAD.bottom;
    const bins = Math.max(10, Math.min(600, Math.floor(w / 3))), shown = Math.min(PALETTE.length, ranking.length), layers = shown + 1;
    const use = new Float64Array(bins * layers);
    for (let i = 0; i < sampleCount; ++i) {
      const bin = Math.min(bins - 1, Math.floor(time[i] / (end || 1) * bins)), layer = Math.min(shown, rank[data.threads[threadOf[i]][1]]);
      use[bin * layers + layer] += weight[i];
    }
    // Processor samples become processors in use where the interval is known.
    const scale = meta.kind === 'cpu' && meta.interval > 0 ? meta.interval / (end / bins) : 1, asUse = scale !== 1;
    let most = 0;
    for (let b = 0; b < bins; ++b) { let s = 0; for (let l = 0; l < layers; ++l) s += use[b * layers + l]; most = Math.max(most, s * scale); }
    const top = asUse && most > 0.35 * meta.processors ? Math.max(most, meta.processors) : most || 1;
    g.font = '11px system-ui, sans-serif';
    g.fillStyle = css('--soft'); g.strokeStyle = css('--line'); g.textAlign = 'right'; g.textBaseline = 'middle';
    const label = v => asUse ? (top >= 4 ? v.toFixed(0) : v.toFixed(top < 0.5 ? 2 : 1)) : amount(v);
    for (let i = 0; i <= 2; ++i) {
      const y = PAD.top + h - h * i / 2;
      g.beginPath(); g.moveTo(PAD.left, y + 0.5); g.lineTo(width - PAD.right, y + 0.5); g.stroke();
      g.fillText(label(top * i / 2), PAD.left - 6, y);
    }
    g.save(); g.translate(9, PAD.top + h / 2); g.rotate(-Math.PI / 2); g.textAlign = 'center'; g.fillText(asUse ? 'processors' : unit, 0, 0); g.restore();
    const base = new Float64Array(bins);
    for (let l = 0; l < layers; ++l) {
      g.fillStyle = l < shown ? PALETTE[l] : REST;
      for (let b = 0; b < bins; ++b) {
        const v = use[b * layers + l] * scale;
        if (v === 0) continue;
        const x = PAD.left + w * b / bins, y0 = PAD.top + h - h * base[b] / top, y1 = PAD.top + h - h * (base[b] + v) / top;
        g.fillRect(x, y1, Math.max(1, w / bins - (w / bins > 2 ? 0.5 : 0)), y0 - y1);
        base[b] += v;
      }
    }
    g.fillStyle = css('--soft'); g.textAlign = 'center'; g.textBaseline = 'alphabetic';
    const ticks = Math.max(2, Math.floor(w / 110));
    for (let i = 0; i <= ticks; ++i) g.fillText((end / 1e9 * i / ticks).toFixed(end < 1e10 ? 2 : 1) + ' s', Math.min(width - 22, Math.max(PAD.left + 8, PAD.left + w * i / ticks)), height - 5);
    plot = { x: t => PAD.left + w * t / (end || 1), t: x => Math.max(0, Math.min(end, (x - PAD.left) / w * end)) };
    if (state.from > 0 || state.to < end) {
      const a = plot.x(state.from), b = plot.x(state.to);
      g.fillStyle = css('--shade'); g.fillRect(a, PAD.top, Math.max(1, b - a), h);
      g.strokeStyle = css('--accent'); g.lineWidth = 1.5; g.strokeRect(a, PAD.top, Math.max(1, b - a), h);
    }
  }
  function select(from, to) {
    state.from = Math.max(0, Math.min(from, to)); state.to = Math.min(end, Math.max(from, to));
    update();
  }
  let drag = null, before = null; // where it began, and what was selected
  timeCanvas.addEventListener('pointerdown', e => {
    if (e.button !== 0) return; // of another a menu opens
    drag = plot.t(e.offsetX); before = [state.from, state.to]; timeCanvas.setPointerCapture(e.pointerId);
  });
  // A touch that turns out to scroll the page.
  timeCanvas.addEventListener('pointercancel', () => { if (drag !== null) { drag = null; select(...before); } });
  timeCanvas.addEventListener('pointermove', e => {
    if (drag === null) return;
    const to = plot.t(e.offsetX);
    if (Math.abs(plot.x(to) - plot.x(drag)) >= 3) { state.from = Math.min(drag, to); state.to = Math.max(drag, to); drawTime(); fields(); }
  });
  timeCanvas.addEventListener('pointerup', e => {
    if (drag === null) return;
    const to = plot.t(e.offsetX), moved = Math.abs(plot.x(to) - plot.x(drag)) >= 3, from = drag;
    drag = null;
    if (moved) select(Math.round(from), Math.round(to)); else select(0, end);
  });
  timeCanvas.addEventListener('keydown', e => {
    const step = end / 50, width = state.to - state.from;
    if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') {
      const by = e.key === 'ArrowLeft' ? -step : step;
      if (width >= end) select(0, end / 4);
      else if (e.shiftKey) select(state.from, Math.max(state.from + step, state.to + by));
      else { const from = Math.max(0, Math.min(end - width, state.from + by)); select(from, from + width); }
      e.preventDefault();
    }
  });
  function fields() {
    $('from').value = seconds(state.from); $('to').value = seconds(state.to);
  }
  // What is typed is what counts, to the nanosecond; what is shown is rounded.
  for (const [id, key] of [['from', 'from'], ['to', 'to']]) $(id).addEventListener('change', () => {
    const value = Math.round(parseFloat($(id).value.replace(',', '.')) * 1e9);
    if (value >= 0) { state[key] = Math.min(value, end); select(state.from, state.to); } else fields();
  });
  $('stretch').addEventListener('submit', e => e.preventDefault());
  $('whole').addEventListener('click', () => select(0, end));

  // ---- processes and threads -----------------------------------------------------------------------------------
  function drawWho() {
    const box = $('who'), top = box.scrollTop, at = { ...(box.contains(document.activeElement) ? document.activeElement.dataset : {}) };
    box.textContent = '';
    let all = 0;
    for (const w of perProcess) all += w;
    const button = (cls, fill, text, value, pressed, pick) => {
      const b = add(box, 'button', null, { class: cls, 'aria-pressed': pressed, title: text });
      add(b, 'i').style.background = fill; add(b, 'span', text); add(b, 'b', percent(value, all));
      b.addEventListener('click', pick);
      return b;
    };
    button('', 'none', 'All processes', all, state.process < 0, () => pick(-1, -1)).dataset.process = -1;
    const order = ranking.filter(p => whole[p] > 0 || p === state.process).sort((a, b) => perProcess[b] - perProcess[a] || rank[a] - rank[b]);
    for (const p of order) {
      button('', processColour(p), data.processes[p][0], perProcess[p], state.process === p && state.thread < 0, () => pick(p, -1)).dataset.process = p;
      if (state.process !== p) continue;
      const mine = data.threads.map((_, i) => i).filter(t => data.threads[t][1] === p && (perThread[t] > 0 || t === state.thread)).sort((a, b) => perThread[b] - perThread[a] || a - b);
      for (const t of mine) button('thread', 'none', data.threads[t][0], perThread[t], state.thread === t, () => pick(p, t)).dataset.thread = t;
    }
    box.scrollTop = top;
    keepFocus(box, at);
  }
  // What is drawn anew keeps the focus of the keyboard: that of the button which says the same.
  function keepFocus(box, data) {
    const same = Object.keys(data).length && [...box.querySelectorAll('button')].find(b => Object.entries(data).every(([k, v]) => b.dataset[k] === v));
    if (same) same.focus({ preventScroll: true });
  }
  function pick(process, thread) {
    state.process = process; state.thread = thread; state.zoom = root(); state.focus = state.zoom; state.open = new Set([root()]);
    update();
  }

  // ---- flame graph ---------------------------------------------------------------------------------------------
  const ROW = 20, stacks = $('stacks'), scroll = $('scroll'), sheet = $('sheet');
  let cells = [];
  function layout(width) {
    cells = [];
    const path = [];
    for (let at = state.zoom; ; at = parent[at]) { path.unshift(at); if (at === root()) break; }
    path.forEach((node, depth) => cells.push({ node, depth, x: 0, w: width, dim: node !== state.zoom }));
    const scale = total[state.zoom] > 0 ? width / total[state.zoom] : 0, open = [[state.zoom, path.length, 0]];
    let deepest = path.length;
    while (open.length) {
      const [node, depth, x] = open.pop();
      let at = x;
      for (const child of [...children(node)].sort((a, b) => names[nameOf[a]] < names[nameOf[b]] ? -1 : names[nameOf[a]] > names[nameOf[b]] ? 1 : a - b)) {
        const w = total[child] * scale;
        if (w >= 0.5) { cells.push({ node: child, depth, x: at, w, dim: false }); open.push([child, depth + 1, at]); deepest = Math.max(deepest, depth + 1); }
        at += w;
      }
    }
    return deepest;
  }
  // The canvas is what is seen of it and no more: browsers have none that is as high as the deepest stacks.
  function paint() {
    const height = Math.ceil(Math.min(parseFloat(sheet.style.height), scroll.clientHeight || 1)), up = scroll.scrollTop, [g] = canvas(stacks, height);
    const ink = '#1c2330', edge = css('--edge'), character = 6.63, own = css('--ink');
    g.font = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'; g.textBaseline = 'middle';
    for (const c of cells) {
      const name = nameOf[c.node], hit = match(name), plain = styles[name] < FIRST_CODE, y = c.depth * ROW - up;
      if (y <= -ROW || y >= height) continue;
      g.globalAlpha = c.dim ? 0.55 : state.search && !hit ? 0.6 : 1;
      g.fillStyle = hit ? css('--hit') : colour(name);
      g.fillRect(c.x, y, Math.max(0.6, c.w - (c.w > 3 ? 1 : 0)), ROW - 1);
      const room = Math.floor((c.w - 8) / character);
      if (room >= 3) {
        const text = names[name];
        g.fillStyle = hit ? '#fff' : plain ? own : ink;
        g.fillText(text.length > room ? text.slice(0, room - 1) + '…' : text, c.x + 4, y + ROW / 2);
      }
      if (c.node === state.focus && document.activeElement === stacks) { g.globalAlpha = 1; g.strokeStyle = css('--accent'); g.lineWidth = 2; g.strokeRect(c.x + 1, y + 1, Math.max(2, c.w - 3), ROW - 3); }
    }
    g.globalAlpha = 1;
    if (sum === 0) { g.fillStyle = css('--soft'); g.fillText(`No ${what} here`, 8, ROW * 1.5); }
  }
  scroll.addEventListener('scroll', () => { showTip(''); paint(); });
  function drawFlame() {
    for (let width = -1; width !== scroll.clientWidth;) { // a scroll bar that comes makes it narrower
      const before = width;
      width = scroll.clientWidth;
      sheet.style.height = layout(width) * ROW + 2 + 'px';
      if (before >= 0) break;
    }
    paint();
    const crumbs = $('crumbs');
    crumbs.textContent = '';
    if (state.zoom !== root()) for (let at = state.zoom, last = true; ; at = parent[at], last = false) {
      const b = document.createElement('button'); b.textContent = names[nameOf[at]]; b.title = names[nameOf[at]]; b.disabled = last;
      b.addEventListener('click', () => { zoomTo(at); stacks.focus({ preventScroll: true }); });
      crumbs.prepend(b);
      if (at === root()) break;
    }
    const legend = $('legend'), used = new Set(cells.map(c => styles[nameOf[c.node]]));
    legend.textContent = '';
    for (const k of Object.keys(HUES)) if (used.has(+k)) { const s = add(legend, 'span'); add(s, 'i').style.background = `hsl(${HUES[k][0]} ${HUES[k][1]}% ${HUES[k][2]}%)`; s.append(HUES[k][3]); }
  }
  const about = node => `${names[nameOf[node]]}\n${estimated.has(nameOf[node]) ? '(nearest public symbol) ' : ''}${amount(total[node])} ${unit}, ${percent(total[node], sum)}` +
    (state.zoom !== root() ? `, ${percent(total[node], total[state.zoom])} of what is zoomed` : '') + (self[node] > 0 && self[node] < total[node] ? `\nitself ${amount(self[node])}` : '');
  const cellAt = e => cells.find(c => e.offsetX >= c.x && e.offsetX < c.x + Math.max(1, c.w) && Math.floor((e.offsetY + scroll.scrollTop) / ROW) === c.depth);
  function zoomTo(node) { state.zoom = node; state.focus = node; drawFlame(); tell(); remember(); }
  function reveal() { // the frame that the keyboard is at
    const c = cells.find(x => x.node === state.focus);
    if (c) scroll.scrollTop = Math.min(c.depth * ROW, Math.max(scroll.scrollTop, (c.depth + 1) * ROW + 2 - scroll.clientHeight));
  }
  function tell() { $('frame').textContent = state.focus === root() && state.zoom === root() ? '' : about(state.focus).replace(/\n/g, ' · '); }
  stacks.addEventListener('click', e => { const c = cellAt(e); if (c) zoomTo(c.node); });
  stacks.addEventListener('mousemove', e => { const c = cellAt(e); showTip(c ? about(c.node) : '', e); });
  stacks.addEventListener('mouseleave', () => showTip(''));
  stacks.addEventListener('focus', drawFlame); stacks.addEventListener('blur', drawFlame);
  stacks.addEventListener('keydown', e => {
    const c = cells.find(x => x.node === state.focus) || cells[0];
    if (!c) return;
    const below = cells.filter(x => parent[x.node] === c.node && x.depth === c.depth + 1), row = cells.filter(x => x.depth === c.depth).sort((a, b) => a.x - b.x), at = row.indexOf(c);
    let to = null;
    if (e.key === 'ArrowDown') to = below.sort((a, b) => b.w - a.w)[0];
    else if (e.key === 'ArrowUp') to = cells.find(x => x.node === parent[c.node] && c.node !== root());
    else if (e.key === 'ArrowLeft') to = row[at - 1];
    else if (e.key === 'ArrowRight') to = row[at + 1];
    else if (e.key === 'Enter') { zoomTo(c.node); return reveal(); }
    else if (e.key === 'Backspace') { if (state.zoom !== root()) { zoomTo(parent[state.zoom]); reveal(); } return; }
    else return;
    e.preventDefault();
    if (!to) return;
    state.focus = to.node;
    reveal(); paint(); tell();
  });

  // ---- tables --------------------------------------------------------------------------------------------------
  function drawTop() {
    const box = $('top'), at = { ...(box.contains(document.activeElement) ? document.activeElement.dataset : {}) };
    box.textContent = '';
    const bar = add(box, 'p');
    for (const by of ['function', 'module']) { const b = add(bar, 'button', 'By ' + by, { 'aria-pressed': state.by === by }); b.dataset.by = by; b.addEventListener('click', () => { state.by = by; drawTop(); }); bar.append(' '); }
    const all = rows(state.by), list = all.filter(r => state.search === '' || r.name.toLowerCase().includes(state.search));
    list.sort((a, b) => b[state.sort] - a[state.sort] || b.total - a.total || (a.name < b.name ? -1 : 1));
    const body = table(box, [['', 1], ['', 1], ['', 1], ['', 1], [state.by === 'module' ? 'Module' : 'Function']]), heads = box.querySelectorAll('th');
    [['self', 'Self'], ['self', '%'], ['total', 'Total'], ['total', '%']].forEach(([key, text], i) => {
      const b = add(heads[i], 'button', text);
      b.dataset.head = i;
      if (state.sort === key) heads[i].setAttribute('aria-sort', 'descending');
      b.addEventListener('click', () => { state.sort = key; drawTop(); });
    });
    for (const row of list.slice(0, 500)) {
      const tr = add(body, 'tr');
      for (const k of ['self', 'total']) { add(tr, 'td', amount(row[k]), { class: 'n' }); const td = add(tr, 'td', percent(row[k], sum) + error(row[k], sum), { class: 'n' }); add(td, 'span', null, { class: 'meter' }).style.width = (sum ? 100 * row[k] / sum : 0) + '%'; }
      add(tr, 'td', row.name, { class: 'name' });
    }
    if (list.length > 500) add(box, 'p', `${group(list.length - 500)} more with less; search to see them`, { class: 'soft' });
    if (list.length === 0) add(box, 'p', 'Nothing here', { class: 'soft' });
    keepFocus(box, at);
  }
  function drawTree() {
    const box = $('tree');
    box.textContent = '';
    const body = table(box, [['Total', 1], ['%', 1], ['Self', 1], ['Call']]);
    let shown = 0;
    const open = [[root(), 0]];
    while (open.length && shown < 3000) {
      const [node, depth] = open.pop(), tr = add(body, 'tr', null, match(nameOf[node]) ? { class: 'hit' } : {});
      ++shown;
      add(tr, 'td', amount(total[node]), { class: 'n' }); add(tr, 'td', percent(total[node], sum), { class: 'n' }); add(tr, 'td', self[node] ? amount(self[node]) : '', { class: 'n' });
      const td = add(tr, 'td', null, { class: 'name' }), kids = [...children(node)].filter(c => total[c] > 0), isOpen = state.open.has(node);
      td.style.paddingLeft = 8 + Math.min(depth, 60) * 14 + 'px';
      const b = add(td, 'button', kids.length ? (isOpen ? '▾' : '▸') : '', { 'aria-expanded': isOpen, 'aria-label': (isOpen ? 'Close ' : 'Open ') + names[nameOf[node]] });
      b.disabled = kids.length === 0; b.dataset.node = node;
      b.addEventListener('click', () => {
        if (isOpen) state.open.delete(node);
        else for (let at = node; ;) { // opens on while there is no choice
          state.open.add(at);
          const next = [...children(at)].filter(c => total[c] > 0);
          if (next.length !== 1) break;
          at = next[0];
        }
        drawTree();
        const again2 = box.querySelector(`[data-node="${node}"]`); if (again2) again2.focus();
      });
      td.append(names[nameOf[node]]);
      if (isOpen) kids.sort((a, c) => total[a] - total[c] || c - a).forEach(c => open.push([c, depth + 1]));
    }
    if (open.length) add(box, 'p', 'More rows than are shown: close some branches', { class: 'soft' });
  }
  function drawQuality() {
    const box = $('quality');
    box.textContent = '';
    for (const text of meta.notes) add(box, 'p', text, { class: 'note' });
    add(box, 'h2', 'Lost while recording');
    add(box, 'p', `${group(meta.eventsLost)} events, ${group(meta.buffersLost)} buffers`);
    add(box, 'h2', 'Frames without a function, in what is selected');
    const inner = new Map(), any = new Map(), seenBy = new Map();
    for (let i = 1; i < nodeCount; ++i) {
      if (total[i] === 0) continue;
      const why = whyOf[nameOf[i]];
      if (why === 0) continue;
      inner.set(why, (inner.get(why) || 0) + self[i]);
      let above = false;
      for (let at = parent[i]; at !== 0 && !above; at = parent[at]) above = whyOf[nameOf[at]] === why;
      if (!above) any.set(why, (any.get(why) || 0) + total[i]);
    }
    let body = table(box, [['Innermost frame', 1], ['%', 1], ['Anywhere in the stack', 1], ['%', 1], ['Why']]);
    for (const why of [...any.keys()].sort((a, b) => inner.get(b) - inner.get(a) || a - b)) {
      const tr = add(body, 'tr');
      for (const v of [inner.get(why), any.get(why)]) { add(tr, 'td', amount(v), { class: 'n' }); add(tr, 'td', percent(v, sum), { class: 'n' }); }
      add(tr, 'td', data.reasons[why]);
    }
    if (any.size === 0) add(body.parentNode.parentNode, 'p', 'None');
    const list = state.process < 0 ? data.accounting.total : data.accounting.processes[state.process];
    add(box, 'h2', What + ' of ' + (state.process < 0 ? 'all processes' : data.processes[state.process][0]) + ', over all the trace' + (state.process < 0 && data.accounting.idle ? `, with ${group(data.accounting.idle)} of the Idle process, which are not shown elsewhere` : ''));
    body = table(box, [[What, 1], ['%', 1], ['Stack']]);
    list.classes.forEach((n, i) => { const tr = add(body, 'tr'); add(tr, 'td', group(n), { class: 'n' }); add(tr, 'td', percent(n, list.samples), { class: 'n' }); add(tr, 'td', data.classes[i]); });
    add(box, 'h2', 'Stack fragments in the trace');
    body = table(box, [['Fragments', 1], ['%', 1], ['Claimed by']]);
    const frag = (n, text) => { const tr = add(body, 'tr'); add(tr, 'td', group(n), { class: 'n' }); add(tr, 'td', percent(n, list.fragments), { class: 'n' }); add(tr, 'td', text); };
    frag(list.claimed, { samples: 'a sample', events: 'an event that counts', switches: 'a switch' }[what]); frag(list.other, 'another event');
    if (state.process < 0) data.accounting.other.forEach(o => frag(o[1], '– ' + o[0]));
    frag(list.orphaned, 'nothing: orphaned');
    add(box, 'h2', `Modules, by ${unit === 'µs' ? 'time' : unit} in what is selected`);
    body = table(box, [['Self', 1], ['%', 1], ['Module'], ['Symbols'], ['GUID and age']]);
    for (const r of rows('build').filter(x => x.module >= 0).sort((a, b) => b.self - a.self || b.total - a.total).slice(0, 200)) {
      const m = data.modules[r.module], tr = add(body, 'tr');
      add(tr, 'td', amount(r.self), { class: 'n' }); add(tr, 'td', percent(r.self, sum), { class: 'n' }); add(tr, 'td', m.name, { title: m.path });
      add(tr, 'td', m.why + (m.detail ? ': ' + m.detail : '')); add(tr, 'td', m.id || '–', { class: 'name' });
    }
  }

  // ---- all of it -----------------------------------------------------------------------------------------------
  const draw = { flame: drawFlame, top: drawTop, tree: drawTree, quality: drawQuality };
  function show(tab) {
    state.tab = tab;
    for (const b of document.querySelectorAll('[role=tab]')) { const on = b.dataset.tab === tab; b.setAttribute('aria-selected', on); b.tabIndex = on ? 0 : -1; $(b.dataset.tab).hidden = !on; if (on) $('panel').setAttribute('aria-labelledby', b.id); }
    draw[tab]();
    remember();
  }
  function update() {
    compute();
    if (total[state.zoom] === 0) state.zoom = root();
    if (total[state.focus] === 0) state.focus = state.zoom;
    drawTime(); fields(); drawWho(); search(); draw[state.tab](); tell();
    const out = $('selected');
    out.dataset.value = sum;
    out.textContent = `${amount(sum)} ${unit}` + (meta.kind === 'cpu' && meta.interval > 0 ? ` ≈ ${(sum * meta.interval / 1e9).toPrecision(3)} s of processor time` : '');
    remember();
  }
  function search() {
    const out = $('found');
    if (state.search === '') { out.textContent = ''; delete out.dataset.value; return; }
    const found = foundWeight();
    out.dataset.value = found; out.textContent = `${amount(found)}, ${percent(found, sum)}`;
  }
  $('search').addEventListener('input', () => { state.search = $('search').value.trim().toLowerCase(); matches.clear(); search(); draw[state.tab](); remember(); });
  for (const b of document.querySelectorAll('[role=tab]')) b.addEventListener('click', () => show(b.dataset.tab));
  $('tabs').addEventListener('keydown', e => {
    const all = [...document.querySelectorAll('[role=tab]')], at = all.findIndex(b => b.dataset.tab === state.tab);
    const to = e.key === 'ArrowRight' ? all[(at + 1) % all.length] : e.key === 'ArrowLeft' ? all[(at + all.length - 1) % all.length] : null;
    if (to) { show(to.dataset.tab); to.focus(); }
  });
  document.addEventListener('keydown', e => {
    const field = document.activeElement.tagName === 'INPUT' ? document.activeElement : null;
    if (e.key === '/' && !field) { $('search').focus(); e.preventDefault(); }
    else if (e.key !== 'Escape') return;
    else if (!field) { state.from = 0; state.to = end; pick(alone, -1); }
    else if (field === $('search')) { field.value = ''; field.dispatchEvent(new Event('input')); }
    else fields();
  });

  // ---- the view in the address, for links and for Back and Forward ---------------------------------------------
  function address() {
    const view = new URLSearchParams();
    if (state.process !== alone) view.set('process', state.process);
    if (state.thread >= 0) view.set('thread', state.thread);
    if (state.from > 0) view.set('from', state.from);
    if (state.to < end) view.set('to', state.to);
    if (state.zoom !== root()) view.set('zoom', state.zoom);
    if (state.tab !== 'flame') view.set('tab', state.tab);
    if (state.search !== '') view.set('search', state.search);
    return view.toString();
  }
  const shownAddress = () => location.hash.slice(1);
  let remembering = 0;
  // What is typed, or moved step by step, is one view, not one a step.
  function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(() => {
      const now = address();
      if (now === shownAddress()) return;
      try { history.pushState(null, '', '#' + now); } catch { /* where a page has no address of its own */ }
    }, 300);
  }
  function restore() {
    clearTimeout(remembering);
    const view = new URLSearchParams(shownAddress());
    const number = (key, least, most, otherwise) => {
      const value = view.has(key) ? Number(view.get(key)) : NaN;
      return value >= least && value <= most ? value : otherwise;
    };
    const index = (key, count, otherwise) => Math.trunc(number(key, -1, count - 1, otherwise));
    state.process = index('process', data.processes.length, alone);
    state.thread = index('thread', data.threads.length, -1);
    if (state.thread >= 0) state.process = data.threads[state.thread][1];
    state.from = number('from', 0, end, 0); state.to = number('to', state.from, end, end);
    state.zoom = Math.max(0, index('zoom', nodeCount, root()));
    if (state.process >= 0 && processOf[state.zoom] !== state.process) state.zoom = root();
    state.focus = state.zoom; state.open = new Set([root()]);
    state.search = (view.get('search') || '').toLowerCase(); $('search').value = state.search; matches.clear();
    update();
    show(Object.hasOwn(draw, view.get('tab')) ? view.get('tab') : 'flame');
    clearTimeout(remembering);
  }
  addEventListener('popstate', restore); // and where a link within the page leads

  $('title').textContent = meta.title; $('subtitle').textContent = meta.subtitle;
  const warnings = [];
  if (meta.eventsLost || meta.buffersLost) warnings.push(`${group(meta.eventsLost)} events and ${group(meta.buffersLost)} buffers were lost while recording: what is missing here is not known.`);
  warnings.push(...meta.notes);
  $('warnings').textContent = warnings.join(' ');
  const alone = ranking.filter(p => whole[p] > 0).length === 1 ? ranking[0] : -1; // of one process there is no more to go back to
  let timer = 0;
  addEventListener('resize', () => { clearTimeout(timer); timer = setTimeout(() => { drawTime(); if (state.tab === 'flame') drawFlame(); }, 80); });
  dark.addEventListener('change', () => { colours.clear(); update(); });
  restore();
  // For tests and the curious: the numbers behind what is shown.
  window.profile = { state, select, pick, zoomTo, rows: by => rows(by || 'function'), sum: () => sum, zoomed: () => total[state.zoom], cells: () => cells.map(c => ({ name: names[nameOf[c.node]], node: c.node, x: c.x, w: c.w, depth: c.depth, total: total[c.node] })) };
})();
