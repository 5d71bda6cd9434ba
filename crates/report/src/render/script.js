// Adds what paper does not have: values under the pointer, and buttons that copy commands.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const short = (value) => {
    if (value === 0) return "0";
    return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
  };
  const add = (parent, name, className) => {
    const element = document.createElement(name);
    element.className = className;
    parent.append(element);
    return element;
  };
  for (const plot of document.querySelectorAll("[data-lines]")) {
    const [name, column, number] = plot.dataset.lines.split("/");
    const panel = data.figures[name].columns[column].panels[number];
    let hair, tip;
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const x = panel.log
        ? panel.x[0] * (panel.x[1] / panel.x[0]) ** share
        : panel.x[0] + share * (panel.x[1] - panel.x[0]);
      hair = hair || add(plot, "div", "hair");
      tip = tip || add(plot, "div", "tip");
      hair.style.left = share * 100 + "%";
      hair.style.height = plot.firstElementChild.getBoundingClientRect().height + "px";
      const told = panel.lines.map((line) => {
        let at = line.x.findIndex((value) => value > x);
        at = at < 0 ? line.x.length - 1 : Math.max(0, at - 1);
        return line.label + " " + short(line.y[at]);
      });
      tip.textContent = short(x) + ": " + told.join(", ");
      tip.style.left = share > 0.5 ? "auto" : share * 100 + "%";
      tip.style.right = share > 0.5 ? (1 - share) * 100 + "%" : "auto";
    });
    plot.addEventListener("pointerleave", () => {
      if (hair) hair.remove();
      if (tip) tip.remove();
      hair = tip = undefined;
    });
  }
  for (const command of document.querySelectorAll("code.command")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy";
    const text = command.textContent;
    button.addEventListener("click", () => {
      if (!navigator.clipboard) return;
      navigator.clipboard.writeText(text).then(() => (button.textContent = "copied"));
    });
    command.prepend(button);
  }
})();
