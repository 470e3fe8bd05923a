// Draws the record of a run: lanes on a canvas, the lines of PTX and Python, what is selected, the hazards.
// All text comes from the record and is set as text, never as markup.
"use strict";

const LABELS = 168, AXIS = 22, ROW = 19, SLOT = 13, MINI = 26, GAP = 3;

/** Give the rows of numbers names, and sort each track's items by their start. */
function decode(data) {
  const text = data.strings;
  const tracks = data.tracks.map(([cta, name, engine, height], id) => ({ id, cta, name, engine: !!engine, height, items: [] }));
  const items = [];
  const put = (item) => { item.id = items.length; items.push(item); tracks[item.track].items.push(item); };
  for (const [track, start, end, label, first, last, lanes, steps] of data.runs)
    put({ kind: "run", track, start, end, name: text[label], first, last, lanes, steps, slot: 0 });
  for (const [track, start, end, barrier, phase, line, from, when, released] of data.waits)
    put({ kind: "wait", track, start, end, name: text[barrier], phase, first: line, last: line, from, when, released: !!released, slot: 0 });
  for (const [track, start, end, what, slot, line, issuer, bytes, flops, barrier, count, observed] of data.transfers)
    put({ kind: "transfer", track, start, end, name: text[what], slot, first: line, last: line, issuer, bytes, flops,
      barrier: text[barrier], count, observed: !!observed });
  for (const track of tracks) track.items.sort((a, b) => a.start - b.start || a.slot - b.slot);
  const lines = new Map();
  for (const [number, warps, lanes, waited, file, python] of data.lines)
    lines.set(number, { number, warps, lanes, waited, file: file < 0 ? null : text[file], python, ...(data.extra[number] || {}) });
  return { tracks, items, lines };
}

/** The first item that ends after a time: where drawing begins. Items of one slot do not overlap, so starts suffice. */
function firstVisible(items, time, longest) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].start < time - longest) low = middle + 1; else high = middle;
  }
  return low;
}

/** The rows from top to bottom: a heading for each CTA, its warps and engines unless it is folded. */
function layout(tracks, ctas, folded) {
  const rows = [];
  let top = 0;
  const put = (row, height) => { rows.push({ ...row, top, height }); top += height; };
  ctas.forEach((cta, number) => {
    const mine = tracks.filter((track) => track.cta === number);
    put({ kind: "cta", cta: number, tracks: mine, folded: folded.has(number) }, folded.has(number) ? MINI + 18 : 20);
    if (folded.has(number)) return;
    for (const track of [...mine.filter((t) => t.engine), ...mine.filter((t) => !t.engine)])
      put({ kind: "track", track }, track.engine ? track.height * SLOT + GAP : ROW);
    top += 4;
  });
  return { rows, height: top };
}

/** Steps between the marks of the axis: 1, 2 or 5 times a power of ten, about 90 pixels apart. */
function tickStep(span, pixels) {
  const wanted = (span / Math.max(1, pixels)) * 90;
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted) || 10 * power;
}

/** 16384 as 16 KiB, 33554432 as 33.6 M. */
function bytesText(count) {
  return count % 1048576 === 0 && count ? `${count / 1048576} MiB` : count % 1024 === 0 && count ? `${count / 1024} KiB` : `${count} B`;
}
function countText(count) {
  const scale = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => count >= size);
  return scale ? `${+(count / scale[0]).toPrecision(3)} ${scale[1]}` : `${count}`;
}

function engineColour(name) {
  return name === "TMA loads" ? "--loads" : name === "TMA stores" ? "--stores" : name === "cp.async" ? "--copies" : "--mma";
}

/** A colour for a stretch of code: the same label has the same one. */
function runColour(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return `--run${(hash % 6) + 1}`;
}

/** What an item is, in one line for labels and in several for the tip. */
function caption(item) {
  if (item.kind === "wait") return `${item.released ? "wait" : "stuck at"} ${item.name}`;
  if (item.kind === "transfer") {
    const name = item.count > 1 ? `${item.count} × ${item.name}` : item.name;
    return item.bytes ? `${name}, ${bytesText(item.bytes)}${item.barrier ? ` → ${item.barrier}` : ""}` : name;
  }
  return item.name;
}
function describe(item, tracks, data) {
  const said = [["where", `CTA ${data.ctas[tracks[item.track].cta]} · ${tracks[item.track].name}`],
    ["steps", `${item.start} – ${item.end} (${item.end - item.start})`]];
  if (item.kind === "run") said.push(["instructions", `${item.steps}`], ["lanes", `up to ${item.lanes} of 32`]);
  if (item.kind === "wait") {
    said.push(["waits for", `${item.name}, phase ${item.phase}`]);
    if (!item.released) said.push(["ends", "never: the run stopped here"]);
    if (item.from >= 0) said.push(["released by", `CTA ${data.ctas[tracks[item.from].cta]} · ${tracks[item.from].name} at ${item.when}`]);
  }
  if (item.kind === "transfer") {
    if (item.bytes) said.push(["bytes", bytesText(item.bytes)]);
    if (item.flops) said.push(["operations", `${countText(item.flops)} FLOP`]);
    if (item.barrier) said.push(["barrier", item.barrier]);
    said.push(["issued by", tracks[item.issuer].name]);
    said.push(["ends", item.observed ? "at the first wait that asked for it" : "nobody waited for it"]);
  }
  said.push(["PTX", item.first === item.last ? `line ${item.first}` : `lines ${item.first} – ${item.last}`]);
  return said;
}

/** The nearest item of a track to a time: the one that contains it, or the next. */
function nearest(track, time) {
  return track.items.find((item) => item.end > time) || track.items[track.items.length - 1] || null;
}

class View {
  constructor(page, data) {
    this.page = page; this.data = data;
    Object.assign(this, decode(data));
    this.longest = new Map(this.tracks.map((t) => [t.id, t.items.reduce((most, i) => Math.max(most, i.end - i.start), 0)]));
    const cluster = data.cluster[0] * data.cluster[1] * data.cluster[2];
    this.folded = new Set(data.ctas.map((_, at) => at).filter((at) => at >= cluster));
    this.start = 0; this.span = Math.max(1, data.end) * 1.02; this.selected = null; this.arrows = false; this.hazard = -1;
    this.marked = null;
    this.canvas = page.getElementById("view"); this.scroll = page.getElementById("scroll");
    this.pen = this.canvas.getContext("2d");
    this.slots = new Map(this.items.filter((i) => i.slot).map((i) => [`${i.track} ${i.start}`, i.slot]));
    this.relayout();
  }

  $(id) { return this.page.getElementById(id); }
  make(tag, text, attributes = {}) {
    const made = this.page.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }
  colour(name) { return this.colours[name] || (this.colours[name] = getComputedStyle(this.page.documentElement).getPropertyValue(name).trim()); }

  relayout() {
    Object.assign(this, layout(this.tracks, this.data.ctas, this.folded));
    this.rowOf = new Map(this.rows.filter((r) => r.kind === "track").map((r) => [r.track.id, r]));
    this.$("spacer").style.height = `${this.height + AXIS}px`;
    this.colours = {};
    this.draw();
  }

  x(time) { return LABELS + ((time - this.start) / this.span) * (this.wide - LABELS); }
  time(x) { return this.start + ((x - LABELS) / (this.wide - LABELS)) * this.span; }
  y(row) { return AXIS + row.top - this.scroll.scrollTop; }

  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.paint(); });
  }

  paint() {
    const ratio = window.devicePixelRatio || 1, pen = this.pen;
    this.wide = this.scroll.clientWidth; this.tall = this.scroll.clientHeight;
    this.canvas.width = this.wide * ratio; this.canvas.height = this.tall * ratio; this.canvas.style.height = `${this.tall}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.textBaseline = "middle";
    pen.fillStyle = this.colour("--back"); pen.fillRect(0, 0, this.wide, this.tall);
    for (const row of this.rows) if (this.y(row) < this.tall && this.y(row) + row.height > 0) this.paintRow(row);
    this.paintAxis();
    this.paintArrows();
    this.paintHazards();
  }

  paintRow(row) {
    const pen = this.pen, y = this.y(row);
    pen.save();
    pen.beginPath(); pen.rect(LABELS, y, this.wide - LABELS, row.height); pen.clip();
    if (row.kind === "cta") {
      pen.fillStyle = this.colour("--cta"); pen.fillRect(0, y, this.wide, row.height);
      if (row.folded) row.tracks.forEach((track, at) => this.paintMini(track, y + 15 + (at * MINI) / row.tracks.length, MINI / row.tracks.length));
    } else {
      pen.fillStyle = this.colour(row.track.engine ? "--row" : "--back"); pen.fillRect(LABELS, y, this.wide, row.height);
      this.paintItems(row, y);
    }
    pen.restore();
    this.paintLabel(row, y);
  }

  paintLabel(row, y) {
    const pen = this.pen;
    pen.fillStyle = this.colour(row.kind === "cta" ? "--cta" : "--back"); pen.fillRect(0, y, LABELS, row.height);
    pen.fillStyle = this.colour(row.kind === "cta" ? "--text" : "--soft");
    pen.font = row.kind === "cta" ? "600 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
    const name = row.kind === "cta" ? `${row.folded ? "▸" : "▾"} CTA ${this.data.ctas[row.cta]}` : row.track.name;
    pen.fillText(name, row.kind === "cta" ? 8 : 22, y + Math.min(row.height, 20) / 2, LABELS - 26);
    pen.fillStyle = this.colour("--line"); pen.fillRect(0, y + row.height - 1, this.wide, row.kind === "cta" ? 1 : 0.5);
    pen.fillRect(LABELS - 1, y, 1, row.height);
  }

  visible(track, visit) {
    const last = this.start + this.span;
    for (let at = firstVisible(track.items, this.start, this.longest.get(track.id)); at < track.items.length; at++) {
      const item = track.items[at];
      if (item.start > last) return;
      if (item.end >= this.start) visit(item);
    }
  }

  paintMini(track, y, height) {
    this.visible(track, (item) => {
      this.pen.fillStyle = this.colour(item.kind === "wait" ? "--wait-line" : track.engine ? engineColour(track.name) : runColour(item.name));
      this.pen.fillRect(this.x(item.start), y, Math.max(0.7, this.x(item.end) - this.x(item.start)), Math.max(1, height - 0.3));
    });
  }

  paintItems(row, y) {
    const pen = this.pen, track = row.track;
    pen.font = "11px system-ui, sans-serif";
    this.visible(track, (item) => {
      const left = this.x(item.start), width = Math.max(1, this.x(item.end) - left - (this.x(item.end) - left > 3 ? 1 : 0));
      const top = track.engine ? y + 1 + item.slot * SLOT : y + 2, height = track.engine ? SLOT - 2 : ROW - 4;
      const dim = this.marked && !(item.first <= this.marked && this.marked <= item.last);
      pen.globalAlpha = dim ? 0.3 : 1;
      this.paintBox(item, track, left, top, width, height);
      if (width > 24) {
        pen.save(); pen.beginPath(); pen.rect(left, top, width - 2, height); pen.clip();
        pen.fillStyle = track.engine ? "#fff" : this.colour("--ink");
        if (track.engine && item.kind === "transfer" && engineColour(track.name) === "--mma") pen.fillStyle = "#1b1300";
        pen.fillText(caption(item), Math.max(left, LABELS) + 4, top + height / 2 + 0.5);
        pen.restore();
      }
      pen.globalAlpha = 1;
      if (item === this.selected) { pen.strokeStyle = this.colour("--focus"); pen.lineWidth = 2; pen.strokeRect(left, top, width, height); }
    });
  }

  paintBox(item, track, left, top, width, height) {
    const pen = this.pen;
    if (item.kind === "wait") {
      pen.fillStyle = this.colour("--wait"); pen.fillRect(left, top, width, height);
      pen.fillStyle = this.colour(item.released ? "--wait-line" : "--bad"); pen.fillRect(left, top + height - (item.released ? 2 : 4), width, item.released ? 2 : 4);
      return;
    }
    pen.fillStyle = this.colour(track.engine ? engineColour(track.name) : runColour(item.name));
    pen.fillRect(left, top, width, height);
    if (item.kind === "transfer" && !item.observed) {
      pen.setLineDash([3, 3]); pen.strokeStyle = this.colour("--bad"); pen.lineWidth = 1; pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1); pen.setLineDash([]);
    }
  }

  paintAxis() {
    const pen = this.pen, step = tickStep(this.span, this.wide - LABELS);
    pen.fillStyle = this.colour("--raised"); pen.fillRect(0, 0, this.wide, AXIS);
    pen.fillStyle = this.colour("--soft"); pen.font = "11px system-ui, sans-serif";
    pen.fillText("steps (not time)", 8, AXIS / 2);
    for (let at = Math.ceil(this.start / step) * step; at <= this.start + this.span; at += step) {
      pen.fillText(`${at}`, this.x(at) + 3, AXIS / 2);
      pen.fillRect(this.x(at), AXIS - 6, 1, 6);
      pen.globalAlpha = 0.12; pen.fillRect(this.x(at), AXIS, 1, this.tall); pen.globalAlpha = 1;
    }
    pen.fillStyle = this.colour("--line"); pen.fillRect(0, AXIS - 1, this.wide, 1);
  }

  /** Where an arrow begins or ends: the middle of a track's row, or of its CTA's while that is folded. */
  point(track, time, slot = 0) {
    const row = this.rowOf.get(track) || this.rows.find((r) => r.kind === "cta" && r.cta === this.tracks[track].cta);
    const inside = row.kind === "cta" ? row.height / 2 : row.track.engine ? 1 + slot * SLOT + SLOT / 2 : row.height / 2;
    return [this.x(time), this.y(row) + inside];
  }

  paintArrows() {
    const shown = [], end = this.start + this.span;
    for (const item of this.items) {
      if (item.kind === "wait" && item.from >= 0 && item.end >= this.start && item.start <= end) {
        const chosen = this.selected === item || (this.selected && this.selected.kind === "transfer" && item.from === this.selected.track && item.when === this.selected.start);
        if (chosen || (this.arrows && shown.length < 800)) {
          const slot = this.slots.get(`${item.from} ${item.when}`) || 0;
          shown.push([this.point(item.from, item.when, slot), this.point(item.track, item.end), chosen]);
        }
      }
    }
    const one = this.selected;
    if (one && one.kind === "transfer") shown.push([this.point(one.issuer, one.start), this.point(one.track, one.start, one.slot), true]);
    for (const [from, to, chosen] of shown) this.paintArrow(from, to, chosen);
  }

  paintArrow([x0, y0], [x1, y1], chosen) {
    const pen = this.pen, bend = Math.max(12, Math.abs(x1 - x0) / 2);
    pen.save(); pen.beginPath(); pen.rect(LABELS, AXIS, this.wide, this.tall); pen.clip();
    pen.strokeStyle = pen.fillStyle = this.colour(chosen ? "--focus" : "--soft"); pen.lineWidth = chosen ? 1.8 : 0.8; pen.globalAlpha = chosen ? 1 : 0.6;
    pen.beginPath(); pen.moveTo(x0, y0); pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1); pen.stroke();
    pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x1 - 6, y1 - 3.5); pen.lineTo(x1 - 6, y1 + 3.5); pen.fill();
    pen.restore();
  }

  paintHazards() {
    this.data.hazards.forEach((found, at) => {
      if (found.track < 0) return;
      const [x, y] = this.point(found.track, found.time);
      if (x < LABELS || y < AXIS) return;
      this.pen.fillStyle = this.colour(found.severity === "error" ? "--bad" : "--warn");
      this.pen.beginPath(); this.pen.moveTo(x, y - 9); this.pen.lineTo(x + 7, y + 5); this.pen.lineTo(x - 7, y + 5); this.pen.fill();
      this.pen.fillStyle = this.colour("--back"); this.pen.font = "bold 10px system-ui"; this.pen.fillText("!", x - 1.5, y + 0.5);
      if (at === this.hazard) { this.pen.strokeStyle = this.colour("--focus"); this.pen.lineWidth = 2; this.pen.beginPath(); this.pen.arc(x, y, 12, 0, 7); this.pen.stroke(); }
    });
  }

  // What the pointer and the keys do

  rowAt(y) { return this.rows.find((row) => y >= this.y(row) && y < this.y(row) + row.height) || null; }
  itemAt(x, y) {
    const row = y > AXIS && x > LABELS ? this.rowAt(y) : null;
    if (!row || row.kind !== "track") return null;
    const slot = row.track.engine ? Math.floor((y - this.y(row) - 1) / SLOT) : 0, time = this.time(x), near = this.span / (this.wide - LABELS);
    let found = null;
    this.visible(row.track, (item) => { if (item.slot === slot && item.start - near <= time && time <= item.end + near) found = item; });
    return found;
  }

  zoom(factor, at = this.start + this.span / 2) {
    const span = Math.min(Math.max(this.span * factor, 4), Math.max(4, this.data.end * 1.02));
    this.start = at - (at - this.start) * (span / this.span); this.span = span;
    this.clamp();
  }
  pan(share) { this.start += this.span * share; this.clamp(); }
  clamp() { this.start = Math.min(Math.max(this.start, 0), Math.max(0, this.data.end * 1.02 - this.span)); this.draw(); }
  fit() { this.start = 0; this.span = Math.max(4, this.data.end * 1.02); this.draw(); }

  reveal(track, from, to) {
    if (this.folded.delete(this.tracks[track].cta)) this.relayout();
    const row = this.rowOf.get(track);
    if (this.y(row) < AXIS) this.scroll.scrollTop = row.top - 30;
    else if (this.y(row) + row.height > this.tall) this.scroll.scrollTop = row.top + row.height + AXIS - this.tall + 30;
    if (to < this.start || from > this.start + this.span) { this.start = (from + to) / 2 - this.span / 2; this.clamp(); }
    this.draw();
  }

  select(item, quietly = false) {
    this.selected = item; this.marked = null;
    if (item) {
      this.reveal(item.track, item.start, item.end);
      this.showLines(item.first, item.last);
      this.show("selection");
      if (!quietly) this.$("said").textContent = `${caption(item)}, ${describe(item, this.tracks, this.data).map((pair) => pair.join(" ")).join(", ")}`;
    } else this.showLines(0, -1);
    this.draw();
  }

  step(by) {
    const item = this.selected;
    if (!item) { const row = this.rows.find((r) => r.kind === "track" && r.track.items.length); if (row) this.select(row.track.items[0]); return; }
    const items = this.tracks[item.track].items, next = items[items.indexOf(item) + by];
    if (next) this.select(next);
  }
  move(by) {
    const rows = this.rows.filter((r) => r.kind === "track" && r.track.items.length);
    const at = rows.findIndex((r) => this.selected && r.track.id === this.selected.track), row = rows[at + by] || rows[at] || rows[0];
    if (row) this.select(nearest(row.track, this.selected ? this.selected.start : 0));
  }
  jump(by) {
    const all = this.data.hazards;
    if (!all.length) return;
    this.openHazard((this.hazard + by + all.length) % all.length);
  }
  openHazard(at) {
    const found = this.data.hazards[at];
    this.hazard = at; this.selected = null; this.marked = null;
    if (found.track >= 0) this.reveal(found.track, found.time, found.time + 1);
    this.showLines(found.line, found.line, found.other ? found.other.line : 0);
    this.show("hazards");
    this.$("said").textContent = `${found.severity} ${found.code}: ${found.title}`;
    this.draw();
  }

  // Lines of source

  table(title, columns, rows) {
    const table = this.make("table"), head = this.make("tr");
    table.append(this.make("caption", title));
    for (const name of columns) head.append(this.make("th", name));
    const top = this.make("thead"), body = this.make("tbody");
    top.append(head); table.append(top, body);
    for (const row of rows) body.append(row);
    return table;
  }

  cell(value, share, slow) {
    const made = this.make("td", value ? `${value}` : "");
    if (share > 0) { made.className = "heat"; made.style.setProperty("--share", `${Math.round(100 * share)}%`); }
    if (slow) made.classList.add("slow");
    return made;
  }

  columns() {
    const extra = new Set();
    for (const line of this.lines.values()) for (const name of Object.keys(this.data.extra[line.number] || {})) extra.add(name);
    return [...extra];
  }

  line(number, text, found, most, click) {
    const row = this.make("tr", undefined, { "data-line": number });
    row.append(this.make("td", `${number}`));
    row.append(this.cell(found && countText(found.warps), found ? found.warps / most.warps : 0));
    row.append(this.cell(found && found.waited, found && most.waited ? found.waited / most.waited : 0));
    for (const name of this.extra) row.append(this.cell(found && found[name], 0, found && /[2-9]|\d\d/.test(`${found[name] || ""}`.split("×")[0].split(".")[0])));
    row.append(this.make("td", text));
    row.addEventListener("click", () => click(number));
    return row;
  }

  buildLines() {
    this.extra = this.columns();
    const all = [...this.lines.values()];
    const most = { warps: Math.max(1, ...all.map((l) => l.warps)), waited: Math.max(0, ...all.map((l) => l.waited)) };
    const names = ["line", "warps", "waited", ...this.extra];
    const bad = new Set(this.data.hazards.flatMap((h) => [h.line, h.other ? h.other.line : 0]));
    const ptx = this.data.source.map((text, at) => {
      const row = this.line(at + 1, text, this.lines.get(at + 1), most, (number) => this.mark(number));
      if (bad.has(at + 1)) row.classList.add("bad");
      return row;
    });
    this.$("ptx").append(this.table("PTX", [...names, ""], ptx));
    this.ptxRows = ptx;
    this.pythonRows = new Map();
    const files = Object.entries(this.data.python);
    this.$("python").hidden = !files.length;
    for (const [file, part] of files) this.buildPython(file, part, names, all, most);
  }

  buildPython(file, part, names, all, most) {
    const sums = new Map();
    for (const line of all) {
      if (line.file !== file) continue;
      const sum = sums.get(line.python) || { warps: 0, waited: 0, first: line.number };
      sum.warps += line.warps; sum.waited += line.waited;
      for (const name of this.extra) if (line[name]) sum[name] = line[name];
      sums.set(line.python, sum);
    }
    const highest = { warps: Math.max(1, ...[...sums.values()].map((s) => s.warps)), waited: Math.max(0, ...[...sums.values()].map((s) => s.waited)) };
    const rows = part.lines.map((text, at) => this.line(part.first + at, text, sums.get(part.first + at), highest, (number) => {
      const first = sums.get(number);
      if (first) this.mark(first.first);
    }));
    rows.forEach((row, at) => this.pythonRows.set(`${file}\n${part.first + at}`, row));
    const table = this.table(file.split(/[\\/]/).pop(), [...names, ""], rows);
    table.caption.title = file;
    this.$("python").append(table);
  }

  /** Show lines as those of what is selected, and the Python lines that they come from. */
  showLines(first, last, other = 0) {
    for (const row of this.page.querySelectorAll("tr.on, tr.some")) row.classList.remove("on", "some");
    const python = new Set();
    const paint = (number, name) => {
      const row = this.ptxRows[number - 1], found = this.lines.get(number);
      if (row && (found || name === "on")) row.classList.add(name);
      if (found && found.file) python.add(`${found.file}\n${found.python}`);
    };
    for (let number = first; number <= last; number++) paint(number, first === last ? "on" : "some");
    if (other) paint(other, "some");
    this.bring(this.$("ptx"), this.ptxRows[first - 1]);
    const rows = [...python].map((key) => this.pythonRows.get(key)).filter(Boolean);
    for (const row of rows) row.classList.add(first === last ? "on" : "some");
    this.bring(this.$("python"), rows[0]);
  }
  bring(box, row) {
    if (!row) return;
    const place = row.offsetTop;
    if (place < box.scrollTop + 40 || place > box.scrollTop + box.clientHeight - 40) box.scrollTop = Math.max(0, place - box.clientHeight / 3);
  }
  /** A click on a line: what ran it stays bright. */
  mark(number) {
    this.selected = null;
    const again = this.marked === number;
    this.marked = again ? null : number;
    this.showLines(again ? 0 : number, again ? -1 : number);
    this.show("selection"); this.draw();
  }

  // The panel at the side

  show(tab) {
    this.tab = tab;
    const tabs = { selection: "Selection", hazards: `Hazards (${this.data.hazards.length})`, lines: "Waits", about: "About" };
    this.$("tabs").replaceChildren(...Object.entries(tabs).map(([name, text]) => {
      const button = this.make("button", text, { role: "tab", "aria-selected": name === tab });
      button.addEventListener("click", () => this.show(name));
      return button;
    }));
    this.$("panel").replaceChildren(...this[`${tab}Panel`]());
  }

  list(pairs) {
    const list = this.make("dl");
    for (const [name, value] of pairs) list.append(this.make("dt", name), this.make("dd", value));
    return list;
  }

  selectionPanel() {
    const item = this.selected;
    if (item) {
      const made = [this.make("h2", caption(item)), this.list(describe(item, this.tracks, this.data))];
      const released = item.kind === "wait" && item.from >= 0 && nearest(this.tracks[item.from], item.when);
      if (released) made.push(this.button("go to what released it", () => this.select(released)));
      return made;
    }
    const line = this.marked && this.lines.get(this.marked);
    if (line) {
      const pairs = [["warps ran it", `${line.warps}`], ["lanes", `${line.lanes}`], ["steps waited here", `${line.waited}`]];
      for (const name of this.extra) if (line[name]) pairs.push([name, `${line[name]}`]);
      if (line.file) pairs.push(["source", `${line.file}:${line.python}`]);
      return [this.make("h2", `PTX line ${line.number}`), this.list(pairs)];
    }
    return [this.make("p", "Click a slice, a line, or press an arrow key. A bar of an engine reaches from its issue to the first wait that asked for it: the room that the program leaves to hide it."), this.legend()];
  }

  button(text, click, name = "link") {
    const made = this.make("button", text);
    made.className = name;
    made.addEventListener("click", click);
    return made;
  }

  legend() {
    const box = this.make("div");
    box.className = "legend";
    for (const [name, text] of [["--run1", "runs (a colour per label)"], ["--wait-line", "waits"], ["--loads", "TMA loads"], ["--stores", "TMA stores"], ["--copies", "cp.async"], ["--mma", "wgmma, tcgen05"], ["--bad", "hazard"]]) {
      const entry = this.make("span"), patch = this.make("i");
      patch.style.background = `var(${name})`;
      entry.append(patch, text);
      box.append(entry);
    }
    return box;
  }

  hazardsPanel() {
    if (!this.data.hazards.length) return [this.make("p", "No hazards were reported. Only checked runs report hazards.")];
    return this.data.hazards.map((found, at) => {
      const text = `${found.code} ${found.title}${found.count > 1 ? ` (${found.count} times)` : ""}${found.what ? `: ${found.what}` : ""}`;
      const item = this.button(text, () => this.openHazard(at), `item ${found.severity}`);
      if (at === this.hazard) {
        item.setAttribute("aria-current", "true");
        for (const note of found.notes) item.append(this.make("p", note));
        if (found.help) item.append(this.make("p", `help: ${found.help}`));
      }
      return item;
    });
  }

  linesPanel() {
    const total = new Map();
    for (const item of this.items) if (item.kind === "wait") {
      const key = `${item.name}\n${item.first}`, sum = total.get(key) || { name: item.name, line: item.first, steps: 0, count: 0, longest: item };
      sum.steps += item.end - item.start; sum.count++;
      if (item.end - item.start > sum.longest.end - sum.longest.start) sum.longest = item;
      total.set(key, sum);
    }
    const rows = [...total.values()].sort((a, b) => b.steps - a.steps).slice(0, 40);
    if (!rows.length) return [this.make("p", "No warp had to wait.")];
    return [this.make("p", "Where warps wait longest, in steps of all recorded warps:"),
      ...rows.map((row) => this.button(`${row.longest.released ? "" : "stuck: "}${row.name}, line ${row.line}: ${row.steps} steps in ${row.count} waits`, () => this.select(row.longest), "item"))];
  }

  aboutPanel() {
    const data = this.data;
    const made = [this.make("h2", data.kernel), this.list([["grid", data.grid.join(" × ")], ["block", data.block.join(" × ")],
      ["cluster", data.cluster.join(" × ")], ["schedule", data.schedule], ["time", data.unit],
      ["CTAs", `${data.ctas.length} recorded, ${data.leftOut} left out`]])];
    if (data.truncated) made.push(this.make("p", "The record was full: later slices are missing."));
    made.push(this.legend());
    return made;
  }

  // The page

  open() {
    const data = this.data;
    this.page.title = `${data.kernel} – timeline`;
    this.$("title").textContent = data.kernel;
    this.$("facts").textContent = `grid ${data.grid.join("×")} · block ${data.block.join("×")} · cluster ${data.cluster.join("×")} · ${data.schedule} · ${data.end} steps · ${data.ctas.length} of ${data.ctas.length + data.leftOut} CTAs`;
    this.$("unit").title = data.unit;
    const errors = data.hazards.filter((h) => h.severity === "error").length;
    if (data.hazards.length) this.$("hazard").textContent = `${data.hazards.length} hazard${data.hazards.length > 1 ? "s" : ""}`;
    if (errors) this.$("hazard").classList.add("bad");
    this.buildLines(); this.buildKeys(); this.listen();
    this.show(data.hazards.length ? "hazards" : "selection");
    this.draw();
    const first = [...this.lines.values()].find((line) => line.warps);
    if (first) {
      this.bring(this.$("ptx"), this.ptxRows[first.number - 1]);
      if (first.file) this.bring(this.$("python"), this.pythonRows.get(`${first.file}\n${first.python}`));
    }
  }

  /** A link may say what to show: #hazard=1, #line=40, #theme=dark, #steps=100-300, #arrows. */
  follow(link) {
    const said = new Map(link.replace(/^#/, "").split("&").map((part) => part.split("=")));
    const number = (name) => Number.parseInt(said.get(name), 10);
    if (said.has("theme")) this.page.documentElement.dataset.theme = said.get("theme") === "dark" ? "dark" : "light";
    if (said.has("arrows")) this.toggleArrows();
    if (this.data.hazards[number("hazard") - 1]) this.openHazard(number("hazard") - 1);
    if (this.lines.has(number("line"))) this.mark(number("line"));
    if (/^\d+-\d+$/.test(said.get("steps") || "")) {
      const [from, to] = said.get("steps").split("-").map(Number);
      this.start = from; this.span = Math.max(4, to - from); this.clamp();
    }
  }

  buildKeys() {
    const keys = { "w s": "zoom in, out", "a d": "pan", "← →": "previous, next slice of the track", "↑ ↓": "track above, below", "Enter": "zoom to the slice",
      "0": "the whole run", "f": "all arrows", "h H": "next, previous hazard", "c": "fold or unfold the CTA", "t": "light or dark", "Esc": "select nothing" };
    for (const [name, what] of Object.entries(keys)) {
      const entry = this.make("div");
      for (const key of name.split(" ")) entry.append(this.make("kbd", key), " ");
      entry.append(what);
      this.$("help").append(entry);
    }
    this.$("help").append(this.make("div", "Drag pans, Ctrl + wheel zooms, double click zooms to a slice."));
  }

  act(key) {
    const item = this.selected;
    const actions = {
      w: () => this.zoom(0.7, item ? (item.start + item.end) / 2 : undefined), s: () => this.zoom(1 / 0.7), "+": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7),
      a: () => this.pan(-0.15), d: () => this.pan(0.15), 0: () => this.fit(), f: () => this.toggleArrows(), h: () => this.jump(1), H: () => this.jump(-1),
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1),
      Enter: () => item && this.zoomTo(item), Escape: () => { this.hazard = -1; this.select(null); this.show("selection"); }, t: () => this.toggleTheme(), "?": () => this.toggleKeys(),
      c: () => item && this.fold(this.tracks[item.track].cta),
    };
    if (!actions[key]) return false;
    actions[key]();
    return true;
  }
  zoomTo(item) { const span = Math.max(4, (item.end - item.start) * 1.6); this.start = (item.start + item.end) / 2 - span / 2; this.span = span; this.clamp(); }
  fold(cta) { if (!this.folded.delete(cta)) this.folded.add(cta); this.relayout(); }
  toggleArrows() { this.arrows = !this.arrows; this.$("arrows").setAttribute("aria-pressed", this.arrows); this.draw(); }
  toggleKeys() { const hidden = !this.$("help").hidden; this.$("help").hidden = hidden; this.$("keys").setAttribute("aria-expanded", !hidden); this.draw(); }
  toggleTheme() {
    const root = this.page.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    this.colours = {}; this.draw();
  }

  listen() {
    const on = (id, what) => this.$(id).addEventListener("click", what);
    on("in", () => this.zoom(0.7)); on("out", () => this.zoom(1 / 0.7)); on("fit", () => this.fit()); on("arrows", () => this.toggleArrows());
    on("hazard", () => this.jump(1)); on("theme", () => this.toggleTheme()); on("keys", () => this.toggleKeys());
    this.page.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const arrows = event.key.startsWith("Arrow") || event.key === "Enter";
      if (arrows && this.page.activeElement !== this.canvas && this.page.activeElement !== this.page.body) return;
      if (this.act(event.key)) event.preventDefault();
    });
    this.scroll.addEventListener("scroll", () => this.draw());
    window.addEventListener("resize", () => this.draw());
    this.listenPointer(); this.listenDivider();
  }

  listenPointer() {
    let drag = null;
    const at = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, start: this.start, moved: false }; this.canvas.setPointerCapture(event.pointerId); });
    this.canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (drag && (drag.moved || Math.abs(event.clientX - drag.x) > 3)) {
        drag.moved = true; this.start = drag.start - ((event.clientX - drag.x) / (this.wide - LABELS)) * this.span; this.clamp();
      } else this.hover(x, y);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const [x, y] = at(event), moved = drag && drag.moved, row = this.rowAt(y);
      drag = null;
      if (moved) return;
      if (row && row.kind === "cta") this.fold(row.cta); else this.select(this.itemAt(x, y));
    });
    this.canvas.addEventListener("dblclick", (event) => { const item = this.itemAt(...at(event)); if (item) this.zoomTo(item); });
    this.canvas.addEventListener("pointerleave", () => { this.$("tip").hidden = true; });
    this.scroll.addEventListener("wheel", (event) => {
      const across = event.shiftKey ? event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, this.time(at(event)[0])); }
      else if (across) { event.preventDefault(); this.pan(across / (this.wide - LABELS)); }
    }, { passive: false });
  }

  hover(x, y) {
    const item = this.itemAt(x, y), tip = this.$("tip");
    tip.hidden = !item;
    if (!item) return;
    const pairs = describe(item, this.tracks, this.data).map(([name, value]) => `${name}: ${value}`);
    const line = (this.data.source[item.first - 1] || "").trim();
    tip.textContent = [caption(item), ...pairs, line].join("\n");
    tip.style.left = `${Math.min(x + 14, this.wide - tip.offsetWidth - 8)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > this.tall ? y - tip.offsetHeight - 8 : y + 18}px`;
  }

  listenDivider() {
    const divider = this.$("divider"), lanes = this.$("lanes");
    const resize = (height) => { lanes.style.height = `${Math.min(Math.max(height, 120), window.innerHeight - 160)}px`; this.draw(); };
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", (event) => { if (divider.hasPointerCapture(event.pointerId)) resize(event.clientY - lanes.getBoundingClientRect().top); });
    divider.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -24, ArrowDown: 24 }[event.key];
      if (by) { resize(lanes.clientHeight + by); event.preventDefault(); event.stopPropagation(); }
    });
  }
}

if (typeof module !== "undefined") {
  module.exports = { decode, layout, tickStep, firstVisible, bytesText, countText, caption, describe, nearest, runColour };
} else {
  const dark = window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  window.timeline = new View(document, JSON.parse(document.getElementById("data").textContent));
  window.timeline.open();
  window.timeline.follow(window.location.hash);
}
