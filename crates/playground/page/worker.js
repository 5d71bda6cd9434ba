// Runs the simulator apart from the page, so that the page stays alive and a run can be ended by ending this.
let exports;

// What the page sends first: the compiled crate, as base64 of gzip.
const load = async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { instance } = await WebAssembly.instantiate(await new Response(stream).arrayBuffer(), {});
  exports = instance.exports;
};

// The bytes of an answer; see abi.rs.
const ask = (question) => {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const at = exports.question(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  let failed = 1;
  let broken = false;
  try {
    failed = exports.ask();
  } catch (error) {
    broken = true; // A panic, whose words are the answer.
    if (exports.answer_bytes() === 0) throw { error: "the run ended the simulator", causes: [String(error)], hint: null };
  }
  const answer = new Uint8Array(exports.memory.buffer, exports.answer(), exports.answer_bytes()).slice();
  if (failed) throw { ...json(answer), broken };
  return answer;
};
const text = (bytes) => new TextDecoder().decode(bytes);
const json = (bytes) => JSON.parse(text(bytes));

// All runs of a comparison. The page hears a few times a second how far they are.
const compare = (asked) => {
  const planned = json(ask({ ask: "begin", ...asked }));
  postMessage({ planned });
  const begin = performance.now();
  let told = 0;
  for (;;) {
    const step = json(ask({ ask: "step" }));
    if (step.over) break;
    if (performance.now() - told > 60) {
      told = performance.now();
      postMessage({ step });
    }
  }
  const shown = {};
  for (const format of ["html", "text", "json"]) shown[format] = text(ask({ ask: "shown", format }));
  const walks = json(ask({ ask: "walk" }));
  walks.forEach((walk, run) => (walk.map = ask({ ask: "map", run })));
  return { planned, shown, walks, seconds: (performance.now() - begin) / 1000 };
};

onmessage = async ({ data }) => {
  try {
    if (data.wasm) {
      await load(data.wasm);
      postMessage({ lists: json(ask({ ask: "lists" })) });
    } else if (data.asked) {
      postMessage({ result: compare(data.asked) });
    } else if (data.why) {
      postMessage({ why: text(ask({ ask: "explain", format: "html", ...data.why })), of: data.why });
    } else if (data.frame) {
      postMessage({ frame: { ...data.frame, ...json(ask({ ask: "frame", ...data.frame })) } });
    }
  } catch (error) {
    const told = error.error ? error : { error: String(error), causes: [], hint: null, broken: true };
    postMessage(data.why ? { why: "", wrong: told, of: data.why } : { failed: told });
  }
};
