// Charts of Apache ECharts in the colors of the page, with one tip for all of them.
const charts = new Map();
const color = (token) => getComputedStyle(document.documentElement).getPropertyValue(`--${token}`).trim();
const NUM_JOB_COLORS = 10;

// Returns the chart of an element, which fills it; it is drawn again when the element changes its size.
function chartIn(element) {
  let chart = charts.get(element);
  if (!chart) {
    chart = echarts.init(element, null, { renderer: "canvas" });
    charts.set(element, chart);
    new ResizeObserver(() => element.clientWidth && chart.resize()).observe(element);
  }
  return chart;
}

function dropCharts(parent) {
  for (const [element, chart] of charts) {
    if (!parent.contains(element)) continue;
    chart.dispose();
    charts.delete(element);
  }
}

const fonts = () => ({ color: color("text"), fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 });

function showTip(text, x, y) {
  const tip = byId("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const room = { x: innerWidth - tip.offsetWidth - 8, y: innerHeight - tip.offsetHeight - 8 };
  tip.style.left = `${Math.max(4, Math.min(x + 14, room.x))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, room.y))}px`;
}

// Shows what `textAt(x, y)` returns beside the pointer; pixels are those of the chart.
function tipOver(chart, textAt) {
  const surface = chart.getZr();
  surface.on("mousemove", ({ event, offsetX, offsetY }) => showTip(textAt(offsetX, offsetY), event.clientX, event.clientY));
  surface.on("globalout", () => showTip(""));
}

// A line of samples: a color, its mark and what it means.
function makeLegend(entries) {
  return make("ul", { className: "legend", "aria-label": "Legend" }, entries.map(({ token, glyph, text }) => {
    const sample = make("span", { className: "sample" }, glyph ?? "");
    sample.style.background = color(token);
    sample.style.color = color("on-mark");
    return make("li", null, sample, text);
  }));
}
