// The list of topics, and topics by a label or over time.

const list = { by: "share", down: true };

const ORDERS = {
  name: (a, b) => a.name.localeCompare(b.name),
  share: (a, b) => a.share - b.share,
  coherence: (a, b) => (a.coherence ?? -2) - (b.coherence ?? -2),
};

function drawList() {
  const most = topics[0].share || 1;
  const rows = [...topics].sort((a, b) => (list.down ? -1 : 1) * ORDERS[list.by](a, b));
  const head = (key, text, kind) =>
    h(
      "th",
      {
        scope: "col",
        class: kind,
        "aria-sort": list.by === key ? (list.down ? "descending" : "ascending") : "none",
      },
      h(
        "button",
        {
          type: "button",
          class: "sort",
          onclick: () => {
            list.down = list.by === key ? !list.down : key !== "name";
            list.by = key;
            drawList();
            document.querySelector(`#view-list th.${kind} .sort`).focus();
          },
        },
        text,
        h("span", { "aria-hidden": "true" }, list.by === key ? (list.down ? " ↓" : " ↑") : ""),
      ),
    );
  byId("view-list").replaceChildren(
    h(
      "table",
      { class: "topics" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head("name", "Topic", "first"),
          h("th", { scope: "col", class: "terms" }, "Words"),
          head("share", "Share", "share"),
          head("coherence", "Coherence", "coherence"),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((topic) =>
          h(
            "tr",
            { "data-topic": topic.id },
            h("th", { scope: "row", class: "first" }, topicLink(topic), h("small", {}, topic.number)),
            h("td", { class: "terms" }, listWords(topic)),
            h(
              "td",
              { class: "share" },
              bar(topic.share / most, { colour: colour(topic) }),
              h("span", {}, percent(topic.share)),
            ),
            h("td", { class: "coherence" }, topic.coherence === null ? "" : signed(topic.coherence)),
          ),
        ),
      ),
    ),
  );
  paintList();
}

const signed = (value) => value.toFixed(2).replace("-", "−");
const listWords = (topic) =>
  topWords(topic, state.lambda, 8)
    .map((place) => WORDS[topic.word[place]])
    .join(", ");

function paintList() {
  const chosen = topicOf[state.topic];
  for (const row of document.querySelectorAll("#view-list tbody tr")) {
    row.classList.toggle("chosen", topicOf[row.dataset.topic] === chosen);
  }
}

// After the slider has moved: only the words change.
function listRelevance() {
  if (byId("view-list").hidden) return;
  for (const row of document.querySelectorAll("#view-list tbody tr")) {
    const [cell, words] = [row.cells[1], listWords(topicOf[row.dataset.topic])];
    if (cell.textContent !== words) cell.textContent = words;
  }
}

const groups = { order: "share", same: false };

function variation(topic) {
  const values = sharesBy(topic).filter((value) => value !== null);
  const mean = values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length || 1));
}

const byTitle = () => (BY.kind === "date" ? `${BY.unit} of ${BY.column}` : BY.column);

function drawBy() {
  if (!BY) return;
  const rows = groups.order === "share" ? topics : [...topics].sort((a, b) => variation(b) - variation(a));
  const all = rows.map(sharesBy);
  const most = Math.max(...all.flat().map((value) => value || 0), 1e-9);
  const choose = h(
    "select",
    {
      id: "order",
      onchange: (event) => {
        groups.order = event.target.value;
        drawBy();
        byId("order").focus();
      },
    },
    h("option", { value: "share", selected: groups.order === "share" }, "largest first"),
    h("option", { value: "variation", selected: groups.order !== "share" }, "most changing first"),
  );
  const same = h("input", {
    type: "checkbox",
    checked: groups.same,
    id: "same",
    onchange: (event) => {
      groups.same = event.target.checked;
      drawBy();
      byId("same").focus();
    },
  });
  byId("view-by").replaceChildren(
    h(
      "div",
      { class: "controls" },
      h("h2", {}, "Topics by " + byTitle()),
      h("label", {}, "Order ", choose),
      h("label", {}, same, " same scale"),
    ),
    h("p", { class: "hint" }, "The number is the largest share of the topic."),
    h(
      "div",
      { class: "multiples" },
      rows.map((topic, i) => {
        const largest = Math.max(...all[i].map((value) => value || 0));
        return h(
          "button",
          {
            type: "button",
            class: "multiple",
            "data-topic": topic.id,
            onclick: () => go({ topic: topic.id }),
          },
          h("span", { class: "name" }, h("span", {}, topic.name), h("small", {}, percent(largest))),
          chart(all[i], {
            width: 160,
            height: 46,
            labels: BY.labels,
            kind: BY.kind,
            colour: colour(topic),
            most: groups.same ? most : largest,
            label: `${topic.name} by ${byTitle()}, at most ${percent(largest)}`,
          }),
          h(
            "span",
            { class: "ends" },
            h("span", {}, shortLabel(BY.labels[0])),
            BY.labels.length > 1 && h("span", {}, shortLabel(BY.labels[BY.labels.length - 1])),
          ),
        );
      }),
    ),
    h(
      "div",
      {
        class: BY.labels.length > 12 ? "wide many" : "wide",
        tabindex: 0,
        role: "region",
        "aria-label": "Table of shares by " + byTitle(),
      },
      byTable(rows, all),
    ),
  );
}

const shortLabel = (label) => (label.length > 10 ? label.slice(0, 9) + "…" : label);

function byTable(rows, all) {
  const most = Math.max(...all.flat().map((value) => value || 0), 1e-9);
  return h(
    "table",
    { class: "heat" },
    h("caption", {}, "Share of each topic in the words of a group"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Topic"),
        BY.labels.map((label) => h("th", { scope: "col" }, label)),
      ),
      h(
        "tr",
        {},
        h("th", { scope: "row" }, "documents"),
        BY.documents.map((number) => h("td", {}, whole(number))),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((topic, i) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            h(
              "button",
              { type: "button", class: "link", onclick: () => go({ topic: topic.id }) },
              topic.name,
            ),
          ),
          all[i].map((value) =>
            h(
              "td",
              {
                style: {
                  "--heat": Math.round(70 * Math.sqrt((value || 0) / most)) + "%",
                  "--c": colour(topic),
                },
              },
              value === null ? "" : (100 * value).toFixed(1),
            ),
          ),
        ),
      ),
    ),
  );
}
