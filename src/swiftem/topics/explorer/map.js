// The map: circles with labels as far as there is room, lines to the neighbours of the chosen topic.

// On a narrow screen it is turned by a quarter, so that it is higher than wide.

const map = { width: 0, scale: 1, turned: false, nodes: new Map(), lines: null };
const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, size, weight = 500) {
  ruler.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

function drawMap() {
  const box = document.querySelector(".map");
  const width = box.clientWidth;
  map.width = width;
  map.lines = null;
  map.nodes.clear();
  if (!width) return; // it is drawn when it is shown
  map.turned = width < 560;
  map.scale = map.turned ? width / DATA.height : width;
  const height = map.turned ? map.scale : map.scale * DATA.height;
  map.lines = s("g", { class: "links", "aria-hidden": "true" });
  const nodes = s("g", {});
  const labels = s("g", { class: "labels", "aria-hidden": "true" });
  for (const topic of [...topics].sort((a, b) => b.r - a.r)) {
    const [cx, cy, r] = circle(topic);
    const node = s("circle", {
      cx,
      cy,
      r,
      class: topic.background ? "node background" : "node",
      role: "button",
      tabindex: -1,
      "aria-label": `${topic.number}: ${topic.name}, ${percent(topic.share)} of all words`,
      style: { "--c": colour(topic) },
      onclick: () => go({ topic: topic.id }),
      onkeydown: (event) => mapKey(event, topic),
      onpointerenter: (event) => {
        if (event.pointerType !== "touch") hover(topic);
      },
      onpointerleave: () => hover(null),
      onfocus: () => hover(topic),
      onblur: () => hover(null),
    });
    map.nodes.set(topic, node);
    nodes.append(node);
  }
  byId("about-background").hidden = !topics.some((topic) => topic.background);
  placeLabels(labels, width);
  const svg = s(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Map of topics. Arrow keys move between topics, Enter shows one.",
    },
    map.lines,
    nodes,
    labels,
  );
  box.replaceChildren(svg);
  paintMap();
}

function circle(topic) {
  const [x, y] = map.turned ? [topic.y, topic.x] : [topic.x, topic.y];
  return [x * map.scale, y * map.scale, Math.max(4, topic.r * map.scale)];
}

// The largest topics first: as many words as fit into the circle, else one word if no label is there, else the number.
function placeLabels(group, width) {
  const taken = [];
  const free = (box) =>
    taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
  const write = (lines, x, y, size, kind) => {
    const high = size * 1.14;
    lines.forEach((line, i) => {
      group.append(
        s(
          "text",
          {
            x,
            y: y + (i - (lines.length - 1) / 2) * high + size * 0.34,
            class: kind,
            style: { "font-size": size + "px" },
          },
          line,
        ),
      );
    });
  };
  const without = [];
  for (const topic of topics) {
    const [x, y, r] = circle(topic);
    const words = topic.given ? topic.given.split(/\s+/) : topic.words.slice(0, 3);
    let done = false;
    for (let n = Math.min(3, words.length); n >= 1 && !done; n--) {
      for (const size of [Math.min(15, Math.max(11, r / 3.2)), 10.5]) {
        const lines = topic.given ? wrapped(words, n) : words.slice(0, n);
        const fits = lines.every((line, i) => {
          const off = Math.abs((i - (n - 1) / 2) * size * 1.14) + size * 0.4;
          return off < r && textWidth(line, size) <= 2 * Math.sqrt(r * r - off * off) * 0.98;
        });
        if (!fits) continue;
        const wide = Math.max(...lines.map((line) => textWidth(line, size))) / 2;
        taken.push([x - wide, y - (n * size) / 2, x + wide, y + (n * size) / 2]);
        write(lines, x, y, size, "inside");
        done = true;
        break;
      }
    }
    if (!done) without.push(topic);
  }
  for (const topic of without) {
    const [x, y, r] = circle(topic);
    const placed = (topic.given ? [topic.given] : topic.words.slice(0, 3)).some((word) => {
      const half = textWidth(word, 10.5) / 2 + 1;
      const at = Math.min(width - half - 1, Math.max(half + 1, x));
      const box = [at - half, y - 6, at + half, y + 6];
      if (half > 1.5 * r + 16 || !free(box)) return false;
      taken.push(box);
      write([word], at, y, 10.5, "over");
      return true;
    });
    if (!placed && r >= 7 && free([x - 6, y - 5, x + 6, y + 5])) write([String(topic.id)], x, y, 9, "small");
  }
}

// The words of a name in n lines of similar length.
function wrapped(words, n) {
  const lines = [""];
  const goal = words.join(" ").length / n;
  for (const word of words) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length / 2 > goal && lines.length < n) lines.push(word);
    else lines[lines.length - 1] = last ? last + " " + word : word;
  }
  return lines;
}

function paintMap() {
  if (!map.lines) return;
  const chosen = topicOf[state.topic];
  const found =
    state.word === null ? null : new Map(wordTopics(state.word).map((row) => [row.topic, row.share]));
  const ofDocument =
    state.document === null
      ? null
      : new Map(documentTopics(state.document).map((row) => [row.topic, row.share]));
  const shade = found || ofDocument;
  const most = shade ? Math.max(1e-9, ...shade.values()) : 1;
  for (const [topic, node] of map.nodes) {
    const selected = !shade && topic === chosen;
    node.classList.toggle("chosen", selected);
    node.setAttribute("tabindex", topic === chosen || (!chosen && topic === topics[0]) ? 0 : -1);
    node.setAttribute("aria-pressed", selected);
    if (shade) node.style.setProperty("--use", Math.round(4 + 52 * ((shade.get(topic) || 0) / most)) + "%");
    else node.style.removeProperty("--use");
  }
  link(shade ? null : chosen);
}

function link(topic) {
  map.lines.replaceChildren();
  if (!topic) return;
  for (const { topic: other, similarity } of topic.near.slice(0, 4)) {
    if (similarity < 0.05) continue;
    const [a, b] = [map.nodes.get(topic), map.nodes.get(other)];
    map.lines.append(
      s("line", {
        x1: a.getAttribute("cx"),
        y1: a.getAttribute("cy"),
        x2: b.getAttribute("cx"),
        y2: b.getAttribute("cy"),
        style: { "stroke-width": 1 + 5 * similarity },
      }),
    );
  }
}

function hover(topic) {
  const tip = byId("tip");
  tip.hidden = !map.nodes.has(topic);
  if (map.lines) paintHover(topic);
  if (tip.hidden) return;
  const node = map.nodes.get(topic).getBoundingClientRect();
  tip.replaceChildren(
    h("b", {}, topic.name),
    h("span", {}, `${topic.number} · ${percent(topic.share)} of all words`),
    h("span", {}, topic.words.slice(0, 8).join(", ")),
  );
  const wide = tip.offsetWidth;
  const left = Math.min(innerWidth - wide - 8, Math.max(8, node.left + node.width / 2 - wide / 2));
  const above = node.top - tip.offsetHeight - 8;
  tip.style.left = left + scrollX + "px";
  tip.style.top = (above > 4 ? above : node.bottom + 8) + scrollY + "px";
}

function paintHover(topic) {
  for (const [other, node] of map.nodes) node.classList.toggle("hovered", other === topic);
  link(topic || (state.word === null && state.document === null ? topicOf[state.topic] : null));
}

// The nearest topic in the direction of an arrow key.
function mapKey(event, topic) {
  const turn = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    go({ topic: topic.id });
    map.nodes.get(topicOf[topic.id])?.focus();
  } else if (turn) {
    event.preventDefault();
    event.stopPropagation();
    let [best, least] = [null, Infinity];
    for (const other of topics) {
      const [dx, dy] = [0, 1].map((i) => circle(other)[i] - circle(topic)[i]);
      const along = dx * turn[0] + dy * turn[1];
      const across = Math.abs(dx * turn[1]) + Math.abs(dy * turn[0]);
      if (along <= 1e-6 || across > 2 * along) continue;
      if (along + 2 * across < least) [best, least] = [other, along + 2 * across];
    }
    if (best) map.nodes.get(best).focus();
  }
}
