// Zoom, search and details for a flame graph in SVG. Without it the picture still reads: titles show on hover.
(function () {
  'use strict';
  var LEFT = 12, WIDTH = 1176, CHARACTER = 6.63;
  var svg = document.documentElement, details = document.getElementById('details'), resting = details.textContent;

  var flames = [].map.call(svg.querySelectorAll('g.flame'), function (group) {
    return [].map.call(group.querySelectorAll('g.f'), function (g) {
      var rect = g.querySelector('rect'), title = g.querySelector('title').textContent, end = title.indexOf('\n');
      return { g: g, rect: rect, name: title.slice(0, end), about: title.slice(end + 1), label: g.querySelector('text'),
               x: +rect.getAttribute('x'), width: +rect.getAttribute('width'), y: +rect.getAttribute('y') };
    });
  });

  function label(frame, x, width) {
    var room = Math.floor((width - 6) / CHARACTER), text = room < 3 ? '' : frame.name;
    if (text !== '' && text.length > room) text = text.slice(0, room - 2) + '..';
    if (!frame.label && text) {
      frame.label = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      frame.label.setAttribute('y', frame.y + 12.5);
      frame.g.appendChild(frame.label);
    }
    if (frame.label) {
      frame.label.setAttribute('x', x + 3);
      frame.label.textContent = text;
    }
  }

  var tiny = 0.02, zoomed = [];
  function covers(outer, inner) {
    return outer.x <= inner.x + tiny && outer.x + outer.width >= inner.x + inner.width - tiny;
  }
  function growsUp(frames) { return frames.length > 1 && frames[1].y < frames[0].y; }

  // Stretches `target` to the full width; frames above it keep to it, frames it stands on fill the width, dimmed.
  function zoom(frames, target) {
    var root = frames[0], up = growsUp(frames);
    zoomed[flames.indexOf(frames)] = target;
    frames.forEach(function (frame) {
      var below = up ? frame.y > target.y : frame.y < target.y, x = frame.x, width = frame.width, shown = true;
      if (target !== root) {
        if (below) {
          shown = covers(frame, target);
          x = LEFT; width = WIDTH;
        } else {
          shown = covers(target, frame);
          x = LEFT + (frame.x - target.x) / target.width * WIDTH;
          width = frame.width / target.width * WIDTH;
        }
      }
      frame.g.style.display = shown ? '' : 'none';
      frame.g.classList.toggle('dim', target !== root && below);
      if (!shown) return;
      frame.rect.setAttribute('x', x.toFixed(2));
      frame.rect.setAttribute('width', width.toFixed(2));
      label(frame, x, width);
    });
  }

  // Of every frame of the first picture, drawn or not, each before what it called: how many levels up from the one
  // before its caller stands, whose name it bears (0: of the next that is drawn, 1: not told, else of a list), its weight.
  var tree = document.getElementById('tree'), names = tree.textContent.split('\n');
  var up = column('up'), nameOf = column('name'), total = column('total');
  function column(name) { // base64 of variable-length integers
    var bytes = atob(tree.getAttribute('data-' + name)), out = [], value = 0, scale = 1;
    for (var i = 0; i < bytes.length; ++i) {
      var byte = bytes.charCodeAt(i);
      value += (byte & 127) * scale; scale *= 128;
      if (byte < 128) { out.push(value); value = 0; scale = 1; }
    }
    return out;
  }

  // What passes through a match, a match inside a match counted once; and what may or may not, as it is not told.
  function matching(frames, matches) {
    var found = 0, open = 0, next = 0, depth = -1, inside = -1, known = {};
    for (var i = 0; i < total.length; ++i) {
      depth += 1 - up[i];
      if (depth <= inside) inside = -1;
      var number = nameOf[i], hit = false;
      if (number === 0) hit = matches(frames[next++]);
      else if (number > 1) hit = number in known ? known[number] : (known[number] = matches({ name: names[number - 2] }));
      if (inside >= 0) continue;
      if (number === 1) open += total[i];
      else if (hit) { found += total[i]; inside = depth; }
    }
    return [found, open];
  }

  function search(text) {
    var wanted = text.toLowerCase(), count = 0;
    function matches(frame) { return wanted !== '' && frame !== flames[0][0] && frame.name.toLowerCase().indexOf(wanted) >= 0; }
    flames.forEach(function (frames) {
      frames.forEach(function (frame) {
        var hit = matches(frame);
        frame.g.classList.toggle('hit', hit);
        if (hit) ++count;
      });
    });
    if (wanted === '') { found.textContent = ''; return; }
    var sums = matching(flames[0], matches), percent = function (weight) { return (total[0] > 0 ? 100 * weight / total[0] : 0).toFixed(2) + ' %'; };
    found.textContent = (sums[1] > 0 ? 'at least ' + percent(sums[0]) + ' (' + percent(sums[1]) + ' not drawn and not known)' : percent(sums[0])) +
      ', ' + count + ' frames drawn';
  }

  function tell(frame) { details.textContent = frame.name + ': ' + frame.about; }

  // The keyboard has one stop for each picture, and walks from frame to frame as they stand.
  function walk(frames) {
    var root = frames[0], picture = root.g.parentNode, up = growsUp(frames), at = root;
    function near(frame, y) { return Math.abs(frame.y - y) < 1; }
    function caller(frame) { // frames are drawn callers first
      for (var i = frames.indexOf(frame) - 1; i >= 0; --i)
        if ((up ? frames[i].y > frame.y : frames[i].y < frame.y) && covers(frames[i], frame)) return frames[i];
      return null;
    }
    function widest(all) { return all.reduce(function (a, b) { return a && a.width >= b.width ? a : b; }, null); }
    function point(frame) {
      at.g.classList.remove('at');
      at = frame;
      at.g.classList.add('at');
      at.g.scrollIntoView({ block: 'nearest' });
      tell(at);
    }
    picture.setAttribute('tabindex', 0);
    picture.setAttribute('role', 'img');
    picture.setAttribute('aria-label', 'Flame graph. Arrow keys move between frames, Enter zooms, Backspace goes back.');
    picture.addEventListener('focus', function () { if (picture.matches(':focus-visible')) point(at); });
    picture.addEventListener('blur', function () { at.g.classList.remove('at'); details.textContent = resting; });
    picture.addEventListener('click', function (event) {
      at.g.classList.remove('at');
      var g = event.target.closest('g.f');
      at = frames.filter(function (frame) { return frame.g === g; })[0] || at;
    });
    picture.addEventListener('keydown', function (event) {
      var shown = frames.filter(function (frame) { return frame.g.style.display !== 'none'; });
      var row = shown.filter(function (frame) { return near(frame, at.y); }).sort(function (a, b) { return a.x - b.x; });
      var to = at, target = zoomed[flames.indexOf(frames)] || root;
      if (event.key === 'ArrowLeft') to = row[row.indexOf(at) - 1];
      else if (event.key === 'ArrowRight') to = row[row.indexOf(at) + 1];
      else if (event.key === (up ? 'ArrowDown' : 'ArrowUp')) to = caller(at);
      else if (event.key === (up ? 'ArrowUp' : 'ArrowDown'))
        to = widest(shown.filter(function (frame) { return frame !== at && caller(frame) === at; }));
      else if (event.key === 'Enter') zoom(frames, at);
      else if (event.key === 'Backspace') zoom(frames, caller(target) || root);
      else return;
      event.preventDefault();
      if (to) point(to);
    });
  }

  flames.forEach(function (frames) {
    frames.forEach(function (frame) {
      frame.g.addEventListener('click', function () { zoom(frames, frame); });
      frame.g.addEventListener('mouseenter', function () { tell(frame); });
      frame.g.addEventListener('mouseleave', function () { details.textContent = resting; });
    });
    if (frames.length) walk(frames);
  });
  details.setAttribute('role', 'status');
  svg.setAttribute('role', 'figure'); // an image has nothing in it that the keyboard reaches

  var xhtml = 'http://www.w3.org/1999/xhtml', holder = document.createElementNS('http://www.w3.org/2000/svg', 'foreignObject');
  holder.setAttribute('x', 548); holder.setAttribute('y', 10);
  holder.setAttribute('width', 640); holder.setAttribute('height', 28);
  var bar = document.createElementNS(xhtml, 'div'), found = document.createElementNS(xhtml, 'span');
  var box = document.createElementNS(xhtml, 'input'), reset = document.createElementNS(xhtml, 'button');
  bar.setAttribute('style', 'display:flex;gap:6px;justify-content:flex-end;align-items:center;font:12px system-ui,sans-serif;color:#5b6577');
  box.setAttribute('placeholder', 'Search ( / )'); box.setAttribute('id', 'search'); box.setAttribute('aria-label', 'Search');
  box.setAttribute('style', 'width:130px;padding:3px 7px;border:1px solid #c3cad6;border-radius:5px;font:inherit');
  reset.textContent = 'Reset'; reset.setAttribute('id', 'reset');
  reset.setAttribute('style', 'padding:3px 9px;border:1px solid #c3cad6;border-radius:5px;background:#fff;font:inherit');
  found.setAttribute('id', 'found');
  [found, box, reset].forEach(function (part) { bar.appendChild(part); });
  holder.appendChild(bar); svg.appendChild(holder);

  function back() {
    box.value = ''; search('');
    flames.forEach(function (frames) { if (frames.length) zoom(frames, frames[0]); });
  }
  box.addEventListener('input', function () { search(box.value); });
  reset.addEventListener('click', back);
  // The root is what one looks at first: below, unless the picture hangs from the top.
  var main = flames[0];
  if (main && main.length > 1 && main[1].y < main[0].y && svg.parentNode === document) scrollTo(0, 1e6);
  document.addEventListener('keydown', function (event) {
    if (event.key === 'Escape') { back(); box.blur(); }
    else if (event.key === '/' && document.activeElement !== box) { box.focus(); event.preventDefault(); }
  });
})();
