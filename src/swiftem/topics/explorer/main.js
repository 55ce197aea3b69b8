// What is shown, the address of it, keys, and the theme.

const state = { topic: 0, word: null, document: null, lambda: DATA.lambda, view: "map" };
const narrow = () => matchMedia("(max-width: 60rem)").matches;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function go(to, far = false) {
  const address =
    to.word !== undefined
      ? "#word=" + encodeURIComponent(WORDS[to.word])
      : to.document !== undefined
        ? "#document=" + to.document
        : "#topic=" + to.topic;
  if (location.hash !== address) history.pushState(null, "", address);
  show(to);
  if (narrow() || far)
    byId("detail").scrollIntoView({
      behavior: still() ? "auto" : "smooth",
      block: narrow() ? "start" : "nearest",
    });
}

function show({ topic, word = null, document: shown = null }) {
  if (topic !== undefined && topicOf[topic]) state.topic = topicOf[topic].id;
  [state.word, state.document] = [word, shown];
  drawDetail();
  paintMap();
  paintList();
  const what =
    word !== null
      ? "Word " + WORDS[word]
      : shown !== null
        ? "Document " + DOCUMENTS.names[shown]
        : "Topic " + topicOf[state.topic].name;
  say(what);
}

function fromAddress() {
  const [kind, value] = location.hash.slice(1).split("=");
  if (kind === "word") {
    let v;
    try {
      v = WORD_NUMBER.get(decodeURIComponent(value));
    } catch (error) {
      v = undefined;
    }
    if (v !== undefined) return show({ word: v });
  }
  if (kind === "document" && DOCUMENTS.names[Number(value)] !== undefined && /^\d+$/.test(value))
    return show({ document: Number(value) });
  return show({ topic: kind === "topic" && topicOf[Number(value)] ? Number(value) : firstTopic().id });
}

const firstTopic = () => topics.find((topic) => !topic.background) || topics[0];

// After names or groups have changed.
function refresh() {
  if (!topicOf[state.topic]) state.topic = firstTopic().id;
  drawMap();
  if (!byId("view-list").hidden) drawList();
  if (!byId("view-by").hidden) drawBy();
  show({ topic: state.topic });
}

function say(sentence) {
  byId("status").textContent = sentence;
}

let fading = 0;

function toast(sentence) {
  const box = byId("toast");
  box.textContent = sentence;
  box.hidden = false;
  say(sentence);
  clearTimeout(fading);
  fading = setTimeout(() => {
    box.hidden = true;
  }, 7000);
}

const VIEWS = { map: drawMap, list: drawList, by: drawBy };

function view(name) {
  state.view = name;
  for (const key of Object.keys(VIEWS)) {
    byId("view-" + key).hidden = key !== name;
    byId("tab-" + key).setAttribute("aria-selected", key === name);
    byId("tab-" + key).tabIndex = key === name ? 0 : -1;
  }
  document.querySelector(".overview").dataset.view = name;
  VIEWS[name]();
}

function tabKey(event) {
  const tabs = [...document.querySelectorAll("[role=tab]:not([hidden])")];
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  view(next.id.slice(4));
  next.focus();
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea"))
    return;
  const place = topics.indexOf(topicOf[state.topic]);
  const step = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1 }[event.key];
  if (event.key === "/") byId("find").focus();
  else if (event.key === "Escape") go({ topic: state.topic });
  else if (event.key === "r" && byId("rename")) startRename(topicOf[state.topic]);
  else if (step) go({ topic: topics[(place + step + topics.length) % topics.length].id });
  else return;
  event.preventDefault();
}

const THEMES = { "": ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = THEMES[name][0];
  byId("theme").setAttribute("aria-label", "Theme: " + THEMES[name][1]);
  byId("theme").title = "Theme: " + THEMES[name][1];
  try {
    localStorage.setItem("swiftem-theme", name);
  } catch (error) {
    /* a browser without storage */
  }
}

function begin() {
  restoreChanges();
  makeTopics();
  byId("explorer").hidden = false;
  if (BY) {
    byId("tab-by").hidden = false;
    byId("tab-by").textContent = "By " + byTitle();
  }
  let kept = "";
  try {
    kept = localStorage.getItem("swiftem-theme") || "";
  } catch (error) {
    /* a browser without storage */
  }
  theme(kept in THEMES ? kept : "");
  view("map");
  fromAddress();
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => view(tab.id.slice(4)));
    tab.addEventListener("keydown", tabKey);
  }
  byId("find").addEventListener("input", drawFound);
  byId("find").addEventListener("focus", () => {
    if (byId("find").value) drawFound();
  });
  byId("find").addEventListener("blur", () => showFound(false));
  byId("find").addEventListener("keydown", searchKey);
  byId("export").addEventListener("click", exportNames);
  byId("load").addEventListener("change", (event) => {
    const file = event.target.files[0];
    if (file) file.text().then(loadNames);
    event.target.value = "";
  });
  byId("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    theme(names[(names.indexOf(document.documentElement.dataset.theme || "") + 1) % names.length]);
  });
  addEventListener("hashchange", fromAddress);
  addEventListener("popstate", fromAddress);
  addEventListener("keydown", keys);
  addEventListener("beforeprint", () => {
    drawList();
    drawBy();
  });
  new ResizeObserver(() => {
    if (!byId("view-map").hidden && document.querySelector(".map").clientWidth !== map.width) drawMap();
  }).observe(document.querySelector(".map"));
}

begin();
