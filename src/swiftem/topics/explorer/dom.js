// Elements, numbers and charts. Texts of the corpus only ever become text nodes: nothing in them can run.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function fill(element, options, parts) {
  for (const [name, value] of Object.entries(options || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...parts.flat().filter((part) => part !== null && part !== undefined && part !== false));
  return element;
}

const h = (tag, options, ...parts) => fill(document.createElement(tag), options, parts);
const s = (tag, options, ...parts) => fill(document.createElementNS(SVG, tag), options, parts);

function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
}

const whole = (number) => Math.round(number).toLocaleString("en-GB");
const counted = (number, thing) => whole(number) + " " + thing + (Math.round(number) === 1 ? "" : "s");
const colour = (topic) => "var(--c" + topic.colour + ")";

function topicLink(topic) {
  const dot = h("i", { class: "dot", style: { "--c": colour(topic) } });
  return h(
    "button",
    { type: "button", class: "link", onclick: () => go({ topic: topic.id }) },
    dot,
    topic.name,
  );
}

function bar(share, options = {}) {
  const width = Math.max(0, Math.min(100, 100 * share)).toFixed(1) + "%";
  const style = { width, opacity: options.shade, "--c": options.colour };
  for (const name of Object.keys(style)) if (style[name] === undefined) delete style[name];
  return h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "bar", style }));
}

const TOKEN = /[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*/gu;

// The words of a text as [start, end, word number]; phrases of two words are one if the vocabulary has them.
function tokens(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const [start, word] = [match.index, match[0].normalize("NFC").toLowerCase()];
    const before = found[found.length - 1];
    const phrase = before && WORD_NUMBER.get(before.plain + " " + word);
    if (phrase !== undefined && /^\s*-?\s*$/.test(text.slice(before.end, start))) {
      Object.assign(before, { end: start + match[0].length, number: phrase, plain: "" });
      continue;
    }
    const plain = withoutApostrophe(word);
    found.push({ start, end: start + match[0].length, number: WORD_NUMBER.get(plain), plain });
  }
  return found;
}

// "farmer's" is farmer, "l'eau" is eau, "don't" is no word.
function withoutApostrophe(word) {
  const parts = word.split(/['’]/);
  const last = parts[parts.length - 1];
  if (parts.length === 1 || WORD_NUMBER.has(parts.join("'"))) return parts.join("'");
  if (last === "s") return parts[0];
  return ["ll", "re", "ve", "d", "m", "t"].includes(last) ? "" : last;
}

// A text with words marked: mark(number) is the mark's options, or null.
function marked(text, mark) {
  const parts = [];
  let place = 0;
  for (const { start, end, number } of tokens(text)) {
    const options = number === undefined ? null : mark(number);
    if (!options) continue;
    parts.push(text.slice(place, start), h("mark", options, text.slice(start, end)));
    place = end;
  }
  parts.push(text.slice(place));
  return parts;
}

// An area over time, or bars of labels. Values are shares or null.
function chart(values, options) {
  const { width, height, labels, kind, colour: stroke, axis } = options;
  const most = options.most || Math.max(1e-9, ...values.map((value) => value || 0));
  const [left, bottom] = axis ? [44, 20] : [0, 1];
  const x = (g) => left + ((g + 0.5) / values.length) * (width - left);
  const y = (value) => height - bottom - (value / most) * (height - bottom - (axis ? 8 : 3));
  const parts = [];
  if (axis) {
    for (const tick of [0, most / 2, most]) {
      parts.push(s("line", { x1: left, x2: width, y1: y(tick), y2: y(tick), class: "grid" }));
      parts.push(s("text", { x: left - 6, y: y(tick) + 4, class: "tick end" }, percent(tick)));
    }
    const every = Math.ceil(
      values.length / Math.max(1, Math.floor((width - left) / (kind === "date" ? 74 : 60))),
    );
    labels.forEach((label, g) => {
      if (g % every) return;
      const short = label.length > 11 ? label.slice(0, 10) + "…" : label;
      parts.push(s("text", { x: x(g), y: height - 5, class: "tick middle" }, short));
    });
  } else {
    parts.push(s("line", { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: "grid" }));
  }
  const paint = { "--c": stroke };
  if (kind === "date" && values.length > 1) {
    let run = [];
    const close = () => {
      if (!run.length) return;
      const line = run.map(([a, b]) => a.toFixed(1) + "," + b.toFixed(1)).join(" L");
      const [first, last] = [run[0][0].toFixed(1), run[run.length - 1][0].toFixed(1)];
      parts.push(
        s("path", { d: `M${first},${y(0)} L${line} L${last},${y(0)} Z`, class: "area", style: paint }),
      );
      parts.push(s("path", { d: "M" + line, class: "line", style: paint }));
      if (run.length === 1)
        parts.push(s("circle", { cx: first, cy: run[0][1], r: 2, class: "dot", style: paint }));
      run = [];
    };
    values.forEach((value, g) => (value === null ? close() : run.push([x(g), y(value)])));
    close();
  } else {
    const wide = Math.min(46, ((width - left) / values.length) * 0.72);
    values.forEach((value, g) => {
      if (value === null) return;
      const box = {
        x: x(g) - wide / 2,
        y: y(value),
        width: wide,
        height: Math.max(0, y(0) - y(value)),
        rx: 1.5,
      };
      parts.push(
        s(
          "rect",
          { ...box, class: "column", style: paint },
          s("title", {}, labels[g] + ": " + percent(value)),
        ),
      );
    });
  }
  return s(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      class: "chart",
      role: "img",
      "aria-label": options.label,
      preserveAspectRatio: axis ? null : "none",
    },
    parts,
  );
}
