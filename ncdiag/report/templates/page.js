// Puts the tables and the map on the page.

// "h3->h5", "h3->" and "->h5" choose a direction; any other word is looked for in the names.
function linkMatcher(names, links) {
  const lower = names.map((name) => name.toLowerCase());
  const some = (texts, test) => Uint8Array.from(texts, test);
  return (term) => {
    const arrow = term.match(/^(.*)(?:->|→)(.*)$/);
    if (arrow) {
      const [from, to] = [arrow[1], arrow[2]].map((end) => some(lower, (name) => end === "" || name === end));
      return (row) => from[links.source[row]] && to[links.target[row]];
    }
    const named = some(lower, (name) => name.includes(term));
    const failed = some(links.error_texts, (text) => text.toLowerCase().includes(term));
    return (row) => named[links.source[row]] || named[links.target[row]] || failed[links.error[row]];
  };
}

function linkGrid({ names }, links) {
  const place = ranks(names);
  const number = (title, key, text) => ({ title, key, text: (row) => text(key(row)), number: true });
  const columns = [
    { title: "Source", key: (row) => place[links.source[row]], text: (row) => names[links.source[row]] },
    { title: "Target", key: (row) => place[links.target[row]], text: (row) => names[links.target[row]] },
    { title: "Status", key: (row) => links.status[row], text: (row) => links.statuses[links.status[row]], status: true },
    number("Measured", (row) => links.measured[row], rate),
    number("Expected", (row) => links.expected_rates[links.expected[row]] ?? NaN, rate),
    number("Efficiency", (row) => share(links.efficiency[row]), percent),
    number("Of fleet", (row) => share(links.fleet[row]), percent),
    number("Worst window", (row) => links.worst[row], rate),
    number("CPU idle", (row) => (links.idle[row] === NO_IDLE ? NaN : links.idle[row] / 100), percent),
    number("Tests", (row) => links.tests[row], String),
    { title: "Error", key: (row) => links.error[row] || NaN, text: (row) => links.error_texts[links.error[row]] },
  ];
  if (new Set(links.rail).size > 1) columns.splice(2, 0, number("Rail", (row) => links.rail[row], String));
  // Equal statuses stand worst first, by the yardstick there is.
  const worst = links.efficiency.some((stored) => stored !== NO_SHARE) ? "Efficiency" : "Of fleet";
  return new Grid(document.getElementById("links"), {
    count: links.count, columns, statuses: links.statuses, status: (row) => links.status[row],
    matcher: linkMatcher(names, links), sort: ["Status", worst], what: "links",
    placeholder: "host, host->host or error",
  });
}

function hostGrid({ names, hosts, good, isolate }) {
  const place = ranks(names);
  const [inGood, inIsolate] = [new Set(good), new Set(isolate)];
  const list = (name) => (inIsolate.has(name) ? "isolate" : inGood.has(name) ? "good" : "");
  const efficiency = (row) => hosts.efficiency[row] ?? NaN;
  const columns = [
    { title: "Host", key: (row) => place[row], text: (row) => names[row] },
    { title: "Status", key: (row) => hosts.status[row], text: (row) => hosts.statuses[hosts.status[row]], status: true },
    { title: "Efficiency", key: efficiency, text: (row) => percent(efficiency(row)), number: true },
    { title: "List", key: (row) => ["isolate", "good", ""].indexOf(list(names[row])), text: (row) => list(names[row]) },
    { title: "Reason", key: (row) => (hosts.reason[row] ? row : NaN), text: (row) => hosts.reason[row] },
  ];
  return new Grid(document.getElementById("hosts"), {
    count: hosts.status.length, columns, statuses: hosts.statuses, status: (row) => hosts.status[row],
    matcher: (term) => (row) => `${names[row]} ${hosts.reason[row]}`.toLowerCase().includes(term),
    sort: ["Status", "Host"], what: "hosts", placeholder: "host or reason",
  });
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(source);
    await navigator.clipboard?.writeText(source.textContent).catch(() => {}); // what is selected can still be copied
    button.textContent = "Copied";
  });
}

const data = JSON.parse(document.getElementById("data").textContent);
hostGrid(data);
if (typeof DecompressionStream === "undefined") {
  const section = document.getElementById("links");
  section.append(element("p", {}, "This browser is too old to unpack the links: see links.csv and heatmap.png."));
  section.hidden = false;
} else {
  const links = await unpack(data.links);
  const grid = linkGrid(data, links);
  const pick = (source, target) => {
    grid.filter(`${source}->${target}`);
    grid.section.scrollIntoView();
  };
  if (links.count) new HeatMap(document.getElementById("map"), { ...data, links, pick });
  if (links.total > links.count) {
    grid.section.append(element("p", { class: "hint" },
      `The worst ${links.count.toLocaleString("en")} of ${links.total.toLocaleString("en")} links; all are in links.csv.`));
  }
}
document.documentElement.dataset.ready = "true";
