// Host by host: how much of what it should reach each link reaches.

const MAX_CELLS = 2048; // a canvas with more is slow and no easier to read
const MAX_CANVAS = 4096;
const MAX_CELL = 60;
const LABEL_FONT = "12px system-ui, sans-serif";
const LABEL_SPACE = 14;
const EDGE = 8; // room for half of the last label
const NUMBER_SPACE = 30;
const MARK = 4; // no slow link is drawn smaller than this
const dark = matchMedia("(prefers-color-scheme: dark)");

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

class HeatMap {
  constructor(section, { names, links, palettes, pick }) {
    Object.assign(this, { names, links, palettes, pick });
    this.block = Math.ceil(names.length / MAX_CELLS);
    this.side = Math.ceil(names.length / this.block);
    this.healthy = links.statuses.indexOf("healthy");
    this.failed = links.statuses.indexOf("error");
    this.rail = -1;
    this.shares = links.efficiency.some((stored) => stored !== NO_SHARE) ? links.efficiency : links.fleet;
    this.zoom = 0;
    this.build(section);
    this.gather();
    this.draw();
    dark.addEventListener("change", () => this.draw());
    addEventListener("beforeprint", () => this.draw(this.palettes.light));
    addEventListener("afterprint", () => this.draw());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (width !== innerWidth) this.draw();
      width = innerWidth;
    });
  }

  build(section) {
    this.canvas = element("canvas", {
      tabindex: "0", role: "img",
      "aria-label": `Map of ${this.names.length} by ${this.names.length} hosts; the table of links has the same figures. Arrow keys move from cell to cell.`,
    });
    this.row = element("div", { class: "band", hidden: true });
    this.column = element("div", { class: "band", hidden: true });
    this.tip = element("div", { class: "tip", role: "status", hidden: true });
    this.frame = element("div", { class: "frame" }, this.canvas, this.row, this.column);
    this.scroller = element("div", { class: "scroll map" }, this.frame);
    this.holder = element("div", { class: "map-holder" }, this.scroller, this.tip);
    this.bar = element("span", { class: "scale" });
    section.append(element("div", { class: "toolbar" }, ...this.choices(), this.legend()), this.holder);
    section.hidden = false;
    this.canvas.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("click", () => this.choose());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  choices() {
    const rails = new Set(this.links.rail);
    const select = (label, options, changed) => {
      const box = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
      box.addEventListener("change", () => {
        changed(box.value);
        this.gather();
        this.draw();
      });
      return element("label", {}, `${label} `, box);
    };
    const controls = [];
    if (rails.size > 1) {
      const options = [["-1", "worst of all"], ...[...rails].sort((a, b) => a - b).map((rail) => [String(rail), String(rail)])];
      controls.push(select("Rail", options, (value) => (this.rail = Number(value))));
    }
    if (this.shares === this.links.efficiency) {
      const options = [["expected", "what is expected"], ["fleet", "the fleet's median"]];
      controls.push(select("Compared with", options, (value) =>
        (this.shares = value === "fleet" ? this.links.fleet : this.links.efficiency)));
    }
    for (const [label, step, name] of [["−", -1, "Smaller"], ["+", 1, "Larger"]]) {
      const button = element("button", { type: "button", class: "zoom", "aria-label": name }, label);
      button.addEventListener("click", () => {
        this.zoom += step;
        this.draw();
      });
      controls.push(button);
    }
    return controls;
  }

  legend() {
    this.errorKey = element("i");
    this.emptyKey = element("i");
    return element("div", { class: "legend" }, "0 %", this.bar, "100 %", this.errorKey, "failed", this.emptyKey, "not measured");
  }

  // The worst link of each cell, as its number + 1: of several rails, or of hosts that share a cell.
  gather() {
    const { links, side, block, shares } = this;
    this.cells = new Uint32Array(side * side);
    for (let link = 0; link < links.count; link++) {
      if (this.rail >= 0 && links.rail[link] !== this.rail) continue;
      const cell = Math.floor(links.source[link] / block) * side + Math.floor(links.target[link] / block);
      const other = this.cells[cell] - 1;
      if (other < 0 || this.isWorse(link, other, shares)) this.cells[cell] = link + 1;
    }
  }

  isWorse(one, other, shares) {
    const failed = (link) => this.links.status[link] === this.failed;
    if (failed(one) !== failed(other)) return failed(one);
    return shares[one] < shares[other];
  }

  colours(palette) {
    const { scale } = palette;
    return (value) => {
      const place = scale.findIndex(([stop]) => stop >= value);
      if (place === 0) return rgb(scale[0][1]);
      if (place < 0) return rgb(scale.at(-1)[1]);
      const [[low, from], [high, to]] = [scale[place - 1], scale[place]];
      const [start, end, part] = [rgb(from), rgb(to), (value - low) / (high - low)];
      return start.map((channel, at) => Math.round(channel + part * (end[at] - channel)));
    };
  }

  draw(palette = this.palettes[dark.matches ? "dark" : "light"]) {
    this.palette = palette;
    const context = this.canvas.getContext("2d");
    context.font = LABEL_FONT;
    const longest = Math.max(...this.names.map((name) => context.measureText(name).width));
    this.margin = Math.min(150, Math.ceil(longest) + 10);
    this.cell = this.cellSize();
    const size = this.margin + this.side * this.cell + EDGE;
    const ratio = Math.max(1, Math.min(devicePixelRatio || 1, MAX_CANVAS / size));
    Object.assign(this.canvas, { width: size * ratio, height: size * ratio });
    Object.assign(this.canvas.style, { width: `${size}px`, height: `${size}px` });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image(), this.margin, this.margin, this.side * this.cell, this.side * this.cell);
    this.drawMarks(context);
    this.drawNumbers(context);
    this.drawLabels(context);
    const stops = palette.scale.map(([stop, colour]) => `${colour} ${stop * 100}%`);
    this.bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.errorKey.style.background = palette.error;
    this.emptyKey.style.background = palette.empty;
  }

  cellSize() {
    const fit = Math.floor((this.scroller.clientWidth - this.margin - EDGE) / this.side);
    const fitting = Math.max(1, Math.min(MAX_CELL, fit));
    const largest = Math.max(fitting, Math.min(MAX_CELL, Math.floor((MAX_CANVAS - this.margin) / this.side)));
    const size = Math.round(fitting * 1.5 ** this.zoom + Math.sign(this.zoom) * 0.5);
    if (size < 1 || size > largest) this.zoom -= Math.sign(this.zoom);
    return Math.max(1, Math.min(largest, size));
  }

  // One dot a cell, to be enlarged.
  image() {
    const image = new ImageData(this.side, this.side);
    const dots = new DataView(image.data.buffer);
    const colour = this.colours(this.palette);
    const dot = ([red, green, blue]) => ((red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
    const shades = Array.from({ length: 201 }, (_, step) => dot(colour(step / 200)));
    const [empty, failed] = [dot(rgb(this.palette.empty)), dot(rgb(this.palette.error))];
    this.cells.forEach((number, cell) => {
      const value = number ? share(this.shares[number - 1]) : NaN;
      const shade = Number.isNaN(value) ? empty : shades[Math.min(200, Math.round(value * 200))];
      dots.setUint32(cell * 4, number && this.links.status[number - 1] === this.failed ? failed : shade);
    });
    const canvas = element("canvas", { width: this.side, height: this.side });
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  eachCell(visit) {
    this.cells.forEach((number, cell) => {
      if (number) visit(number - 1, this.margin + (cell % this.side) * this.cell, this.margin + Math.floor(cell / this.side) * this.cell);
    });
  }

  drawMarks(context) {
    if (this.cell >= MARK) return;
    const colour = this.colours(this.palette);
    const grow = (MARK - this.cell) / 2;
    this.eachCell((link, x, y) => {
      const status = this.links.status[link];
      if (status === this.healthy || status === this.links.statuses.indexOf("untested")) return;
      const value = share(this.shares[link]);
      const known = status !== this.failed && !Number.isNaN(value);
      context.fillStyle = known ? `rgb(${colour(value).join(" ")})` : this.palette.error;
      context.fillRect(x - grow, y - grow, MARK, MARK);
    });
  }

  drawNumbers(context) {
    if (this.cell < NUMBER_SPACE) return;
    const colour = this.colours(this.palette);
    context.font = `${Math.min(14, Math.floor(this.cell / 3))}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.eachCell((link, x, y) => {
      const failed = this.links.status[link] === this.failed;
      const value = share(this.shares[link]);
      if (!failed && Number.isNaN(value)) return;
      const [red, green, blue] = failed ? rgb(this.palette.error) : colour(value);
      context.fillStyle = red * 0.3 + green * 0.59 + blue * 0.11 > 140 ? "#14181f" : "#ffffff";
      context.fillText(failed ? "×" : (value * 100).toFixed(0), x + this.cell / 2, y + this.cell / 2);
    });
    context.strokeStyle = this.palette.paper;
    context.lineWidth = 1;
    for (let line = 0; line <= this.side; line++) {
      const at = this.margin + line * this.cell;
      context.strokeRect(at, this.margin, 0, this.side * this.cell);
      context.strokeRect(this.margin, at, this.side * this.cell, 0);
    }
  }

  drawLabels(context) {
    context.font = LABEL_FONT;
    context.fillStyle = this.palette.ink;
    context.textBaseline = "middle";
    const every = Math.ceil(LABEL_SPACE / this.cell);
    for (let place = 0; place < this.side; place += every) {
      const name = this.names[place * this.block];
      const at = this.margin + (place + 0.5) * this.cell;
      context.textAlign = "right";
      context.fillText(name, this.margin - 6, at, this.margin - 8);
      context.save();
      context.translate(at, this.margin - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(name, 0, 0, this.margin - 8);
      context.restore();
    }
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.margin) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.margin) / this.cell);
    const inside = Math.min(row, column) >= 0 && Math.max(row, column) < this.side;
    return inside ? [row, column] : null;
  }

  point(cell) {
    this.at = cell;
    this.tip.hidden = this.row.hidden = this.column.hidden = !cell;
    if (!cell) return;
    const [row, column] = cell;
    const [x, y] = [this.margin + column * this.cell, this.margin + row * this.cell];
    const end = this.margin + this.side * this.cell;
    const size = (length) => `${length}px`;
    Object.assign(this.row.style, { left: "0", top: size(y), width: size(end), height: size(this.cell) });
    Object.assign(this.column.style, { left: size(x), top: "0", width: size(this.cell), height: size(end) });
    this.tip.replaceChildren(...this.words(row, column).map((line, index) => element(index ? "div" : "strong", {}, line)));
    const left = x + this.cell + 12 - this.scroller.scrollLeft;
    const room = this.holder.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = size(Math.max(0, Math.min(left, room)));
    this.tip.style.top = size(y + this.cell + 12 - this.scroller.scrollTop);
  }

  words(row, column) {
    const { links, names, block } = this;
    const link = this.cells[row * this.side + column] - 1;
    if (link < 0) return [`${names[row * block]} → ${names[column * block]}`, row === column ? "the host itself" : "not measured"];
    const several = block > 1 ? `worst of ${block} × ${block} hosts: ` : "";
    const rail = new Set(links.rail).size > 1 ? ` · rail ${links.rail[link]}` : "";
    const lines = [`${several}${names[links.source[link]]} → ${names[links.target[link]]}${rail}`, links.statuses[links.status[link]]];
    if (links.error[link]) return [...lines, links.error_texts[links.error[link]]];
    const expected = links.expected_rates[links.expected[link]];
    lines.push(`${rate(links.measured[link])}${expected === null ? "" : ` of ${rate(expected)} expected (${percent(share(links.efficiency[link]))})`}`);
    lines.push(`${percent(share(links.fleet[link]))} of the fleet's median`);
    return lines;
  }

  choose() {
    const link = this.at ? this.cells[this.at[0] * this.side + this.at[1]] - 1 : -1;
    if (link >= 0) this.pick(this.names[this.links.source[link]], this.names[this.links.target[link]]);
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter") this.choose();
    if (!moves[event.key]) return;
    event.preventDefault();
    const [row, column] = this.at ?? [0, 0];
    const clamp = (value) => Math.max(0, Math.min(this.side - 1, value));
    this.point(this.at ? [clamp(row + moves[event.key][0]), clamp(column + moves[event.key][1])] : [0, 0]);
  }
}
