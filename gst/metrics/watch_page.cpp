// The page of clwatch: pictures as they come, by WebRTC or MJPEG, and the state of the cameras, which
// it asks for each second.
#include "gst/metrics/watch_site.h"

namespace clinfer {

const char* const kWatchPage = R"HTML(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>clinfer watch</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --text: #1c2330; --soft: #5d6778;
  --line: #dfe3ea; --good: #16794a; --bad: #b3261e; --a: #2563c9; --b: #c2570c; --c: #7b3fb5; --chip: #e9eef8 }
@media (prefers-color-scheme: dark) { :root { --page: #12151b; --card: #1b2029; --text: #e6e9ef;
  --soft: #98a2b3; --line: #2d3440; --good: #4cc38a; --bad: #ff8b82; --a: #7fb0ff; --b: #ffac6b; --c: #cda2ff; --chip: #263248 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif }
header { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: baseline; padding: 12px 16px }
header h1 { font-size: 18px; margin: 0 }
header span { color: var(--soft) }
main { display: grid; gap: 14px; padding: 0 16px 20px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)) }
article { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; min-width: 0 }
.picture { position: relative; background: #000; aspect-ratio: 16/9 }
.picture img, .picture video { width: 100%; height: 100%; object-fit: contain; display: block }
.body { padding: 10px 14px 14px }
.title { display: flex; justify-content: space-between; gap: 10px; align-items: baseline }
.title h2 { font-size: 16px; margin: 0; overflow-wrap: anywhere }
.live { color: var(--good); white-space: nowrap } .dead { color: var(--bad); white-space: nowrap }
.soft { color: var(--soft); font-size: 13px; overflow-wrap: anywhere }
.chips { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0 }
.chips span { background: var(--chip); border-radius: 12px; padding: 2px 10px; font-size: 13px; max-width: 100%; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; margin-top: 8px }
th { text-align: left; font-weight: 500; color: var(--soft) } td, th { padding: 2px 8px 2px 0; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; padding-right: 0; padding-left: 8px }
svg { display: block; width: 100%; height: 74px; margin-top: 8px }
svg text { fill: var(--soft); font-size: 11px }
.key { display: flex; gap: 14px; font-size: 12px; color: var(--soft); flex-wrap: wrap }
.key i { display: inline-block; width: 10px; height: 3px; margin-right: 5px; vertical-align: middle }
ol { list-style: none; margin: 8px 0 0; padding: 0; font-size: 13px; max-height: 132px; overflow: auto }
ol li { padding: 1px 0; font-variant-numeric: tabular-nums }
#away { display: none; background: var(--bad); color: #fff; padding: 8px 16px }
@media (prefers-color-scheme: dark) { #away { color: #000 } }
</style>
</head>
<body>
<div id="away" role="alert">The pipeline does not answer. The page tries again each second.</div>
<header><h1>clinfer watch</h1><span id="sum"></span></header>
<main id="cameras"></main>
<script>
"use strict";
const kept = 60;  // seconds of the plots
const known = new Map();  // by place: what the page has of a camera
const patience = 10000;  // milliseconds that a connection may take
let transport = "WebRTC", reason = "";  // how pictures come, and why by MJPEG
const make = (tag, text, name) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (name) e.className = name; return e };
const ms = value => value === undefined ? "" : value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);
const rate = value => value < 10 ? value.toFixed(1) : value.toFixed(0);

// Returns the element that shows a camera's pictures.
function screen(name) {
  const element = make(transport === "WebRTC" ? "video" : "img");
  element.role = "img";
  element.ariaLabel = "picture of " + name;
  if (transport === "WebRTC") element.autoplay = element.muted = element.playsInline = true;
  return element;
}

function card(camera) {
  const box = { root: make("article"), history: [], rates: {} };
  const picture = make("div", undefined, "picture");
  box.image = screen(camera.name);
  picture.append(box.image);
  const body = make("div", undefined, "body"), title = make("div", undefined, "title");
  box.name = make("h2", camera.name);
  box.status = make("span");
  title.append(box.name, box.status);
  for (const part of ["rates_text", "chips", "plot", "stages", "zones", "events", "model"]) box[part] = make("div");
  box.rates_text.className = box.model.className = "soft";
  box.chips.className = "chips";
  body.append(title, box.rates_text, box.chips, box.plot, box.stages, box.zones, box.events, box.model);
  box.root.append(picture, body);
  document.getElementById("cameras").append(box.root);
  return box;
}

function per_second(box, name, count, now) {
  const list = box.rates[name] ||= [];
  list.push([now, count]);
  while (list.length > 2 && list[0][0] < now - 5000) list.shift();
  const [then, before] = list[0];
  return now > then ? Math.max(0, (count - before) * 1000 / (now - then)) : 0;
}

const svg = (tag, attributes, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  if (text !== undefined) e.textContent = text;
  return e;
};

function plot(box) {
  const lines = [["queue", "p95", "--b"], ["infer", "p50", "--a"], ["infer", "p95", "--c"]];
  const width = box.plot.clientWidth || 400, height = 74, left = 48;
  const values = lines.map(([stage, p]) => box.history.map(h => h?.[stage]?.[p]));
  const top = Math.max(0.1, ...values.flat().filter(v => v !== undefined)) * 1.15;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "latency of the last minute" });
  for (const share of [0, 1]) {
    const y = height - 4 - share * (height - 16);
    root.append(svg("line", { x1: left, x2: width, y1: y, y2: y, stroke: "var(--line)" }), svg("text", { x: 0, y: y + 4 }, ms(share * top) + (share ? " ms" : "")));
  }
  lines.forEach(([, , colour], i) => {
    const points = values[i].map((v, k) => v === undefined ? "" : `${left + (kept - values[i].length + k) * (width - left) / (kept - 1)},${height - 4 - v / top * (height - 16)}`).filter(p => p);
    root.append(svg("polyline", { points: points.join(" "), fill: "none", stroke: `var(${colour})`, "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" }));
  });
  const key = make("div", undefined, "key");
  for (const [stage, p, colour] of lines) {
    const entry = make("span"), mark = make("i");
    mark.style.background = `var(${colour})`;
    entry.append(mark, `${stage} ${p}`);
    key.append(entry);
  }
  box.plot.replaceChildren(root, key);
}

function table(head, rows) {
  const t = make("table"), first = make("tr");
  head.forEach((text, i) => first.append(make("th", text, i ? "n" : "")));
  t.append(first);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((text, i) => line.append(make("td", text, i ? "n" : "")));
    t.append(line);
  }
  return t;
}

function show(box, camera, now) {
  box.name.textContent = camera.name;
  const silent = camera.frames > 0 && camera.age > 3;
  box.status.textContent = camera.problem ? `failed, tries again in ${Math.ceil(camera.retry_seconds)} s` : camera.ended ? "ended" : camera.frames === 0 ? "waits for frames" : silent ? `no frame for ${camera.age.toFixed(0)} s` : "live";
  box.status.className = silent || camera.ended || camera.problem ? "dead" : "live";
  box.status.title = camera.problem;
  const fps = per_second(box, "frames", camera.frames, now);
  const parts = [`${rate(fps)} pictures/s`];
  camera.models.forEach((model, i) => parts.push(`${rate(per_second(box, "inferred" + i, model.inferred || 0, now))} inferred/s` +
    (model.skipped ? `, ${model.skipped} skipped` : "") + (model.dropped ? `, ${model.dropped} dropped` : "")));
  if (camera.width) parts.push(`${camera.width}x${camera.height}`);
  box.rates_text.textContent = parts.join(" · ");
  const chips = Object.entries(camera.objects).map(([label, count]) => make("span", `${count} ${label}`));
  box.chips.replaceChildren(...(chips.length ? chips : [make("span", "nothing found")]));
  box.history.push(camera.models[0]?.stages);
  while (box.history.length > kept) box.history.shift();
  plot(box);
  const stages = Object.entries(camera.models[0]?.stages || {}).map(([name, t]) => [name, ms(t.p50), ms(t.p95), ms(t.p99)]);
  box.stages.replaceChildren(...(stages.length ? [table(["ms", "p50", "p95", "p99"], stages)] : []));
  box.zones.replaceChildren(...(camera.zones.length ? [table(["zone", "in", "out", "inside"], camera.zones.map(z => [z.name, z.in, z.out, z.line ? "" : z.inside]))] : []));
  const events = make("ol");
  for (const e of camera.events)
    events.append(make("li", `${new Date(e.time * 1000).toLocaleTimeString()} ${e.label} #${e.track} ${e.type} ${e.zone} ${e.direction}` +
      (e.seconds === undefined ? "" : ` ${e.seconds.toFixed(1)} s`)));
  box.events.replaceChildren(...(camera.events.length ? [events] : []));
  box.model.textContent = camera.models.map(m => m.model ? [m.model, m.device, m.precision, m.tier === "first" ? "still compiling" : "", m.path].filter(t => t).join(", ") : "loads its model").join(" · ");
}

async function ask() {
  try {
    const state = await (await fetch("/state.json", { signal: AbortSignal.timeout(5000) })).json();
    const now = performance.now();
    document.getElementById("away").style.display = "none";
    const only = window.RTCPeerConnection ? state.cameras.map(camera => camera.only_mjpeg).find(text => text) : "this browser has no WebRTC";
    if (transport === "WebRTC" && only) fall_back(only);
    state.cameras.forEach((camera, i) => {
      if (!known.has(i)) known.set(i, card(camera));
      show(known.get(i), camera, now);
      if (transport === "WebRTC" && !known.get(i).peer) connect(known.get(i), camera.webrtc);
    });
    for (const [i, box] of known) if (i >= state.cameras.length) { leave(box); box.root.remove(); known.delete(i) }
    const live = state.cameras.filter(c => !c.ended && c.frames > 0 && c.age <= 3).length;
    document.getElementById("sum").textContent = `${live} of ${state.cameras.length} live · pictures by ${transport}` + (reason ? ` (${reason})` : "");
  } catch (error) {
    document.getElementById("away").style.display = "block";
    for (const box of known.values()) leave(box);  // the pipeline may be another one when it answers again
  }
  setTimeout(ask, 1000);
}

// Takes a camera's pictures by WebRTC.
async function connect(box, path) {
  const peer = box.peer = new RTCPeerConnection();
  const fail = because => { if (box.peer === peer) fall_back(because) };
  peer.addTransceiver("video", { direction: "recvonly" });
  peer.ontrack = event => box.image.srcObject = new MediaStream([event.track]);
  peer.onconnectionstatechange = () => { if (peer.connectionState === "failed") fail("a connection of WebRTC failed") };
  setTimeout(() => { if (peer.connectionState !== "connected") fail(`no connection of WebRTC within ${patience / 1000} s`) }, patience);
  try {
    await peer.setLocalDescription();
    const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/sdp" }, body: peer.localDescription.sdp });
    const text = await reply.text();
    if (reply.status !== 201) return fail(text.trim());
    if (box.peer !== peer) return void fetch(reply.headers.get("Location"), { method: "DELETE" });
    box.viewer = reply.headers.get("Location");
    await peer.setRemoteDescription({ type: "answer", sdp: text });
  } catch (error) {
    fail(error.message);
  }
}

// Ends a camera's connection, and tells the pipeline, which would go on to encode for it.
function leave(box) {
  if (box.viewer) fetch(box.viewer, { method: "DELETE", keepalive: true }).catch(() => {});
  box.peer?.close();
  box.peer = box.viewer = null;
}

// From now on, all pictures come by MJPEG.
function fall_back(because) {
  transport = "MJPEG";
  reason = because;
  for (const box of known.values()) {
    leave(box);
    const image = screen(box.name.textContent);
    box.image.replaceWith(image);
    box.image = image;
  }
  watch();
}

// Shows the newest picture of a camera when the one before it is on the screen.
function draw(box) {
  if (box.drawing || !box.newest) return;
  const url = URL.createObjectURL(box.newest);
  box.newest = null;
  box.drawing = true;
  box.image.onload = box.image.onerror = () => { URL.revokeObjectURL(url); box.drawing = false; draw(box) };
  box.image.src = url;
}

// Takes whole pictures from the beginning of `bytes`, and returns the rest.
function take(bytes) {
  for (;;) {
    let end = 0;  // of the headers: an empty line
    while (end + 4 <= bytes.length && !(bytes[end] === 13 && bytes[end + 1] === 10 && bytes[end + 2] === 13 && bytes[end + 3] === 10)) ++end;
    if (end + 4 > bytes.length) return bytes;
    const headers = new TextDecoder().decode(bytes.subarray(0, end));
    const from = end + 4, to = from + Number(/Content-Length: (\d+)/.exec(headers)[1]);
    if (to > bytes.length) return bytes;
    const box = known.get(Number(/Content-Location: \/pictures\/(\d+)/.exec(headers)[1]));
    if (box) {
      box.newest = new Blob([bytes.subarray(from, to)], { type: "image/jpeg" });
      draw(box);
    }
    bytes = bytes.slice(to);
  }
}

// The pictures of all cameras come by one connection: browsers open only six to a host, and the page needs one for the state.
async function watch() {
  try {
    const reader = (await fetch("/pictures")).body.getReader();
    let rest = new Uint8Array(0);
    for (let part; !(part = await reader.read()).done;) {
      const bytes = new Uint8Array(rest.length + part.value.length);
      bytes.set(rest);
      bytes.set(part.value, rest.length);
      rest = take(bytes);
    }
  } catch (error) {  // the pipeline has gone, which ask() tells
  }
  setTimeout(watch, 1000);
}
addEventListener("pagehide", () => { for (const box of known.values()) leave(box) });
ask();
</script>
</body>
</html>
)HTML";

}  // namespace clinfer
