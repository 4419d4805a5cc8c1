// Writes pages of HTML with numbers as JSON inside, which a script on the page draws.
#include "engine/tools/output/report.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/base/system/files.h"

namespace clinfer {
namespace {

constexpr std::string_view kHead = R"HTML(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>clinfer</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --text: #1c2330; --soft: #5d6778; --line: #dfe3ea; --a: #2563c9; --b: #b9c3d3; --mark: #c2570c }
@media (prefers-color-scheme: dark) { :root { --page: #12151b; --card: #1b2029; --text: #e6e9ef; --soft: #98a2b3; --line: #2d3440; --a: #7fb0ff; --b: #4a566a; --mark: #ffac6b } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1080px; padding: 16px; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif }
h1 { font-size: 20px; margin: 4px 0 0; overflow-wrap: anywhere } h2 { font-size: 16px; margin: 0 0 10px }
.soft { color: var(--soft); font-size: 13px }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; margin-top: 14px; overflow-x: auto }
.facts { display: grid; gap: 10px 22px; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)) }
.facts b { display: block; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 500; color: var(--soft) }
td, th { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word }
td.n, th.n { text-align: right; white-space: nowrap } td.bar { width: 26%; min-width: 110px; vertical-align: middle }
td.bar i { display: block; height: 7px; background: var(--a); border-radius: 2px; margin: 1px 0; min-width: 1px } td.bar i.b { background: var(--b) }
svg { display: block; width: 100%; height: auto } svg text { fill: var(--soft); font-size: 12px }
button { font: inherit; font-size: 13px; margin-top: 8px; color: var(--a); background: none; border: 1px solid var(--line); border-radius: 6px; padding: 3px 10px }
</style>
</head>
<body>
<script type="application/json" id="data">)HTML";

constexpr std::string_view kTail = R"HTML(</script>
<script>
"use strict";
const { kind, data } = JSON.parse(document.getElementById("data").textContent);
const make = (tag, text, name) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (name) e.className = name; return e };
const number = (v, digits = 3) => v === null || v === undefined || !isFinite(v) ? "" : Math.abs(v) >= 1000 ? v.toFixed(0) : Number(v.toPrecision(digits)).toString();
const section = (title, ...parts) => { const s = make("section"); if (title) s.append(make("h2", title)); s.append(...parts.filter(p => p)); document.body.append(s) };
const svg = (tag, attributes, text) => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const n in attributes) e.setAttribute(n, attributes[n]); if (text !== undefined) e.textContent = text; return e };

function facts(list) {
  const box = make("div", undefined, "facts");
  for (const [name, value] of list) if (value !== "" && value !== undefined && value !== null) {
    const fact = make("div", name, "soft"), strong = make("b", value);
    strong.style.color = "var(--text)";
    fact.prepend(strong);
    box.append(fact);
  }
  return box;
}

// `columns`: names, "#" in front of those of numbers, "=" in front of bars, whose cells are lists
// of shares from 0 to 1.
function table(columns, rows, most = 40) {
  const t = make("table"), head = make("tr");
  for (const c of columns) head.append(make("th", c.replace(/^[#=]/, ""), c[0] === "#" ? "n" : ""));
  t.append(head);
  const add = row => {
    const line = make("tr");
    row.forEach((value, i) => {
      const cell = make("td", columns[i][0] === "=" ? undefined : value, { "#": "n", "=": "bar" }[columns[i][0]]);
      if (columns[i][0] === "=") value.forEach((share, k) => { const bar = make("i", undefined, value.length > 1 && k === 0 ? "b" : ""); bar.style.width = 100 * share + "%"; cell.append(bar) });
      line.append(cell);
    });
    t.append(line);
  };
  rows.slice(0, most).forEach(add);
  const box = make("div");
  box.append(t);
  if (rows.length > most) {
    const more = make("button", `all ${rows.length} rows`);
    more.onclick = () => { rows.slice(most).forEach(add); more.remove() };
    box.append(more);
  }
  return box;
}

function histogram(values, marks) {
  const low = values[0], high = Math.max(values[Math.floor(0.995 * (values.length - 1))], marks.p99) * 1.02, bins = 60, width = Math.min(1000, innerWidth - 66), height = 200, floor = height - 22;
  const counts = Array(bins).fill(0);
  let beyond = 0;
  for (const v of values) { const i = Math.floor((v - low) / (high - low || 1) * bins); if (i < bins) ++counts[Math.max(0, i)]; else ++beyond }
  const top = Math.max(...counts), root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "histogram of latencies" });
  const x = v => (v - low) / (high - low || 1) * width;
  counts.forEach((c, i) => root.append(svg("rect", { x: i * width / bins + 1, width: width / bins - 2, y: floor - c / top * (floor - 24), height: c / top * (floor - 24), fill: "var(--a)" })));
  root.append(svg("line", { x1: 0, x2: width, y1: floor, y2: floor, stroke: "var(--line)" }));
  let taken = -100, level = 0;
  for (const p of ["p50", "p95", "p99"]) {
    const at = Math.min(x(marks[p]), width - 1);
    level = at - taken < 110 ? level + 1 : 0;
    taken = at;
    root.append(svg("line", { x1: at, x2: at, y1: 14, y2: floor, stroke: "var(--mark)", "stroke-dasharray": "4 3" }),
      svg("text", { x: at > width - 110 ? at - 4 : at + 4, y: 12 + 13 * level, "text-anchor": at > width - 110 ? "end" : "start" }, `${p} ${number(marks[p])} ms`));
  }
  root.append(svg("text", { x: 0, y: height - 6 }, `${number(low)} ms`), svg("text", { x: width, y: height - 6, "text-anchor": "end" }, `${number(high)} ms` + (beyond ? `, ${beyond} of ${values.length} beyond` : "")));
  return root;
}

function bench() {
  document.body.prepend(make("h1", data.model), make("div", `clinfer bench on ${data.device}, ${data.precision}, batch ${data.batch}, ${data.streams} streams, ${data.nireq} requests, ${data.launch}`, "soft"));
  const work = data.work, peak = work && work.peak_tflops;
  section("", facts([["images a second", number(data.images_per_second, 4)], ["ms, p50", number(data.latency_ms.p50)], ["ms, p95", number(data.latency_ms.p95)], ["ms, p99", number(data.latency_ms.p99)],
    ["ms to load", number(data.load_ms)], ["ms, first inference", number(data.first_ms)],
    ["billion operations an image", work ? number(work.operations_per_image / 1e9) : ""], ["TFLOP/s", work ? number(work.tflops) : ""], ["of the peak", peak ? number(100 * work.tflops / peak) + " %" : ""]]));
  if (data.latencies.length) section("Latency of " + data.inferences + " inferences", histogram(data.latencies, data.latency_ms));
  const layers = data.layers.filter(l => l.status === "EXECUTED").map(l => ({ ...l, us: l.device_us + l.host_us })).sort((a, b) => b.us - a.us);
  const total = layers.reduce((sum, l) => sum + l.us, 0) || 1, types = new Map();
  for (const l of layers) { const t = types.get(l.type) || { us: 0, count: 0 }; t.us += l.us; ++t.count; types.set(l.type, t) }
  const by_type = [...types].sort((a, b) => b[1].us - a[1].us);
  const note = make("p", `Timed in a run of its own, step by step: ${number(total / 1e3)} ms altogether. What runs on the host is counted with it.`, "soft");
  section("Time by type", note, table(["type", "#steps", "#us", "#share", "="], by_type.map(([name, t]) => [name, t.count, number(t.us), number(100 * t.us / total) + " %", [t.us / by_type[0][1].us]])));
  section("Time by layer", table(["layer", "type", "#us", "#share", "=", "kernel"], layers.map(l => [l.layer, l.type, number(l.us), number(100 * l.us / total) + " %", [l.us / layers[0].us], l.kernel])));
  const fused = data.layers.filter(l => l.fused_into);
  if (fused.length) section("Part of others", table(["layer", "type", "in"], fused.map(l => [l.layer, l.type, l.fused_into]), 10));
}

function tune() {
  document.body.prepend(make("h1", data.model), make("div", `clinfer tune on ${data.device}, records in ${data.file}`, "soft"));
  section("", facts([["ms untuned", number(data.untuned_ms, 4)], ["ms tuned", number(data.tuned_ms, 4)], ["gain", number(data.gain, 4)], ["quartiles of the gain", data.gain_quartiles.map(v => number(v, 4)).join(" to ")],
    ["layers measured", data.measured], ["seconds", number(data.seconds)], ["records in use", data.records], ["taken back", data.taken_back]]));
  const top = Math.max(data.untuned_ms, data.tuned_ms);
  section("Whole network, untuned and tuned by turns", table(["", "#ms", "="], [["untuned", number(data.untuned_ms, 4), [data.untuned_ms / top]], ["tuned", number(data.tuned_ms, 4), [data.tuned_ms / top]]]));
  const layers = data.layers.filter(l => l.default_us > 0).sort((a, b) => b.default_us - a.default_us), most = Math.max(1e-9, ...layers.map(l => Math.max(l.default_us, l.best_us)));
  section("Layers: untuned (grey) and tuned", table(["layer", "from", "#untuned us", "#tuned us", "#gain", "=", "#points", "kernel"],
    layers.map(l => [l.layer, l.from, number(l.default_us), number(l.best_us), l.best_us > 0 ? number(l.default_us / l.best_us) : "", [l.default_us / most, l.best_us / most], l.points, l.kernel])));
  const said = data.layers.flatMap(l => [...(l.lapsed ? [[l.layer, "lapsed: " + l.lapsed]] : []), ...l.failed.map(f => [l.layer, "failed: " + f])]);
  if (said.length) section("Records that lapsed, kernels that failed", table(["layer", "what"], said));
}

document.title = `${data.model} - clinfer ${kind}`;
({ bench, tune })[kind]();
</script>
</body>
</html>
)HTML";

}  // namespace

void write_report(const std::string& path, const std::string& kind, const std::string& json) {
  std::string data = "{\"kind\":\"" + kind + "\",\"data\":";
  // In JSON '<' stands in texts only; written so, no text can end the script.
  for (const char c : json) data += c == '<' ? std::string("\\u003c") : std::string(1, c);
  data += "}";
  write_named_file(path, std::array{kHead, std::string_view(data), kTail});
}

std::vector<double> thinned(const std::vector<double>& values, size_t count) {
  if (values.size() <= count || count < 2) return values;
  std::vector<double> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return chosen;
}

}  // namespace clinfer
