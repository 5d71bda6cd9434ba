// The form, the link, the worker and the result. What a run means is the simulator's; this only carries it.
const $ = (id) => document.getElementById(id);
const make = (name, set = {}, ...inside) => {
  const element = Object.assign(document.createElement(name), set);
  element.append(...inside);
  return element;
};
const OWN_NAME = "(own)";
let lists, worker, startRun, whyAsked;

// --- the worker ---
const startWorker = () => {
  worker = new Worker(URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    if (data.lists) ready(data.lists);
    if (data.planned) planned(data.planned);
    if (data.step) progress(data.step);
    if (data.result) done(data.result);
    if (data.frame) walkStory(data.frame);
    if (data.why !== undefined) whyTold(data);
    if (data.failed) failed(data.failed);
  };
  worker.onerror = (event) => failed({ error: event.message, causes: [], hint: null, broken: true });
  worker.postMessage({ wasm: $("wasm").textContent });
};
const restartWorker = () => {
  worker.terminate();
  startWorker();
};

const ready = (given) => {
  $("run").disabled = false;
  if (!lists) {
    lists = given;
    $("version").textContent = lists.version;
    fillLists();
    fromLink() || setAsked(EXAMPLES[0].asked);
  }
  if (startRun) {
    startRun = false;
    run();
  }
};

// --- the form ---
const fillLists = () => {
  const names = lists.workloads.filter((row) => !row.parameter);
  const option = (value, text) => make("option", { value, textContent: text || value });
  $("workload").append(...names.map((row) => option(row.workload)), option(OWN_NAME, "a workload file of your own"));
  $("machine").append(option("", "the workload's own"));
  $("machine").append(...lists.machines.map((row) => option(row.machine, `${row.machine}: ${row.help}`)));
  $("text").value = OWN;
};

const values = (box, rows) => {
  $(box).replaceChildren(
    ...rows.map(({ name, value, help }) => {
      const id = `${box}-${name}`;
      const input = make("input", { id, name, placeholder: value ?? "", size: 12 });
      input.setAttribute("aria-describedby", `${id}-help`);
      return make("div", { className: "value" },
        make("label", { htmlFor: id, textContent: name }), input,
        make("span", { id: `${id}-help`, className: "not", textContent: help }));
    }),
  );
};
const given = (box) => {
  const inputs = [...$(box).querySelectorAll("input")].filter((input) => input.value.trim());
  return inputs.map((input) => `${input.name}=${input.value.trim()}`);
};
const count = (box) => {
  const set = given(box).length;
  $(`${box}-count`).textContent = set ? ` (${set} set)` : "";
};
const give = (box, pairs) => {
  for (const pair of pairs || []) {
    const at = pair.indexOf("=");
    const input = $(`${box}-${pair.slice(0, at)}`);
    if (input) input.value = pair.slice(at + 1);
    else lost.push(pair);
  }
  count(box);
};
let lost = []; // Pairs of a link that no field is for: they are asked all the same, and refused in the usual words.

const showWorkload = () => {
  const name = $("workload").value;
  const own = name === OWN_NAME;
  const rows = lists.workloads.filter((row) => row.workload === name);
  const of = lists.experiments[name] || {};
  $("own").hidden = !own;
  $("params-box").hidden = own;
  $("workload-help").textContent = own ? "" : rows.find((row) => !row.parameter)?.help || "";
  values("params", rows.filter((row) => row.parameter && !row.parameter.startsWith("--"))
    .map((row) => ({ name: row.parameter, value: row.default, help: row.help })));
  const sysctl = (row) => ({ name: row.sysctl, value: row.default, help: `${row.takes}: ${row.help}` });
  values("sysctls", lists.sysctls.map(sysctl));
  $("mem").placeholder = of.mem || "";
  $("swap").placeholder = of.swap || "";
  count("params");
  count("sysctls");
};

// A kernel's name in its parts: `linux-5.4`, and features with their signs.
const parseKernel = (text) => {
  const longest = (names, from) => names.filter((name) => from.startsWith(name)).sort((a, b) => b.length - a.length)[0];
  const base = longest(Object.keys(lists.has), text) || "";
  let rest = text.slice(base.length);
  const changes = [];
  while (/^[+-]/.test(rest)) {
    const name = longest(lists.features.map((row) => row.feature), rest.slice(1));
    if (!name) break;
    changes.push([rest[0], name]);
    rest = rest.slice(1 + name.length);
  }
  return { base, changes, rest };
};

let kernelCount = 0;
const addKernel = (text) => {
  const { base, changes, rest } = parseKernel(text);
  const id = `kernel-${++kernelCount}`;
  const box = make("div", { className: "kernel", changes });
  box.dataset.rest = rest;
  box.dataset.unknown = base ? "" : text;
  const select = make("select", { id });
  const option = ({ kernel }) => make("option", { value: kernel, textContent: kernel, selected: kernel === base });
  select.append(...lists.kernels.map(option));
  const features = make("div", { className: "features" });
  const show = () => {
    const has = new Set(lists.has[select.value]);
    features.replaceChildren(...lists.features.map(({ feature, help }) => {
      const key = `${id}-${feature}`;
      const changed = changes.find(([, name]) => name === feature);
      const checked = changed ? changed[0] === "+" : has.has(feature);
      const input = make("input", { type: "checkbox", id: key, name: feature, checked });
      input.dataset.has = has.has(feature);
      return make("div", {}, input, make("label", { htmlFor: key }, make("b", { textContent: feature }), ` ${help}`));
    }));
    tell();
  };
  const told = make("span", { className: "count" });
  const tell = () => {
    const text = box.dataset.unknown || kernelText(box).slice(select.value.length) || "none";
    told.textContent = ` ${text}`;
  };
  const remove = make("button", { type: "button", className: "quiet remove", textContent: "Remove" });
  remove.onclick = () => {
    box.remove();
    nameKernels();
    $("add-kernel").focus();
    changed();
  };
  select.onchange = () => {
    changes.length = 0;
    box.dataset.rest = box.dataset.unknown = "";
    show();
  };
  features.onchange = (event) => {
    const { name, checked } = event.target;
    const at = changes.findIndex(([, other]) => other === name);
    if (at >= 0) changes.splice(at, 1);
    if (String(checked) !== event.target.dataset.has) changes.push([checked ? "+" : "-", name]);
    tell();
  };
  box.append(make("div", { className: "pair" }, make("label", { htmlFor: id }), select, remove),
    make("details", {}, make("summary", {}, "Changes to it:", told), features));
  $("kernels").append(box);
  show();
  nameKernels();
};
// What no name is known for goes along as it was written, and is refused in the usual words.
const kernelText = (box) => {
  const changes = box.changes.map((change) => change.join("")).join("");
  return box.dataset.unknown || box.querySelector("select").value + changes + box.dataset.rest;
};
const nameKernels = () => {
  const boxes = [...$("kernels").children];
  boxes.forEach((box, index) => {
    box.querySelector("label").textContent = index ? (boxes.length > 2 ? `Candidate ${index}` : "Candidate") : "Baseline";
    box.querySelector(".remove").hidden = boxes.length < 3;
  });
};

// --- what is asked: form, link and command are three forms of it ---
const asked = () => {
  const name = $("workload").value;
  const own = name === OWN_NAME;
  const seeds = $("seeds").value.trim();
  const ask = {
    workload: own ? "" : name,
    text: own ? $("text").value : "",
    kernels: [...$("kernels").children].map(kernelText),
    mem: $("mem").value.trim(),
    machine: $("machine").value,
    swap: $("swap").value.trim(),
    params: [...(own ? [] : given("params")), ...lost],
    sysctls: given("sysctls"),
  };
  if (seeds) ask.seeds = /^\d+$/.test(seeds) ? Number(seeds) : seeds;
  return ask;
};
// What a link names and nobody knows is asked all the same, and refused in the usual words.
const pick = (id, value) => {
  $(id).value = value;
  if ($(id).value === value) return;
  $(id).append(make("option", { value, textContent: value }));
  $(id).value = value;
};
const setAsked = (ask) => {
  lost = [];
  pick("workload", ask.text ? OWN_NAME : ask.workload);
  if (ask.text) $("text").value = ask.text;
  showWorkload();
  give("params", ask.params);
  give("sysctls", ask.sysctls);
  $("mem").value = ask.mem || "";
  pick("machine", ask.machine || "");
  $("swap").value = ask.swap || "";
  $("seeds").value = ask.seeds || "";
  const own = lists.experiments[ask.workload]?.kernels.slice(0, 2) ?? ["linux-6.1", "linux-6.12"];
  const kernels = ask.kernels?.length ? ask.kernels : own;
  $("kernels").replaceChildren();
  kernels.forEach(addKernel);
  changed();
};
const toLink = (ask) => {
  const link = new URLSearchParams();
  for (const [key, value] of Object.entries(ask)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) link.append(key, each);
  }
  return `#${link}`;
};
const fromLink = () => {
  const link = new URLSearchParams(location.hash.slice(1));
  if (!link.get("workload") && !link.get("text")) return false;
  const ask = { kernels: link.getAll("kernels"), params: link.getAll("params"), sysctls: link.getAll("sysctls") };
  for (const key of ["workload", "text", "mem", "machine", "swap", "seeds"]) ask[key] = link.get(key) || "";
  setAsked(ask);
  startRun = true;
  return true;
};
const quoted = (word) => (/^[\w\-./:=+,%@]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
const changed = () => {
  const ask = asked();
  const words = ["pagetide compare", ask.text ? "workload.toml" : ask.workload];
  ask.kernels.forEach((kernel) => words.push("--kernel", quoted(kernel)));
  for (const key of ["machine", "mem", "swap"]) if (ask[key]) words.push(`--${key}`, quoted(ask[key]));
  ask.params.forEach((pair) => words.push("--param", quoted(pair)));
  ask.sysctls.forEach((pair) => words.push("--set", quoted(pair)));
  if (ask.seeds) words.push("--seeds", ask.seeds);
  $("command").textContent = words.join(" ");
};

// --- a run ---
const run = () => {
  const ask = asked();
  const link = toLink(ask);
  if (location.hash !== link) history.replaceState(null, "", link);
  $("result").hidden = false;
  $("shown").hidden = true;
  $("failed").replaceChildren();
  $("progress").hidden = false;
  $("progress").removeAttribute("value");
  $("state").textContent = "Begins.";
  $("run").disabled = true;
  $("cancel").hidden = false;
  document.body.dataset.state = "runs";
  worker.postMessage({ asked: ask });
  $("result").scrollIntoView({ behavior: "smooth", block: "start" });
};
const planned = ({ runs }) => {
  $("progress").max = runs.length;
  $("state").textContent = `${runs.length} runs.`;
};
const seconds = (ns) => (ns < 1e9 ? `${Math.round(ns / 1e6)} ms` : `${(ns / 1e9).toFixed(ns < 1e11 ? 1 : 0)} s`);
const progress = ({ run, of, label, ns }) => {
  $("progress").max = of;
  $("progress").value = run + 0.5;
  // Said once for each run; the clock is for eyes only.
  const text = `Run ${run + 1} of ${of}: ${label}.`;
  if ($("state").textContent !== text) $("state").textContent = text;
  $("clock").textContent = `${seconds(ns)} simulated`;
};
const ended = (text, state) => {
  $("progress").hidden = true;
  $("cancel").hidden = true;
  $("run").disabled = false;
  $("state").textContent = text;
  $("clock").textContent = "";
  document.body.dataset.state = state;
};
const failed = (told) => {
  ended("", "failed");
  $("result").hidden = false;
  $("failed").replaceChildren(...words(told));
  if (told.broken) restartWorker();
};
// An error as the command line tells it.
const words = ({ error, causes, hint }) => {
  const lines = [make("p", {}, make("b", { textContent: "error: " }), error)];
  causes.forEach((cause) => lines.push(make("p", { textContent: `caused by: ${cause}` })));
  if (hint) lines.push(make("p", {}, make("b", { textContent: "hint: " }), hint));
  return lines;
};
const done = (given) => {
  const took = given.seconds < 10 ? given.seconds.toFixed(1) : Math.round(given.seconds);
  ended(`Done: ${given.planned.runs.length} runs in ${took} s.`, "done");
  $("failed").replaceChildren(...given.planned.told.map((text) => make("p", { className: "not", textContent: text })));
  $("shown").hidden = false;
  showReport(given.shown.html);
  showText("words", given.shown.text, "pagetide.txt", "text/plain");
  showText("data-view", given.shown.json, "pagetide.json", "application/json");
  walkBegin(given.walks);
  $("why-run").replaceChildren(...given.planned.runs.map((label, value) => make("option", { value, textContent: label })));
  $("why-told").replaceChildren();
  $("why-failed").replaceChildren();
};

// The page that `pagetide report` would make, without its own frame.
const parts = (html) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const main = page.querySelector("main");
  main.querySelector("footer")?.remove();
  const title = main.querySelector("h1");
  title?.replaceWith(make("h2", { className: "question", textContent: title.textContent }));
  return { page, main };
};
const showReport = (html) => {
  const { page, main } = parts(html);
  $("report").replaceChildren(...main.childNodes, page.getElementById("data"));
  const script = page.querySelector("body > script:not([type])").textContent;
  $("report").append(make("script", { textContent: script }));
};

// Why a run went as it went: made again, with every event.
const why = (run, file = "", page = "") => {
  $("why-run").value = run;
  $("why-file").value = file;
  $("why-page").value = page;
  $("why-go").disabled = true;
  $("why-failed").replaceChildren();
  $("why-told").setAttribute("aria-busy", true);
  $("why-told").replaceChildren(make("p", { className: "not", textContent: "Runs again, with every event." }));
  whyAsked = { run, file, page };
  worker.postMessage({ why: whyAsked });
};
const whyTold = ({ why: html, wrong, of }) => {
  if (JSON.stringify(of) !== JSON.stringify(whyAsked)) return; // Something else was asked meanwhile.
  $("why-go").disabled = false;
  $("why-told").setAttribute("aria-busy", false);
  $("why-told").replaceChildren(...(html ? parts(html).main.childNodes : []));
  if (wrong) $("why-failed").replaceChildren(...words(wrong));
  if (wrong?.broken) restartWorker();
};
const showText = (place, text, name, type) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const save = make("a", { href: url, download: name, textContent: `Save ${name}` });
  $(place).replaceChildren(make("p", {}, save), make("pre", { textContent: text, tabIndex: 0 }));
};

// --- what a person does ---
$("examples").append(...EXAMPLES.map(({ title, about, asked: ask }) => {
  const inside = [make("b", { textContent: title }), make("span", { textContent: about })];
  const button = make("button", { type: "button", className: "example" }, ...inside);
  button.onclick = () => {
    if (document.body.dataset.state === "runs") cancel();
    if (lists) setAsked(ask);
    else location.hash = toLink(ask);
    if (lists && !$("run").disabled) run();
    else startRun = true;
  };
  return make("li", {}, button);
}));
const cancel = () => {
  restartWorker();
  ended("Cancelled.", "cancelled");
  $("run").disabled = true; // Until the new worker is ready.
};
$("asked").onsubmit = (event) => {
  event.preventDefault();
  run();
};
$("cancel").onclick = () => {
  cancel();
  $("cancel").hidden = true;
  $("link").focus();
};
$("asked").oninput = () => {
  count("params");
  count("sysctls");
  changed();
};
$("workload").onchange = () => {
  const name = $("workload").value;
  setAsked(name === OWN_NAME ? { text: $("text").value } : { workload: name });
};
$("add-kernel").onclick = () => {
  addKernel(kernelText($("kernels").lastElementChild));
  changed();
};
$("link").onclick = async () => {
  const link = toLink(asked());
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
  } catch {
    $("link").textContent = "It is in the address bar";
  }
  setTimeout(() => ($("link").textContent = "Copy link"), 2000);
};
addEventListener("hashchange", () => {
  if (lists && fromLink() && !$("run").disabled) ready(lists);
});
const tabs = [...$("tabs").children];
const choose = (tab, focus) => {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  if (tab.id === "tab-walk") walkDraw();
};
$("question").onsubmit = (event) => {
  event.preventDefault();
  why(Number($("why-run").value), $("why-file").value, $("why-page").value);
};
tabs.forEach((tab, index) => {
  tab.onclick = () => choose(tab);
  tab.onkeydown = ({ key }) => {
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 }[key];
    if (to !== undefined) choose(tabs.at(to % tabs.length), true);
  };
});
startWorker();
