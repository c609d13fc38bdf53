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

  // Stretches `target` to the full width; frames above it keep to it, frames it stands on fill the width, dimmed.
  function zoom(frames, target) {
    var root = frames[0], up = frames.length > 1 && frames[1].y < root.y, tiny = 0.02;
    frames.forEach(function (frame) {
      var below = up ? frame.y > target.y : frame.y < target.y, x = frame.x, width = frame.width, shown = true;
      if (target !== root) {
        if (below) {
          shown = frame.x <= target.x + tiny && frame.x + frame.width >= target.x + target.width - tiny;
          x = LEFT; width = WIDTH;
        } else {
          shown = frame.x >= target.x - tiny && frame.x + frame.width <= target.x + target.width + tiny;
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

  flames.forEach(function (frames) {
    frames.forEach(function (frame) {
      frame.g.addEventListener('click', function () { zoom(frames, frame); });
      frame.g.addEventListener('mouseenter', function () { details.textContent = frame.name + ': ' + frame.about; });
      frame.g.addEventListener('mouseleave', function () { details.textContent = resting; });
    });
  });

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
