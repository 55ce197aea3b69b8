// The search for words, documents and topics.

const search = { rows: [], place: -1, names: null, texts: null };

function find(query) {
  const text = query.normalize("NFC").toLowerCase().trim();
  if (!text) return [];
  const rows = [];
  const named = topics.filter((topic) => topic.given && topic.given.toLowerCase().includes(text)).slice(0, 3);
  for (const topic of named)
    rows.push({ kind: "Topics", text: topic.name, note: percent(topic.share), to: { topic: topic.id } });
  const words = [];
  WORDS.forEach((word, v) => {
    const at = word.indexOf(text);
    if (at >= 0) words.push({ v, rank: word === text ? 0 : at === 0 ? 1 : 2 });
  });
  words.sort((a, b) => a.rank - b.rank || COUNTS[b.v] - COUNTS[a.v]);
  for (const { v } of words.slice(0, 7))
    rows.push({ kind: "Words", text: WORDS[v], note: counted(COUNTS[v], "time"), to: { word: v } });
  search.names = search.names || DOCUMENTS.names.map((name) => name.toLowerCase());
  search.texts = search.texts || DOCUMENTS.texts.map((part) => part.toLowerCase());
  const documents = [];
  for (const field of [search.names, search.texts]) {
    for (let d = 0; d < field.length && documents.length < 7; d++) {
      if (field[d].includes(text) && !documents.includes(d)) documents.push(d);
    }
  }
  for (const d of documents) {
    rows.push({ kind: "Documents", text: DOCUMENTS.names[d], note: snippet(d, text), to: { document: d } });
  }
  return rows;
}

function snippet(d, text) {
  const at = search.texts.length ? search.texts[d].indexOf(text) : -1;
  if (at < 0) return (DOCUMENTS.texts[d] || "").slice(0, 60);
  return (at > 20 ? "…" : "") + DOCUMENTS.texts[d].slice(Math.max(0, at - 20), at + 45);
}

function drawFound() {
  const [field, box] = [byId("find"), byId("found")];
  search.rows = find(field.value);
  search.place = search.rows.length ? 0 : -1;
  const parts = [];
  search.rows.forEach((row, i) => {
    if (!i || search.rows[i - 1].kind !== row.kind)
      parts.push(h("li", { class: "kind", role: "presentation" }, row.kind));
    parts.push(
      h(
        "li",
        {
          role: "option",
          id: "found-" + i,
          "aria-selected": i === search.place,
          onpointerdown: (event) => event.preventDefault(),
          onclick: () => choose(i),
        },
        h("span", {}, row.text),
        h("small", {}, row.note),
      ),
    );
  });
  if (!parts.length && field.value.trim())
    parts.push(h("li", { class: "kind", role: "presentation" }, "Nothing found"));
  if (parts.length && DOCUMENTS.names.length < DATA.totals[0]) {
    const some = `${whole(DOCUMENTS.names.length)} of ${whole(DATA.totals[0])} documents are in this page.`;
    parts.push(h("li", { class: "kind", role: "presentation" }, some));
  }
  box.replaceChildren(...parts);
  showFound(parts.length > 0);
  if (search.rows.length) field.setAttribute("aria-activedescendant", "found-" + search.place);
}

function showFound(open) {
  byId("found").hidden = !open;
  byId("find").setAttribute("aria-expanded", open);
  if (!open) byId("find").removeAttribute("aria-activedescendant");
}

function choose(i) {
  if (!search.rows[i]) return;
  showFound(false);
  byId("find").blur();
  go(search.rows[i].to, true);
}

function searchKey(event) {
  event.stopPropagation();
  if (event.key === "Escape") {
    byId("find").value = "";
    showFound(false);
    byId("find").blur();
  } else if (event.key === "Enter") {
    event.preventDefault();
    choose(search.place);
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && search.rows.length) {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    search.place = (search.place + step + search.rows.length) % search.rows.length;
    search.rows.forEach((_, i) => byId("found-" + i).setAttribute("aria-selected", i === search.place));
    byId("find").setAttribute("aria-activedescendant", "found-" + search.place);
    byId("found-" + search.place).scrollIntoView({ block: "nearest" });
  }
}
