// Names and merged topics: changed here, kept by the browser, exported for `swiftem topics --names`.

function startRename(topic) {
  const title = byId("topic-name");
  const field = h("input", {
    type: "text",
    id: "name",
    value: topic.given,
    placeholder: topic.name,
    maxlength: 80,
    "aria-label": "Name of " + topic.number,
  });
  const end = (keep) => {
    if (keep) rename(topic, field.value);
    else refresh();
    byId("rename")?.focus();
  };
  const form = h(
    "form",
    {
      class: "rename",
      onsubmit: (event) => {
        event.preventDefault();
        end(true);
      },
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key === "Escape") end(false);
      },
    },
    field,
    h("button", { type: "submit" }, "Save"),
    h("button", { type: "button", onclick: () => end(false) }, "Cancel"),
  );
  byId("rename").remove();
  title.replaceWith(form);
  field.select();
}

function rename(topic, text) {
  const name = text.trim().replace(/\s+/g, " ");
  if (name) changes.names[topic.id] = name;
  else if (topic.members.length === 1 && DATA.topics[topic.id].name) changes.names[topic.id] = "";
  else delete changes.names[topic.id];
  changed(name ? `${topic.number} is now ${name}.` : `${topic.number} has no name now.`);
}

function mergeForm(topic) {
  const choice = h(
    "select",
    { id: "other", "aria-label": "Topic to merge with " + topic.name },
    topic.near.map(({ topic: other }) => h("option", { value: other.id }, other.name)),
  );
  return h(
    "p",
    { class: "merge" },
    h("label", { for: "other" }, "Merge with "),
    choice,
    h("button", { type: "button", id: "merge", onclick: () => merge(topic, topicOf[choice.value]) }, "Merge"),
  );
}

function merge(topic, other) {
  const members = [...topic.members, ...other.members].sort((a, b) => a - b);
  const name = topic.given || other.given;
  changes.groups = changes.groups.filter((group) => !group.some((k) => members.includes(k)));
  changes.groups.push(members);
  for (const k of members) delete changes.names[k];
  if (name) changes.names[members[0]] = name;
  state.topic = members[0];
  changed(`${topic.name} and ${other.name} are one topic now.`);
}

function split(topic) {
  changes.groups = changes.groups.filter((group) => !group.includes(topic.id));
  delete changes.names[topic.id];
  changed("The topics are apart again.");
}

function changed(sentence) {
  keepChanges();
  makeTopics();
  refresh();
  say(sentence);
}

function namesFile() {
  const words = [];
  for (let k = 0; k < K; k++) {
    const entries = entriesOf(k);
    words.push(topWords(entries, 1, 10).map((place) => WORDS[entries.word[place]]));
  }
  const rows = [...topics]
    .sort((a, b) => a.id - b.id)
    .map((topic) => ({ name: topic.given, merge: topic.members }));
  return JSON.stringify({ swiftem: "topic names", corpus: DATA.title, topics: rows, words }, null, 1);
}

function exportNames() {
  const link = h("a", {
    href: URL.createObjectURL(new Blob([namesFile()], { type: "application/json" })),
    download: "topic-names.json",
  });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  toast(
    "Saved topic-names.json. The same command with --names topic-names.json uses these names and merged topics.",
  );
}

function loadNames(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    found = null;
  }
  const rows = found && found.swiftem === "topic names" && Array.isArray(found.topics) ? found.topics : [];
  const members = rows.flatMap((row) => (row && Array.isArray(row.merge) ? row.merge : [-1]));
  const right =
    members.length === K &&
    new Set(members).size === K &&
    members.every((k) => Number.isInteger(k) && k >= 0 && k < K);
  if (!right) {
    toast(`This file does not have names of ${K} topics.`);
    return;
  }
  changes.names = {};
  changes.groups = [];
  for (const { name, merge: group } of rows) {
    if (group.length > 1) changes.groups.push([...group].sort((a, b) => a - b));
    if (typeof name === "string" && name.trim()) changes.names[Math.min(...group)] = name.trim();
  }
  changed("Names are loaded.");
  toast("Names are loaded.");
}
