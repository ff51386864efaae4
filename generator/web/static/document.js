// The document that the page shows: it is in the file, or a server sends it and says when it changes.
const REFRESH_MS = 10_000;
const live = { isLive: false, tag: "", checkedAt: 0, problem: "" };
let page = JSON.parse(byId("document").textContent) ?? (await loadDocument());

async function loadDocument() {
  live.isLive = true;
  const answer = await fetchDocument();
  if (!answer?.ok) {
    const why = answer ? (await answer.text()).slice(0, 300) : "the server does not answer";
    byId("status").textContent = `No data yet: ${why}`;
    document.body.dataset.failed = answer?.status ?? "offline";
    setTimeout(() => location.reload(), REFRESH_MS);
    throw new Error(`document.json: ${answer?.status}`);
  }
  return answer.json();
}

// Returns the answer; null without one. Without a valid login, the login form opens.
async function fetchDocument() {
  const headers = live.tag ? { "if-none-match": live.tag } : {};
  const answer = await fetch("document.json", { cache: "no-store", headers }).catch(() => null);
  if (answer?.status === 401) location.assign("login");
  if (answer?.ok || answer?.status === 304) {
    live.checkedAt = Date.now();
    live.tag = answer.headers.get("etag") ?? live.tag;
  }
  live.problem = !answer ? "the server does not answer" : answer.ok || answer.status === 304 ? "" : `the server answers ${answer.status}`;
  return answer;
}

// Asks for a newer document, and calls `show` if there is one.
async function refresh(show) {
  const answer = await fetchDocument();
  if (!answer?.ok) return;
  page = await answer.json();
  show();
}
