// Drives the page in a browser by its debugging pipe, which needs no package: `node browser.mjs PAGE RESULT.json LINK`
// runs what LINK asks, holds the page's JSON against the command line's, and prints what it took.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// A tab of a headless browser with the page in it.
export const open = async (browser, page, link = "", size = [1280, 900], dark = false) => {
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"];
  const child = spawn(browser, [...flags, `--window-size=${size}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const waiting = new Map();
  const told = [];
  let next = 1, rest = "";
  child.stdio[4].on("data", (chunk) => {
    const messages = (rest + chunk).split("\0");
    rest = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      if (message.method === "Runtime.exceptionThrown") told.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
      if (message.method === "Log.entryAdded") told.push(message.params.entry.text);
      waiting.get(message.id)?.(message);
    }
  });
  const call = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
    const id = next++;
    waiting.set(id, ({ result, error }) => (error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result)));
    child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  });
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
  const tab = (method, params) => call(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log"]) await tab(`${domain}.enable`);
  const [width, height] = size;
  await tab("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  await tab("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  await tab("Page.navigate", { url: pathToFileURL(page).href + link });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await tab("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  // Waits until an expression holds; returns the milliseconds.
  const until = async (expression, most = 120_000) => {
    const begin = performance.now();
    while (!(await evaluate(expression).catch(() => false))) {
      if (performance.now() - begin > most) throw new Error(`not within ${most} ms: ${expression}\n${told.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return performance.now() - begin;
  };
  return { tab, evaluate, until, told, close: () => child.kill() };
};

// Two runs of one scenario differ in the time that they took on a clock, and in nothing else.
export const withoutClock = (json) => json.replaceAll(/"wall_seconds": [^,\n]*/g, '"wall_seconds": null').trimEnd();

const test = async ([page, expected, link]) => {
  const browser = process.env.CHROME ?? "chromium";
  const tab = await open(browser, page, link);
  try {
    const took = await tab.until(`["done", "failed"].includes(document.body.dataset.state)`);
    const failed = await tab.evaluate(`document.getElementById("failed").textContent`);
    const json = await tab.evaluate(`document.querySelector("#data-view pre")?.textContent ?? ""`);
    if (withoutClock(json) !== withoutClock(readFileSync(expected, "utf8"))) throw new Error(`another result than the command line's: ${failed}`);
    const state = await tab.evaluate(`document.getElementById("state").textContent`);
    console.log(`the same ${json.length} bytes; ${(took / 1000).toFixed(1)} s from opening the page: ${state}`);
    // Cancelling ends a run, and the page goes on.
    await tab.evaluate(`document.querySelectorAll(".example")[2].click()`);
    await tab.until(`!document.getElementById("cancel").hidden`);
    await tab.evaluate(`document.getElementById("cancel").click()`);
    await tab.until(`document.body.dataset.state === "cancelled" && !document.getElementById("run").disabled`);
    // What is wrong is told in the words of the command line.
    await tab.evaluate(`document.getElementById("mem").value = "5M"; document.getElementById("run").click()`);
    await tab.until(`document.body.dataset.state === "failed"`);
    console.log(await tab.evaluate(`document.getElementById("failed").textContent`));
    if (tab.told.length) throw new Error(tab.told.join("\n"));
  } finally {
    tab.close();
  }
};

if (process.argv[1] === new URL(import.meta.url).pathname) {
  test(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
}
