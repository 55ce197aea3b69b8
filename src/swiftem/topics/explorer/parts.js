// The right side: a word or a document.

// Each word of a document in the colour of the topic that it most likely belongs to.
function documentMark(rows) {
  return (v) => {
    const ps = rows.map(({ topic, share }) => share * probability(topic, v));
    const total = ps.reduce((sum, p) => sum + p, 0);
    const best = ps.indexOf(Math.max(...ps));
    if (!(total > 0) || ps[best] < 0.5 * total) return null;
    return { style: { "--c": colour(rows[best].topic) }, title: rows[best].topic.name };
  };
}

function wordParts(v) {
  const rows = wordTopics(v);
  const documents = [...FOUND.subarray(4 * v, 4 * v + 4)].filter((d) => d !== 0xffffffff);
  const most = rows.length ? rows[0].share : 1;
  return [
    h(
      "div",
      { class: "heading" },
      h("p", { class: "kind" }, "word"),
      close(),
      h("div", { class: "named" }, h("h2", {}, WORDS[v])),
      h(
        "p",
        { class: "about-topic" },
        `used ${counted(COUNTS[v], "time")}, ${percent(MARGINAL[v])} of all words`,
      ),
    ),
    h(
      "section",
      {},
      h("h3", {}, "Where it is used"),
      h(
        "table",
        { class: "words" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "topic"),
            h("th", { "aria-hidden": "true", class: "bars" }),
            h("th", { scope: "col", class: "number" }, "of its uses"),
            h("th", { scope: "col", class: "number" }, "share of topic"),
          ),
        ),
        h(
          "tbody",
          {},
          rows
            .filter(({ share }) => share >= 0.005)
            .slice(0, 15)
            .map(({ topic, share, p }) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, topicLink(topic)),
                h("td", { class: "bars" }, bar(share / most, { colour: colour(topic) })),
                h("td", { class: "number" }, percent(share)),
                h("td", { class: "number" }, percent(p)),
              ),
            ),
        ),
      ),
    ),
    documents.length > 0 &&
      h(
        "section",
        {},
        h("h3", {}, "Documents that use it often"),
        h(
          "ol",
          { class: "documents" },
          documents.map((d) => documentItem(d, counted(DOCUMENTS.lengths[d], "word"), (w) => w === v && {})),
        ),
      ),
  ].filter(Boolean);
}

function documentParts(d) {
  const rows = documentTopics(d);
  const about = [counted(DOCUMENTS.lengths[d], "word")];
  if (BY && BY.group[d] !== 0xffff) about.push(`${BY.column}: ${BY.labels[BY.group[d]]}`);
  return [
    h(
      "div",
      { class: "heading" },
      h("p", { class: "kind" }, "document"),
      close(),
      h("div", { class: "named" }, h("h2", {}, DOCUMENTS.names[d])),
      h("p", { class: "about-topic" }, about.join(" · ")),
    ),
    h(
      "section",
      {},
      h("h3", {}, "Its topics"),
      mixture(rows),
      h(
        "table",
        { class: "words" },
        h(
          "tbody",
          {},
          rows.map(({ topic, share }) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, topicLink(topic)),
              h("td", { class: "bars" }, bar(share, { colour: colour(topic) })),
              h("td", { class: "number" }, percent(share)),
            ),
          ),
        ),
      ),
    ),
    DOCUMENTS.texts[d] &&
      h(
        "section",
        {},
        h("h3", {}, "Text"),
        h("p", { class: "text" }, marked(DOCUMENTS.texts[d], documentMark(rows))),
        h(
          "p",
          { class: "hint" },
          "Words are in the colour of the topic that they most likely belong to here.",
        ),
      ),
  ].filter(Boolean);
}

function close() {
  return h(
    "button",
    {
      type: "button",
      class: "icon close",
      "aria-label": "Back to the topic",
      title: "Back to the topic (Esc)",
      onclick: () => go({ topic: state.topic }),
    },
    "×",
  );
}
