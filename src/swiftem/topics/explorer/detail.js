// The right side: a topic.

const SHOWN_WORDS = 20;

function drawDetail() {
  const box = byId("detail");
  const before = box.contains(document.activeElement) ? document.activeElement : null;
  if (state.word !== null) box.replaceChildren(...wordParts(state.word));
  else if (state.document !== null) box.replaceChildren(...documentParts(state.document));
  else box.replaceChildren(...topicParts(topicOf[state.topic]));
  if (!before) return;
  // Keys go on where they were: at the same button, or at the beginning.
  const label = before.getAttribute("aria-label");
  const same = label && box.querySelector(`[aria-label="${CSS.escape(label)}"]`);
  (same || box).focus({ preventScroll: true });
}

function topicParts(topic) {
  const place = topics.indexOf(topic);
  const step = (by) => topics[(place + by + topics.length) % topics.length].id;
  const about = [percent(topic.share) + " of all words"];
  if (topic.coherence !== null) about.push("coherence " + signed(topic.coherence));
  const documents = typicalDocuments(topic);
  return [
    h(
      "div",
      { class: "heading" },
      h("p", { class: "kind" }, topic.number),
      h(
        "div",
        { class: "steps" },
        h(
          "button",
          {
            type: "button",
            class: "icon up",
            onclick: () => document.querySelector(".overview").scrollIntoView(),
          },
          "↑ all",
        ),
        h(
          "button",
          {
            type: "button",
            class: "icon",
            "aria-label": "Previous topic",
            title: "Previous (←)",
            onclick: () => go({ topic: step(-1) }),
          },
          "←",
        ),
        h("span", {}, `${place + 1} of ${topics.length}`),
        h(
          "button",
          {
            type: "button",
            class: "icon",
            "aria-label": "Next topic",
            title: "Next (→)",
            onclick: () => go({ topic: step(1) }),
          },
          "→",
        ),
      ),
      h(
        "div",
        { class: "named" },
        h("i", { class: "dot", style: { "--c": colour(topic) } }),
        h("h2", { id: "topic-name" }, topic.name),
        h(
          "button",
          {
            type: "button",
            class: "icon",
            id: "rename",
            "aria-label": "Rename " + topic.name,
            title: "Rename (r)",
            onclick: () => startRename(topic),
          },
          "✎",
        ),
      ),
      h(
        "p",
        { class: "about-topic" },
        about.join(" · "),
        topic.members.length > 1 && [
          " · ",
          h(
            "button",
            { type: "button", class: "link", id: "split", onclick: () => split(topic) },
            "split again",
          ),
        ],
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "words-title" },
      h("div", { class: "row" }, h("h3", { id: "words-title" }, "Words"), slider()),
      h("table", { class: "words" }, wordHead(), h("tbody", { id: "words" }, wordRows(topic))),
    ),
    BY && h("section", {}, h("h3", {}, "By " + byTitle()), wideChart(topic)),
    h(
      "section",
      {},
      h("h3", {}, "Typical documents"),
      h(
        "ol",
        { class: "documents" },
        documents.map(({ d, share }) => documentItem(d, percent(share) + " this topic", topicMark(topic))),
      ),
    ),
    topics.length > 1 &&
      h(
        "section",
        {},
        h("h3", {}, "Neighbours"),
        h(
          "ul",
          { class: "near" },
          topic.near.slice(0, 6).map((row) => nearItem(topic, row)),
        ),
        mergeForm(topic),
      ),
  ].filter(Boolean);
}

function wordHead() {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { scope: "col" }, "word"),
      h("th", { "aria-hidden": "true", class: "bars" }),
      h("th", { scope: "col", class: "number" }, "share of topic"),
      h("th", { scope: "col", class: "number" }, "its uses here"),
    ),
  );
}

function wordRows(topic) {
  const places = topWords(topic, state.lambda, SHOWN_WORDS);
  const ps = places.map((place) => Math.exp(topic.log[place]));
  const most = Math.max(...ps);
  return places.map((place, i) => {
    const [v, p] = [topic.word[place], ps[i]];
    const here = uses(topic, v, p);
    return h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h("button", { type: "button", class: "link", onclick: () => go({ word: v }) }, WORDS[v]),
      ),
      h(
        "td",
        { class: "bars" },
        bar(p / most, { shade: (0.25 + 0.75 * here).toFixed(2), colour: colour(topic) }),
      ),
      h("td", { class: "number" }, percent(p)),
      h("td", { class: "number" }, percent(here)),
    );
  });
}

function slider() {
  const value = h("output", { for: "lambda", id: "lambda-value" }, "λ " + state.lambda.toFixed(2));
  return h(
    "div",
    { class: "slider" },
    h("span", { "aria-hidden": "true" }, "specific"),
    h("input", {
      type: "range",
      id: "lambda",
      min: 0,
      max: 1,
      step: 0.01,
      value: state.lambda,
      "aria-label": "Relevance: 0 orders words by how specific they are, 1 by how frequent",
      oninput: (event) => {
        relevance(Number(event.target.value));
        value.textContent = "λ " + state.lambda.toFixed(2);
      },
    }),
    h("span", { "aria-hidden": "true" }, "frequent"),
    value,
  );
}

function relevance(lambda) {
  state.lambda = lambda;
  byId("words")?.replaceChildren(...wordRows(topicOf[state.topic]));
  listRelevance();
}

function topicMark(topic) {
  topic.marks =
    topic.marks ||
    new Set(
      topWords(topic, DATA.lambda, 120)
        .map((place) => topic.word[place])
        .filter((v) => uses(topic, v) > 1.2 * topic.share),
    );
  return (v) => topic.marks.has(v) && { style: { "--c": colour(topic) } };
}

function documentItem(d, note, mark) {
  const rows = documentTopics(d);
  return h(
    "li",
    {},
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "link", onclick: () => go({ document: d }) }, DOCUMENTS.names[d]),
      h("small", {}, note),
    ),
    mixture(rows),
    DOCUMENTS.texts[d] && h("p", {}, marked(DOCUMENTS.texts[d], mark)),
  );
}

function mixture(rows) {
  const words = rows.map(({ topic, share }) => `${percent(share)} ${topic.name}`).join("; ");
  return h(
    "div",
    { class: "mixture", role: "img", "aria-label": words, title: words },
    rows.map(({ topic, share }) =>
      h("span", { style: { "--c": colour(topic), width: (100 * share).toFixed(1) + "%" } }),
    ),
  );
}

function nearItem(topic, { topic: other, similarity }) {
  const mine = new Set(topWords(topic, DATA.lambda, 60).map((place) => topic.word[place]));
  const both = topWords(other, DATA.lambda, 60)
    .map((place) => other.word[place])
    .filter((v) => mine.has(v))
    .slice(0, 4);
  return h(
    "li",
    {},
    topicLink(other),
    bar(similarity, { colour: colour(other) }),
    h("span", { class: "number" }, percent(similarity)),
    both.length > 0 && h("small", {}, "both: " + both.map((v) => WORDS[v]).join(", ")),
  );
}

function wideChart(topic) {
  const width = Math.max(260, byId("detail").clientWidth - 2);
  return chart(sharesBy(topic), {
    width,
    height: 150,
    labels: BY.labels,
    kind: BY.kind,
    colour: colour(topic),
    axis: true,
    label: `${topic.name} by ${byTitle()}`,
  });
}
