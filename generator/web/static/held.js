// Draws a held plan: the domains that it touches, before and after it, and the nodes that go from one to another.
const HELD_HEIGHT = 320;
const BOX = { height: 54, top: 26 };

// The place of each box of one side. A domain that is on both sides has the same column.
function placeBoxes(boxes, columns, width, top) {
  const room = Math.min(width / Math.max(columns.length, 1), 300);
  return boxes.map((box) => ({ ...box, x: columns.indexOf(box.name) * room + 4, width: Math.max(room - 8, 4), top }));
}

function styleOfFlow([from, to]) { return from < 0 ? "exchange" : to < 0 ? "missing" : "swapped"; }

function describeFlow([from, to, count], drawing) {
  const place = (boxes, number) => (number < 0 ? "no drawn domain" : boxes[number].name);
  return `${count} ${count === 1 ? "node" : "nodes"} from ${place(drawing.before, from)} to ${place(drawing.after, to)}`;
}

class HeldPicture {
  constructor(canvas, drawing) {
    Object.assign(this, { canvas, drawing });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `The held plan: ${drawing.flows.map((flow) => describeFlow(flow, drawing)).join("; ") || "no node moves"}.`);
  }

  draw() {
    const { canvas, drawing } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    [canvas.width, canvas.height] = [width * scale, HELD_HEIGHT * scale];
    const context = this.context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "12px system-ui, sans-serif";
    const style = getComputedStyle(document.documentElement);
    this.color = (name) => style.getPropertyValue(`--${name}`).trim();
    const columns = [...new Set([...drawing.before, ...drawing.after].map((box) => box.name))];
    const before = placeBoxes(drawing.before, columns, width, BOX.top);
    const after = placeBoxes(drawing.after, columns, width, HELD_HEIGHT - BOX.height - 8);
    this.write("Before", 4, 16, 80);
    this.write("After", 4, HELD_HEIGHT - BOX.height - 16, 80);
    for (const box of [...before, ...after]) this.drawBox(box);
    const most = Math.max(1, ...drawing.flows.map((flow) => flow[2]));
    for (const flow of drawing.flows) this.drawFlow(flow, before[flow[0]], after[flow[1]], most);
  }

  drawBox({ name, parent, nodes, x, width, top }) {
    const { context } = this;
    context.fillStyle = this.color("box");
    context.fillRect(x, top, width, BOX.height);
    context.strokeStyle = this.color("line");
    context.lineWidth = 1;
    context.setLineDash([]);
    context.strokeRect(x, top, width, BOX.height);
    const lines = [name, `${nodes} nodes`, parent && `in ${parent}`];
    lines.forEach((line, index) => line && this.write(line, x + 5, top + 15 + 16 * index, width - 8));
  }

  // A flow that leaves the drawing ends half way, with the mark of what is missing.
  drawFlow(flow, from, to, most) {
    const { context } = this;
    const name = styleOfFlow(flow);
    const low = HELD_HEIGHT - BOX.height - 8;
    const start = from ? { x: from.x + from.width / 2, y: BOX.top + BOX.height } : { x: to.x + to.width * 0.7, y: low - 80 };
    const end = to ? { x: to.x + to.width / 2, y: low } : { x: start.x, y: start.y + 80 };
    drawLine(context, name, start, end);
    context.lineWidth = 1 + (5 * flow[2]) / most;
    context.strokeStyle = colorOf(name);
    context.setLineDash(STYLES[name].dash);
    context.beginPath();
    context.moveTo(start.x, start.y);
    context.lineTo(end.x, end.y);
    context.stroke();
    const text = `${flow[2]} ${flow[2] === 1 ? "node" : "nodes"}${to ? "" : " out"}${from ? "" : " in"}`;
    this.write(text, start.x + (end.x - start.x) * 0.6 + 8, start.y + (end.y - start.y) * 0.6, 160);
  }

  write(text, x, y, width) {
    const most = Math.floor(width / 6.5);
    if (most < 4) return;
    this.context.fillStyle = this.color("text");
    this.context.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
  }
}
