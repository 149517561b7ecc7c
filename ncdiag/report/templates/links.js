// Turns the packed columns back into typed arrays, and figures into words.

const NO_SHARE = 0xffff;
const SHARE_SCALE = 10000;
const NO_IDLE = 0xff;
const ARRAYS = { Float32: Float32Array, Uint32: Uint32Array, Uint16: Uint16Array, Uint8: Uint8Array };

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const links = { ...packed };
  let offset = 0;
  for (const [name, kind] of packed.columns) {
    links[name] = new ARRAYS[kind](buffer, offset, packed.count);
    offset += links[name].byteLength;
  }
  return links;
}

const share = (stored) => (stored === NO_SHARE ? NaN : stored / SHARE_SCALE);

function percent(value) {
  if (value === null || Number.isNaN(value)) return "–";
  return `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;
}

function rate(gbitPerS) {
  if (gbitPerS === null || Number.isNaN(gbitPerS)) return "–";
  const [value, unit] = gbitPerS < 1 ? [gbitPerS * 1000, "Mbit/s"] : [gbitPerS, "Gbit/s"];
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}

// Creates an element; text always becomes a text node, so nothing in it can be markup.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// The place of each name in natural order (h2 before h10), so that names sort as numbers.
function ranks(names) {
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const order = names.map((_, index) => index).sort((a, b) => compare(names[a], names[b]));
  const rank = new Uint32Array(names.length);
  order.forEach((index, place) => (rank[index] = place));
  return rank;
}
