// The fabric as a partition: a band of domains for each tier, and below each leaf a cell for each host.
const BAND = 28;
const LETTER = 7; // pixels, at most
const HOST_LABEL = { letter: 6.4, height: 15, least: 40 };

// The end of a name tells it from others better than its beginning.
const cutName = (name, most) => (name.length <= most ? name : `…${name.slice(1 - Math.floor(most))}`);

echarts.graphic.registerShape("cells", echarts.graphic.extendShape({
  shape: { cells: [] },
  buildPath: (context, { cells }) => { for (const [x, y, width, height] of cells) context.rect(x, y, width, height); },
}));

// Which columns and rows the hosts of a leaf have in its area, so that cells are about twice as wide as high.
function gridOf(count, width, height) {
  const columns = Math.max(1, Math.min(count, Math.round(Math.sqrt((count * width) / (2 * height)))));
  return { columns, rows: Math.ceil(count / columns) };
}

class Partition {
  // `paint` says the color of what is shown (see `paints`); `onOpen` and `onMove` receive what is chosen.
  constructor(element, { onOpen, onMove }) {
    Object.assign(this, { element, onOpen, onMove, cursor: null, marked: new Set() });
    this.chart = chartIn(element);
    this.bands = page.tiers.length;
    this.groups = this.listGroups();
    tipOver(this.chart, (x, y) => { const found = this.find(x, y); return found && this.paint.describe(found); });
    this.chart.getZr().on("click", ({ offsetX, offsetY }) => this.choose(this.find(offsetX, offsetY)));
    this.chart.on("datazoom", () => this.onMove?.(this.window));
    element.addEventListener("keydown", (event) => this.press(event));
  }

  // Hosts side by side that share their lowest domain; -1 is outside of the tree.
  listGroups() {
    const groups = [];
    fabric.seats.forEach((device, seat) => {
      const domain = fabric.domainOf[device];
      if (groups.at(-1)?.domain === domain) groups.at(-1).stop = seat + 1;
      else groups.push({ domain, start: seat, stop: seat + 1 });
    });
    return groups;
  }

  get width() { return Math.max(fabric.seats.length, 1); }

  get window() {
    const [zoom] = this.chart.getOption().dataZoom;
    return [zoom.startValue, zoom.endValue];
  }

  draw(paint, [start, stop] = [0, this.width]) {
    this.paint = paint;
    const bands = page.domains.map((domain, number) => [domain.start, domain.stop, this.bands - domain.tier, number]);
    const outside = this.groups.filter(({ domain }) => domain < 0).map(({ start: from, stop: to }) => [from, to, this.bands - 1, -1]);
    const hosts = this.groups.map((group, number) => [group.start, group.stop, this.bands, number]);
    const began = performance.now();
    this.chart.setOption({
      animation: false,
      grid: { left: 0, right: 0, top: 0, bottom: 0 },
      xAxis: { type: "value", min: 0, max: this.width, show: false },
      yAxis: { type: "value", min: 0, max: 1, show: false },
      dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "weakFilter", startValue: start, endValue: stop, minValueSpan: Math.min(2, this.width) }],
      series: [{
        type: "custom", clip: true, silent: true, encode: { x: [0, 1], y: 2 },
        data: [...bands, ...outside, ...hosts],
        renderItem: (_, api) => this.render(api),
      }],
    }, { notMerge: true });
    document.body.dataset.drawMs = (performance.now() - began).toFixed(1);
  }

  render(api) {
    const [from, to, row, number] = [0, 1, 2, 3].map((at) => api.value(at));
    const left = api.coord([from, 0])[0];
    const width = api.coord([to, 0])[0] - left;
    if (row < this.bands) return this.renderBand(number, left, width, row);
    return { type: "group", children: this.renderHosts(this.groups[number], left, width) };
  }

  renderBand(number, left, width, row) {
    const { token, note, isStrong } = number < 0 ? { token: "outside", note: "" } : this.paint.domain(number);
    const names = number < 0 ? ["not in the tree", "outside"] : [fabric.labels[number], fabric.short[number], fabric.labels[number].split("-").slice(1).join("-")].filter(Boolean);
    const isHere = this.cursor?.domain === number && this.cursor.seat === undefined;
    const gap = width > 6 ? 1 : 0;
    const [from, to] = [Math.max(left, 0), Math.min(left + width, this.chart.getWidth())];
    const room = to - from - 8;
    const label = names.find((name) => room > LETTER * name.length);
    const text = note && room > LETTER * (label?.length + note.length + 2) ? `${label}  ${note}` : label;
    // The name of a band stands in the middle of what is seen of it.
    const middle = (from + to) / 2;
    const children = [{
      type: "rect",
      shape: { x: left, y: row * BAND, width: Math.max(width - gap, 0.5), height: BAND - 1, r: width > 12 ? 2 : 0 },
      style: { fill: color(token), stroke: isHere ? color("accent") : undefined, lineWidth: 3 },
    }];
    if (label) children.push({
      type: "text",
      style: { ...fonts(), text, x: middle, y: row * BAND + BAND / 2, align: "center", verticalAlign: "middle", fill: color(isStrong ? "on-mark" : "text") },
    });
    return { type: "group", children };
  }

  // The cells of the hosts of one leaf: one shape for each color, so that 10,000 hosts are quick to draw.
  renderHosts(group, left, width) {
    const { place, cellWidth, cellHeight } = this.placeHosts(group, left, width);
    const gap = cellWidth > 4 && cellHeight > 4 ? 1 : 0;
    const cells = new Map();
    const add = (key, cell) => { if (!cells.has(key)) cells.set(key, []); cells.get(key).push(cell); };
    const texts = [];
    const right = this.chart.getWidth();
    for (let seat = group.start; seat < group.stop; seat++) {
      const { token, mark } = this.paint.seat(seat);
      const [x, y] = place(seat);
      add(token, [x, y, cellWidth - gap, cellHeight - gap]);
      if (mark && cellWidth > 5 && cellHeight > 5) add("on-mark", this.paint.shape(mark, x, y, cellWidth - gap, cellHeight - gap));
      if (this.marked.has(seat) || this.cursor?.seat === seat) add("accent border", [x, y, cellWidth - gap, cellHeight - gap]);
      if (cellHeight > HOST_LABEL.height && cellWidth > HOST_LABEL.least && x + cellWidth > 0 && x < right) {
        const isStrong = token !== "good" && !token.startsWith("free-");
        texts.push({ type: "text", style: { ...fonts(), fontSize: 11, text: cutName(seatName(seat), cellWidth / HOST_LABEL.letter), x: x + cellWidth / 2, y: y + cellHeight / 2, align: "center", verticalAlign: "middle", fill: color(isStrong ? "on-mark" : "text") } });
      }
    }
    return [...cells].map(([key, shape]) => {
      const isBorder = key.endsWith(" border");
      const style = isBorder ? { fill: "none", stroke: color("accent"), lineWidth: 2 } : { fill: color(key) };
      return { type: "cells", shape: { cells: shape }, style };
    }).concat(texts);
  }

  placeHosts({ start, stop }, left, width) {
    const top = this.bands * BAND + 2;
    const height = Math.max(this.chart.getHeight() - top, 20);
    const { columns, rows } = gridOf(stop - start, width, height);
    const [cellWidth, cellHeight] = [Math.max(width - (width > 6 ? 1 : 0), 0.5) / columns, Math.min(height / rows, 64)];
    const place = (seat) => [left + ((seat - start) % columns) * cellWidth, top + Math.floor((seat - start) / columns) * cellHeight];
    const at = (x, y) => {
      const [column, row] = [Math.floor((x - left) / cellWidth), Math.floor((y - top) / cellHeight)];
      const seat = start + row * columns + column;
      return column >= 0 && column < columns && row >= 0 && seat < stop ? seat : -1;
    };
    return { place, at, cellWidth, cellHeight, columns };
  }

  // Returns what is drawn at a pixel: `{domain}`, `{domain, seat}` or null.
  find(x, y) {
    const at = this.chart.convertFromPixel({ xAxisIndex: 0 }, x);
    const group = this.groups.find(({ start, stop }) => at >= start && at < stop);
    if (!group) return null;
    const band = Math.floor(y / BAND);
    if (band < this.bands) {
      const domain = listChain(group.domain).find((number) => page.domains[number].tier === this.bands - band);
      return domain === undefined ? null : { domain };
    }
    const [left, right] = [group.start, group.stop].map((seat) => this.chart.convertToPixel({ xAxisIndex: 0 }, seat));
    const seat = this.placeHosts(group, left, right - left).at(x, y);
    return seat < 0 ? null : { domain: group.domain, seat };
  }

  // A domain fills the width; once it does, and for a host, its own view opens.
  choose(found) {
    if (!found) return;
    showTip("");
    this.cursor = found;
    if (found.seat !== undefined) { this.onOpen({ device: fabric.seats[found.seat] }); return; }
    const { start, stop } = page.domains[found.domain];
    const [from, to] = this.window;
    if (Math.abs(from - start) < 0.01 && Math.abs(to - stop) < 0.01) this.onOpen({ domain: found.domain });
    else this.zoom(start, stop);
  }

  zoom(start, stop) { this.chart.dispatchAction({ type: "dataZoom", startValue: start, endValue: stop }); }

  zoomOut() {
    const [from, to] = this.window;
    const around = page.domains.filter((domain) => domain.start <= from && domain.stop >= to && domain.stop - domain.start > to - from + 0.01);
    const next = around.sort((one, other) => (one.stop - one.start) - (other.stop - other.start))[0];
    this.zoom(next?.start ?? 0, next?.stop ?? this.width);
  }

  // Left and right move among hosts or domains of a tier, up and down among tiers.
  press(event) {
    const cursor = this.cursor ?? (page.domains.length ? { domain: this.findBeside(0, this.bands) } : { seat: 0 });
    const steps = {
      ArrowLeft: () => this.moveTo(this.step(cursor, -1)),
      ArrowRight: () => this.moveTo(this.step(cursor, 1)),
      ArrowUp: () => this.moveTo(this.climb(cursor)),
      ArrowDown: () => this.moveTo(this.descend(cursor)),
      Enter: () => this.choose(cursor),
      Escape: () => this.zoomOut(),
      "-": () => this.zoomOut(),
      "+": () => cursor.domain >= 0 && this.zoom(page.domains[cursor.domain].start, page.domains[cursor.domain].stop),
      0: () => this.zoom(0, this.width),
    };
    if (!steps[event.key]) return;
    event.preventDefault();
    steps[event.key]();
  }

  findBeside(seat, tier) {
    return page.domains.findIndex((domain) => domain.tier === tier && domain.start <= seat && domain.stop > seat);
  }

  step(cursor, by) {
    if (cursor.seat !== undefined) {
      const seat = Math.max(0, Math.min(cursor.seat + by, fabric.seats.length - 1));
      return { seat, domain: fabric.domainOf[fabric.seats[seat]] };
    }
    const { start, stop, tier } = page.domains[cursor.domain];
    const domain = this.findBeside(by < 0 ? start - 1 : stop, tier);
    return domain < 0 ? cursor : { domain };
  }

  climb({ domain, seat }) {
    if (seat !== undefined) return domain < 0 ? { domain, seat } : { domain };
    const { parent } = page.domains[domain];
    return { domain: parent < 0 ? domain : parent };
  }

  descend({ domain, seat }) {
    if (seat !== undefined) return { domain, seat };
    const below = fabric.children[domain];
    return below.length ? { domain: below[0] } : { domain, seat: page.domains[domain].start };
  }

  moveTo(cursor) {
    this.cursor = cursor;
    const [from, to] = this.window;
    const { start } = cursor.seat === undefined ? page.domains[cursor.domain] : { start: cursor.seat };
    const span = to - from;
    const begin = start < from || start >= to ? Math.max(0, Math.min(start - span / 2, this.width - span)) : from;
    this.draw(this.paint, [begin, begin + span]);
    announce(this.paint.describe(cursor));
  }
}
