// The data of the page, and what is computed from it. Topics may be merged: each has members, from 0 to K - 1.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);

function unpack(text, Kind) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Kind(bytes.buffer);
}

const WORDS = DATA.words;
const MARGINAL = unpack(DATA.marginal, Float32Array);
const LOG_MARGINAL = MARGINAL.map(Math.log);
const COUNTS = unpack(DATA.counts, Uint32Array);
const FOUND = unpack(DATA.found, Uint32Array);
const WORD_NUMBER = new Map(WORDS.map((word, number) => [word, number]));
const SIMILARITY = unpack(DATA.similarity, Uint8Array);
const ENTRIES = {
  start: unpack(DATA.entries.start, Uint32Array),
  word: unpack(DATA.entries.word, WORDS.length > 65535 ? Uint32Array : Uint16Array),
  log: Float32Array.from(unpack(DATA.entries.p, Uint16Array), (value) => 12 * (value / 65535 - 1)),
};
const DOCUMENTS = {
  names: DATA.documents.names,
  texts: DATA.documents.texts,
  each: DATA.documents.each,
  lengths: unpack(DATA.documents.lengths, Uint32Array),
  topics: unpack(DATA.documents.topics, Uint16Array),
  shares: unpack(DATA.documents.shares, Uint16Array),
};
const BY = DATA.by && {
  ...DATA.by,
  tokens: unpack(DATA.by.tokens, Float32Array),
  group: unpack(DATA.by.group, Uint16Array),
};
const K = DATA.topics.length;

// What a user has changed: a name for each topic by its first member, and groups of more than one topic.
const changes = { names: {}, groups: [] };
let topics = [];
let topicOf = []; // the topic of each member

function restoreChanges() {
  try {
    const kept = JSON.parse(localStorage.getItem("swiftem-" + DATA.key) || "{}");
    if (kept.names && Array.isArray(kept.groups)) Object.assign(changes, kept);
  } catch (error) {
    /* a browser without storage */
  }
  const seen = new Set(changes.groups.flat());
  const right = [...seen].every((k) => Number.isInteger(k) && k >= 0 && k < K);
  if (!right || seen.size !== changes.groups.flat().length) changes.groups = [];
}

function keepChanges() {
  try {
    localStorage.setItem("swiftem-" + DATA.key, JSON.stringify(changes));
  } catch (error) {
    /* a browser without storage */
  }
}

function makeTopics() {
  const merged = new Set(changes.groups.flat());
  const groups = changes.groups.map((group) => [...group].sort((a, b) => a - b));
  for (let k = 0; k < K; k++) if (!merged.has(k)) groups.push([k]);
  topics = groups.map(makeTopic).sort((a, b) => b.share - a.share);
  topicOf = [];
  for (const topic of topics) for (const k of topic.members) topicOf[k] = topic;
  for (const topic of topics) topic.near = neighbours(topic);
  if (groups.length < K) moveApart();
}

// A merged topic is larger than the place of its largest member: circles that it overlaps make room.
function moveApart() {
  const within = (value, r, most) => Math.min(most - r - 0.006, Math.max(r + 0.006, value));
  for (let round = 0; round < 200; round++) {
    let moved = false;
    topics.forEach((a, i) => {
      for (const b of topics.slice(i + 1)) {
        const [dx, dy] = [b.x - a.x, b.y - a.y];
        const apart = Math.max(1e-6, Math.hypot(dx, dy));
        const overlap = a.r + b.r + 0.006 - apart;
        if (overlap <= 1e-4) continue;
        const [ux, uy] = [(0.5 * overlap * dx) / apart, (0.5 * overlap * dy) / apart];
        [a.x, a.y] = [within(a.x - ux, a.r, 1), within(a.y - uy, a.r, DATA.height)];
        [b.x, b.y] = [within(b.x + ux, b.r, 1), within(b.y + uy, b.r, DATA.height)];
        moved = true;
      }
    });
    if (!moved) break;
  }
}

function makeTopic(members) {
  const parts = members.map((k) => DATA.topics[k]);
  const share = parts.reduce((sum, part) => sum + part.share, 0);
  const largest = parts.reduce((best, part) => (part.share > best.share ? part : best));
  const topic = {
    id: members[0],
    members,
    background: parts.some((part) => part.background),
    share,
    colour: largest.colour,
    coherence: members.length === 1 ? parts[0].coherence : null,
    x: largest.x,
    y: largest.y,
    r: Math.min(0.14, Math.hypot(...parts.map((part) => part.r))),
    ...(members.length === 1 ? entriesOf(members[0]) : mergedEntries(members, share)),
  };
  topic.words = topWords(topic, DATA.lambda, 12).map((place) => WORDS[topic.word[place]]);
  topic.given = changes.names[topic.id] ?? (members.length === 1 ? parts[0].name : "");
  topic.name = topic.given || topic.words.slice(0, 3).join(", ");
  topic.number = members.length === 1 ? "topic " + members[0] : "topics " + members.join(" + ");
  if (topic.background) topic.number += ", background";
  return topic;
}

function entriesOf(k) {
  const [from, to] = [ENTRIES.start[k], ENTRIES.start[k + 1]];
  return { word: ENTRIES.word.subarray(from, to), log: ENTRIES.log.subarray(from, to) };
}

function mergedEntries(members, share) {
  const sum = new Float64Array(WORDS.length);
  for (const k of members) {
    const { word, log } = entriesOf(k);
    const weight = DATA.topics[k].share / (share || 1);
    for (let i = 0; i < word.length; i++) sum[word[i]] += weight * Math.exp(log[i]);
  }
  const there = [];
  sum.forEach((value, v) => {
    if (value > 0) there.push(v);
  });
  return { word: Uint32Array.from(there), log: Float32Array.from(there, (v) => Math.log(sum[v])) };
}

// The n most relevant words of a topic, as places in topic.word: log p - (1 - lambda) log p of the corpus.
function topWords(topic, lambda, n) {
  const { word, log } = topic;
  const best = [];
  const value = [];
  for (let i = 0; i < word.length; i++) {
    const relevance = log[i] - (1 - lambda) * LOG_MARGINAL[word[i]];
    if (best.length === n && !(relevance > value[n - 1])) continue;
    let place = best.length < n ? best.length : n - 1;
    while (place > 0 && value[place - 1] < relevance) {
      value[place] = value[place - 1];
      best[place] = best[place - 1];
      place--;
    }
    value[place] = relevance;
    best[place] = i;
  }
  return best;
}

// Probability of a word in a topic; 0 if it is too small to be in the page.
function probability(topic, v) {
  const { word, log } = topic;
  let [low, high] = [0, word.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (word[middle] === v) return Math.exp(log[middle]);
    if (word[middle] < v) low = middle + 1;
    else high = middle - 1;
  }
  return 0;
}

// The topic's share of all uses of a word.
function uses(topic, v, p = probability(topic, v)) {
  return Math.min(1, (topic.share * p) / MARGINAL[v]);
}

function wordTopics(v) {
  const found = topics.map((topic) => ({ topic, p: probability(topic, v) })).filter(({ p }) => p > 0);
  for (const row of found) row.share = uses(row.topic, v, row.p);
  return found.sort((a, b) => b.share - a.share);
}

function neighbours(topic) {
  const found = topics
    .filter((other) => other !== topic)
    .map((other) => {
      let sum = 0;
      for (const a of topic.members) {
        for (const b of other.members)
          sum += DATA.topics[a].share * DATA.topics[b].share * SIMILARITY[a * K + b];
      }
      return { topic: other, similarity: sum / (255 * topic.share * other.share || 1) };
    });
  // Every topic is near to the background: it is the last.
  return found.sort(
    (a, b) => a.topic.background - b.topic.background || b.similarity - a.similarity,
  );
}

// The topics of a document, the largest first.
function documentTopics(d) {
  const shares = new Map();
  for (let i = 0; i < DOCUMENTS.each; i++) {
    const share = DOCUMENTS.shares[d * DOCUMENTS.each + i] / 65535;
    const topic = topicOf[DOCUMENTS.topics[d * DOCUMENTS.each + i]];
    shares.set(topic, (shares.get(topic) || 0) + share);
  }
  return [...shares]
    .map(([topic, share]) => ({ topic, share }))
    .filter(({ share }) => share >= 0.005)
    .sort((a, b) => b.share - a.share);
}

function typicalDocuments(topic) {
  const found = [...new Set(topic.members.flatMap((k) => DATA.topics[k].documents))].map((d) => {
    const mine = documentTopics(d).find((row) => row.topic === topic);
    return { d, share: mine ? mine.share : 0 };
  });
  return topic.members.length === 1 ? found : found.sort((a, b) => b.share - a.share).slice(0, 8);
}

// Shares of a topic in the groups of documents; null for a group without words.
function sharesBy(topic) {
  const totals =
    BY.totals ||
    (BY.totals = BY.labels.map((_, g) => {
      let sum = 0;
      for (let k = 0; k < K; k++) sum += BY.tokens[g * K + k];
      return sum;
    }));
  return totals.map((total, g) => {
    if (!(total > 0)) return null;
    return topic.members.reduce((sum, k) => sum + BY.tokens[g * K + k], 0) / total;
  });
}
