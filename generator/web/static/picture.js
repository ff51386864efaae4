// Draws the part of the fabric that is in view, with as much detail as there is space for.
const MAX_LINKS = 3000;
const STYLES = {
  good: { light: "#8a94a0", dark: "#6b7683", dash: [], mark: "" },
  "one-sided": { light: "#6f42c1", dark: "#c4a1ff", dash: [8, 4], mark: "half" },
  slow: { light: "#9a6700", dark: "#f2c14e", dash: [2, 4], mark: "triangle" },
  flapping: { light: "#b3446c", dark: "#ff94bd", dash: [10, 3, 2, 3], mark: "wave" },
  down: { light: "#57606a", dark: "#c0c8d0", dash: [2, 8], mark: "bar" },
  swapped: { light: "#c4320a", dark: "#ff8a5c", dash: [], mark: "cross" },
  missing: { light: "#cf222e", dark: "#ff7b72", dash: [3, 6], mark: "ring" },
  exchange: { light: "#1a7f37", dark: "#5fd37f", dash: [6, 4], mark: "diamond" },
};

function colorOf(name) {
  return STYLES[name][matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
}

function drawMark(context, mark, x, y) {
  const size = 5;
  context.setLineDash([]);
  context.beginPath();
  if (mark === "cross") {
    context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size); context.lineTo(x - size, y + size);
  } else if (mark === "triangle") {
    context.moveTo(x, y - size); context.lineTo(x + size, y + size);
    context.lineTo(x - size, y + size); context.closePath();
  } else if (mark === "ring") context.arc(x, y, size, 0, 2 * Math.PI);
  else if (mark === "half") context.arc(x, y, size, 0, Math.PI);
  else if (mark === "bar") { context.moveTo(x - size, y); context.lineTo(x + size, y); }
  else if (mark === "wave") {
    context.moveTo(x - size, y); context.lineTo(x - size / 2, y - size);
    context.lineTo(x + size / 2, y + size); context.lineTo(x + size, y);
  } else if (mark === "diamond") {
    context.moveTo(x, y - size); context.lineTo(x + size, y);
    context.lineTo(x, y + size); context.lineTo(x - size, y); context.closePath();
  }
  context.stroke();
}

function drawLine(context, name, from, to) {
  const style = STYLES[name];
  context.strokeStyle = colorOf(name);
  context.lineWidth = name === "good" ? 0.6 : 2;
  context.setLineDash(style.dash);
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.stroke();
  const part = name === "exchange" ? 0.7 : 0.4;
  if (style.mark) drawMark(context, style.mark, from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part);
}

class Picture {
  constructor(canvas, layout, links) {
    Object.assign(this, { canvas, layout, links, rail: -1, plane: -1, chosen: -1, marked: [] });
    this.context = canvas.getContext("2d");
    this.showAll();
    this.chooseLinks(-1, -1);
  }

  // Only links of one plane and one rail are drawn; -1: of all. They stay in the order of their lower ends.
  chooseLinks(plane, rail) {
    Object.assign(this, { plane, rail });
    const { links, layout } = this;
    this.shown = links.sorted.filter((link) => this.isShown(link));
    this.starts = Float64Array.from(this.shown, (link) => layout.x[links.low[link]]);
    this.bundles = this.isTreePlane() ? [] : bundleLinks(this.shown, links, layout);
  }

  // Whether the domains are those of the chosen plane: then one line per domain stands for its links.
  isTreePlane() { return this.plane < 0 || page.planes[this.plane] === page.plane; }

  showAll() { this.left = 0; this.span = this.layout.width; }

  zoom(factor, at = this.left + this.span / 2) {
    const span = Math.min(this.layout.width, Math.max(2, this.span * factor));
    this.left = at - ((at - this.left) * span) / this.span;
    this.span = span;
    this.move(0);
  }

  move(share) {
    const most = this.layout.width - this.span;
    this.left = Math.min(most, Math.max(0, this.left + share * this.span));
  }

  center(device) {
    this.span = Math.min(this.span, Math.max(64, this.layout.width / 64), this.layout.width);
    this.left = this.layout.x[device] - this.span / 2;
    this.move(0);
  }

  resize() {
    const scale = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = this.width * scale;
    this.canvas.height = this.height * scale;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  atX(x) { return ((x - this.left) / this.span) * this.width; }

  atRow(row) {
    const { first, last } = this.layout;
    return 34 + ((row - first) / Math.max(last - first, 1)) * (this.height - 90);
  }

  placeOf(device) { return { x: this.atX(this.layout.x[device]), y: this.atRow(this.layout.row[device]) }; }

  isShown(link) {
    if (this.plane >= 0 && !((page.links.planes[link] >> this.plane) & 1)) return false;
    return this.rail < 0 || this.layout.row[this.links.low[link]] !== this.layout.last || this.links.lowPort[link] === this.rail;
  }

  draw() {
    const begun = performance.now();
    const style = getComputedStyle(document.documentElement);
    this.colors = Object.fromEntries(["page", "text", "soft", "line", "box", "accent"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.context.font = "12px system-ui, sans-serif";
    this.context.fillStyle = this.colors.page;
    this.context.fillRect(0, 0, this.width, this.height);
    this.labels = [];
    this.drawDomains();
    this.drawUnplaced();
    this.drawLinks();
    this.drawDevices();
    this.drawFaults();
    this.drawLabels();
    return performance.now() - begun;
  }

  drawDomains() {
    const { context, colors } = this;
    context.setLineDash([]);
    for (const domain of page.domains) {
      const from = Math.max(this.atX(domain.start), -2);
      const to = Math.min(this.atX(domain.stop), this.width + 2);
      if (to < 0 || from > this.width) continue;
      const top = this.atRow(domain.row) - 22;
      const gap = to - from > 6 ? 1 : 0;
      context.fillStyle = colors.box;
      context.fillRect(from + gap, top, to - from - 2 * gap, 36);
      if (to - from > 4) {
        context.strokeStyle = colors.line;
        context.lineWidth = 1;
        context.strokeRect(from + gap, top, to - from - 2 * gap, 36);
      }
      const count = domain.stop - domain.start;
      this.write(`${page.tiers[domain.tier - 1]} ${domain.name}, ${count} hosts`, from + 5, top + 12, to - from - 8);
    }
    if (this.layout.others.length) this.write("other switches", 4, this.atRow(0) - 10, 200);
  }

  // Hosts that are in no domain stand at the right.
  drawUnplaced() {
    const { context, colors, layout } = this;
    const count = layout.order.length - page.hosts.length;
    const from = Math.max(this.atX(page.hosts.length), -2);
    const to = Math.min(this.atX(layout.order.length), this.width + 2);
    if (!count || from > this.width || to - from < 4) return;
    const y = this.atRow(layout.last);
    context.strokeStyle = colors.soft;
    context.lineWidth = 1;
    context.setLineDash([4, 4]);
    context.strokeRect(from + 1, y - 14, to - from - 2, 28);
    this.write(`in no domain, ${count} hosts`, from + 5, y - 20, to - from - 8);
  }

  // Labels are drawn at the end, so that no line crosses them.
  write(text, x, y, width) {
    const most = Math.floor(width / 7);
    if (most >= 6) this.labels.push([text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y]);
  }

  drawLabels() {
    const { context, colors } = this;
    context.save();
    context.setLineDash([]);
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = colors.page;
    context.fillStyle = colors.text;
    for (const [text, x, y] of this.labels) {
      context.strokeText(text, x, y);
      context.fillText(text, x, y);
    }
    context.restore();
  }

  drawLinks() {
    const { links, context } = this;
    const from = findFirst(this.starts, this.left);
    const to = findFirst(this.starts, this.left + this.span);
    this.isDetailed = to - from <= MAX_LINKS;
    context.strokeStyle = this.isDetailed ? colorOf("good") : this.colors.line;
    context.lineWidth = this.isDetailed ? 0.6 : 1;
    context.setLineDash([]);
    context.beginPath();
    if (this.isDetailed) {
      for (let at = from; at < to; at++) {
        const link = this.shown[at];
        if (page.links.state[link]) continue;
        const low = this.placeOf(links.low[link]);
        const high = this.placeOf(links.high[link]);
        context.moveTo(low.x, low.y);
        context.lineTo(high.x, high.y);
      }
    } else if (this.isTreePlane()) {
      for (const domain of page.domains) this.addBranch(domain);
    } else {
      for (const [low, high] of this.bundles) {
        context.moveTo(this.atX(low), this.atRow(this.layout.last));
        context.lineTo(this.atX(this.layout.x[high]), this.atRow(this.layout.row[high]));
      }
    }
    context.stroke();
  }

  // One line from a domain to its parent and one to its hosts stand for all their links.
  addBranch(domain) {
    const middle = this.atX((domain.start + domain.stop) / 2);
    if (middle < -this.width || middle > 2 * this.width) return;
    if (domain.parent >= 0) {
      const parent = page.domains[domain.parent];
      this.context.moveTo(middle, this.atRow(domain.row) - 22);
      this.context.lineTo(middle, this.atRow(parent.row) + 14);
    }
    if (domain.tier === 1) {
      this.context.moveTo(middle, this.atRow(domain.row) + 14);
      this.context.lineTo(middle, this.atRow(this.layout.last) - 8);
    }
  }

  drawDevices() {
    const { context, layout, colors } = this;
    const unit = this.width / this.span;
    const y = this.atRow(layout.last);
    context.fillStyle = colors.soft;
    const from = Math.max(0, Math.floor(this.left));
    const to = Math.min(layout.order.length, Math.ceil(this.left + this.span));
    if (unit < 3) context.fillRect(this.atX(from), y - 6, this.atX(to) - this.atX(from), 12);
    for (let at = from; unit >= 3 && at < to; at++) this.drawHost(layout.order[at], unit, y);
    for (const domain of page.domains) {
      const room = ((domain.stop - domain.start) * unit) / Math.max(domain.switches.length, 1);
      if (room >= 4) for (const device of domain.switches) this.drawSwitch(device, room);
    }
    const room = this.width / Math.max(layout.others.length, 1);
    if (room >= 4) for (const device of layout.others) this.drawSwitch(device, room);
    this.drawMarked(y, unit);
    if (this.chosen >= 0) {
      const place = this.placeOf(this.chosen);
      context.strokeStyle = colors.text;
      context.lineWidth = 3;
      context.strokeRect(place.x - 9, place.y - 9, 18, 18);
    }
  }

  // The hosts of the chosen gang: a triangle above each, and the host in another color.
  drawMarked(y, unit) {
    const { context, layout, colors } = this;
    context.fillStyle = colors.accent;
    for (const device of this.marked) {
      const x = this.atX(layout.x[device]);
      if (x < -unit || x > this.width + unit) continue;
      const width = Math.max(Math.min(unit * 0.8, 90), 2);
      context.fillRect(x - width / 2, y - 6, width, 12);
      context.beginPath();
      context.moveTo(x - 5, y - 17); context.lineTo(x + 5, y - 17); context.lineTo(x, y - 8);
      context.fill();
    }
  }

  drawHost(device, unit, y) {
    const x = this.atX(this.layout.x[device]);
    const width = Math.min(unit * 0.8, 90);
    this.context.fillStyle = this.colors.soft;
    this.context.fillRect(x - width / 2, y - 6, width, 12);
    if (unit >= 46) this.write(page.devices.name[device], x - unit / 2 + 2, y + 22, unit);
    if (unit < 90) return;
    const links = this.links.linksOf.get(device) ?? [];
    this.context.fillStyle = this.colors.page;
    links.forEach((_, index) => this.context.fillRect(x - width / 2 + ((index + 0.5) / links.length) * width - 2, y - 2, 4, 4));
    const ports = links.map((link) => page.links.ports[page.links[page.links.a[link] === device ? "aPort" : "bPort"][link]]);
    if (unit >= 150) ports.slice(0, 2).forEach((port, index) => this.write(port, x - unit / 2 + 2, y + 36 + 13 * index, unit));
  }

  drawSwitch(device, room) {
    const { x, y } = this.placeOf(device);
    if (x < -room || x > this.width + room) return;
    this.context.fillStyle = this.colors.soft;
    this.context.fillRect(x - 4, y - 4, 8, 8);
    if (room >= 46) this.write(page.devices.name[device], x - room / 2 + 4, y + 13, room);
  }

  drawFaults() {
    for (const link of this.links.faulty) {
      if (this.isShown(link)) this.drawFault(page.states[page.links.state[link]], this.links.low[link], this.links.high[link]);
    }
    if (this.isTreePlane()) for (const [one, other] of page.absent) this.drawFault("missing", one, other);
    for (const [one, other] of page.exchanges) {
      if (!this.isShown(one) && !this.isShown(other)) continue;
      this.drawFault("exchange", this.links.low[one], this.links.high[other]);
      this.drawFault("exchange", this.links.low[other], this.links.high[one]);
    }
  }

  drawFault(name, one, other) {
    const from = this.placeOf(one);
    const to = this.placeOf(other);
    if (Math.max(from.x, to.x) >= 0 && Math.min(from.x, to.x) <= this.width) drawLine(this.context, name, from, to);
  }

  findDevice(x, y) {
    let best = -1;
    let least = 14 * 14;
    for (let device = 0; device < this.layout.x.length; device++) {
      const place = this.placeOf(device);
      const distance = (place.x - x) ** 2 + (place.y - y) ** 2;
      if (distance < least) [best, least] = [device, distance];
    }
    return best;
  }
}
