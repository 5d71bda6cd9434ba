// A walk through memory over time: a map of page frames, the lists and zones, from looks that a run kept.
const COLUMNS = 96;
const CELL = 6;
const COLORS = ["reserved", "free", "percpu", "kernel", "anon", "anon-active", "file", "file-active", "locked"];
let walks = [], walkEnd = 0, walkTimer, walkSides = [];
const STEPS = 240;
const STORY_MAX = 40;

const walkBegin = (given) => {
  clearInterval(walkTimer);
  walkTimer = undefined;
  walks = given;
  walkEnd = Math.max(...walks.map((walk) => walk.moments.at(-1).ns));
  const slider = make("input", { type: "range", id: "when", min: 0, max: STEPS, value: STEPS, step: 1 });
  slider.oninput = walkDraw;
  const play = make("button", { type: "button", id: "play", textContent: "Play" });
  play.onclick = () => (walkTimer ? walkStop() : walkPlay());
  const key = (color, text) => make("li", {}, make("i", { className: `use ${color}`, ariaHidden: "true" }), text);
  const uses = walks[0].uses.map((use, index) => key(COLORS[index], use)).slice(1);
  const legend = make("ul", { className: "legend" }, ...uses, key("dirty", "dot: dirty or under writeback"));
  walkSides = walks.map(walkSide);
  $("walk").replaceChildren(
    make("p", { className: "not", textContent:
      "Each square is one page frame of those at even distances, in the order of their numbers. Choose one for its story: " +
      "click, or go there with the arrow keys and press Enter." }),
    make("div", { className: "walk-controls" }, play, make("label", { htmlFor: "when", textContent: "Time" }), slider,
      make("output", { id: "now", htmlFor: "when", ariaLive: "off" })),
    legend,
    make("div", { className: "sides" }, ...walkSides.map(({ element }) => element)),
  );
  if (!$("walk").hidden) walkDraw();
};

const walkPlay = () => {
  if (Number($("when").value) >= STEPS) $("when").value = 0;
  $("play").textContent = "Pause";
  walkTimer = setInterval(() => {
    $("when").value = Number($("when").value) + 1;
    walkDraw();
    if (Number($("when").value) >= STEPS) walkStop();
  }, 60);
};
const walkStop = () => {
  clearInterval(walkTimer);
  walkTimer = undefined;
  $("play").textContent = "Play";
};

// One run: its map, and the places for what is told beside it.
const walkSide = (walk, run) => {
  const rows = Math.ceil(walk.places.length / COLUMNS);
  const canvas = make("canvas", { width: COLUMNS * CELL, height: rows * CELL, tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `Memory map of ${walk.label}: arrow keys choose a frame, Enter tells its story`);
  const side = { walk, run, canvas, cursor: undefined };
  side.story = make("div", { className: "story" });
  side.story.setAttribute("aria-live", "polite");
  side.element = make("div", { className: "side" }, make("h3", { textContent: walk.label }), canvas, side.story);
  const parts = {
    lists: "Lists, pages",
    files: "Page cache by file, pages",
    zones: "Zones, pages",
    counted: "So far",
    tasks: "Tasks",
  };
  for (const [part, title] of Object.entries(parts)) {
    side[part] = make("div");
    side.element.append(make("h4", { textContent: title }), side[part]);
  }
  const ask = (place) => {
    side.cursor = Math.max(0, Math.min(walk.places.length - 1, place));
    walkDraw();
  };
  const tell = () => worker.postMessage({ frame: { run, place: side.cursor } });
  canvas.onclick = (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * COLUMNS);
    ask(Math.floor(((event.clientY - box.top) / box.height) * rows) * COLUMNS + column);
    tell();
  };
  canvas.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: COLUMNS, ArrowUp: -COLUMNS }[event.key];
    if (by) ask((side.cursor ?? 0) + by);
    else if (event.key === "Enter" && side.cursor !== undefined) tell();
    else return;
    event.preventDefault();
  };
  return side;
};

const walkStory = ({ run, place, pfn, lines }) => {
  if (walkSides[run]?.cursor !== place) return;
  const item = ([ns, text], index) => {
    const until = index + 1 < lines.length ? ` to ${walkTime(lines[index + 1][0])}` : " on";
    const [, page, file] = text.match(/^page (\d+) of (.*), (?:the root )?cgroup/) ?? [];
    const all = make("button", { type: "button", className: "quiet small", textContent: "all events of it" });
    all.onclick = () => {
      choose($("tab-why"), true);
      why(run, file, page);
    };
    const known = file && walkSides[run].paths.includes(file) ? [" ", all] : [];
    return make("li", {}, make("b", { textContent: `${walkTime(ns)}${until}` }), ` ${text}`, ...known);
  };
  const shown = lines.slice(0, STORY_MAX);
  const left = lines.length - shown.length;
  const more = left ? [make("p", { className: "not", textContent: `${left} more changes` })] : [];
  const title = make("h4", { textContent: `Frame ${pfn}, as far as looks tell` });
  walkSides[run].story.replaceChildren(title, make("ol", {}, ...shown.map(item)), ...more);
};

const walkTime = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toFixed(2)} s` : `${(ns / 1e6).toFixed(0)} ms`);
const count3 = (number) => number.toLocaleString("en-US");

const walkDraw = () => {
  if (!walks.length) return;
  const at = (walkEnd * Number($("when").value)) / STEPS;
  $("now").textContent = walkTime(at);
  $("when").setAttribute("aria-valuetext", walkTime(at));
  const style = getComputedStyle(document.body);
  const colors = COLORS.map((name) => style.getPropertyValue(`--use-${name}`).trim());
  const mark = style.getPropertyValue("--use-dirty").trim();
  for (const side of walkSides) {
    const moments = side.walk.moments;
    let index = moments.findIndex(({ ns }) => ns > at);
    index = index < 0 ? moments.length - 1 : Math.max(0, index - 1);
    walkMap(side, index, colors, mark);
    walkTables(side, moments[index]);
  }
};

const walkMap = ({ walk, canvas, cursor }, index, colors, mark) => {
  const pen = canvas.getContext("2d");
  const places = walk.places.length;
  const frames = walk.map.subarray(index * places, (index + 1) * places);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  frames.forEach((frame, place) => {
    const [x, y] = [(place % COLUMNS) * CELL, Math.floor(place / COLUMNS) * CELL];
    pen.fillStyle = colors[frame & 15];
    pen.fillRect(x, y, CELL - 0.5, CELL - 0.5);
    if (frame & 16) {
      pen.fillStyle = mark;
      pen.fillRect(x + 1.75, y + 1.75, 2, 2);
    }
  });
  if (cursor !== undefined) {
    pen.strokeStyle = mark;
    pen.lineWidth = 1.5;
    pen.strokeRect((cursor % COLUMNS) * CELL - 1, Math.floor(cursor / COLUMNS) * CELL - 1, CELL + 1.5, CELL + 1.5);
  }
};

const table = (headings, rows) => make("table", { className: "small" },
  make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col", textContent: text })))),
  make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, index) =>
    make(index ? "td" : "th", index ? {} : { scope: "row" }, cell))))));
const bar = (share, name) => {
  const element = make("i", { className: `amount ${name}`, ariaHidden: "true" });
  element.style.width = `${Math.min(100, share * 100)}%`;
  element.hidden = share === 0;
  return make("span", { className: "amounts" }, element);
};

// What a list is called: generations by their distance from the youngest, as their numbers grow for ever.
const walkLists = (moment) => moment.lists.map(([cgroup, list, generation, pages]) => {
  const same = moment.lists.filter(([other, name]) => other === cgroup && name === list);
  const age = generation === null ? "" : `, generation ${Math.max(...same.map((row) => row[2])) - generation}`;
  return { key: `${cgroup || "root"}: ${list}${age}`, list, pages };
});
const CLASS = { inactive_anon: "anon", active_anon: "anon-active", inactive_file: "file", active_file: "file-active",
  unevictable: "locked", anon: "anon-active", file: "file-active" };

const walkTables = (side, moment) => {
  const { walk } = side;
  const managed = walk.zones.reduce((sum, [, , pages]) => sum + pages, 0);
  if (!side.keys) {
    side.keys = new Map(); // Rows stay where they are.
    walk.moments.forEach((each) => walkLists(each).forEach(({ key, list }) => side.keys.set(key, list)));
    const named = walk.moments.flatMap((each) => each.files.filter(([, pages]) => pages).map(([path]) => path));
    side.paths = [...new Set(named)].sort();
    side.files.hidden = side.files.previousSibling.hidden = !side.paths.length || side.paths.length > 24;
  }
  const pages = new Map(walkLists(moment).map((row) => [row.key, row.pages]));
  side.lists.replaceChildren(table(["cgroup: list", "pages", ""], [...side.keys].sort().map(([key, list]) =>
    [key, count3(pages.get(key) || 0), bar((pages.get(key) || 0) / managed, CLASS[list])])));
  const files = new Map(moment.files);
  side.files.replaceChildren(table(["file", "pages", ""], side.paths.map((path) =>
    [path, count3(files.get(path) || 0), bar((files.get(path) || 0) / managed, "free-part")])));
  side.zones.replaceChildren(table(["zone", "free", "min", "low", "high", ""], moment.zones.map(([free, marks], index) => {
    const [node, name, all] = walk.zones[index];
    return [`node ${node} ${name}`, count3(free), ...marks.map(count3), bar(all ? free / all : 0, "free-part")];
  })));
  const counted = walk.counters.map((name, index) => `${count3(moment.counted[index])} ${name}`);
  side.counted.replaceChildren(make("p", { textContent: counted.join(", ") }));
  const doing = (doing, what) => `${doing}${doing === "waits" ? ":" : " on"} ${what}`;
  const tasks = moment.tasks.slice(0, 8).map(([task, ...does]) => [task, doing(...does)]);
  if (moment.tasks.length > 8) tasks.push([`${moment.tasks.length - 8} more`, ""]);
  side.tasks.replaceChildren(table(["task", "what it does"], tasks));
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => walkDraw());
