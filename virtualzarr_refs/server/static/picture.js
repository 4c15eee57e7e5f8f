// Values of an array, read by zarrita: a plane of its last two axes as an image, a line for one axis, else as text.

import { element } from "./elements.js";
import { headers } from "./server.js";

const MOST = 4096; // elements of an axis that are read
const SHOWN = 1024; // elements of an axis that are shown
const RAMP = [[13, 27, 76], [28, 84, 128], [42, 148, 135], [142, 196, 92], [250, 232, 120]];

/** A figure with a slider for each axis before the last two. */
export function picture(path, metadata) {
  const figure = element("figure", { id: "values" });
  const leading = Math.max(0, metadata.shape.length - 2);
  const place = element("div");
  const index = new Array(leading).fill(0);
  let turn = 0;
  const update = async () => {
    const mine = (turn += 1);
    const shown = await drawing(path, metadata, index).catch(failure);
    if (mine === turn) place.replaceChildren(...shown);
  };
  const sliders = index.map((_, axis) => slider(metadata, axis, (value) => {
    index[axis] = value;
    update();
  }));
  figure.append(...sliders, place);
  update();
  return figure;
}

function slider({ shape, dimension_names: names }, axis, change) {
  const number = element("output", {}, "0");
  const input = element("input", { type: "range", min: 0, max: Math.max(0, shape[axis] - 1), value: 0 });
  input.addEventListener("input", () => {
    number.textContent = input.value;
    change(Number(input.value));
  });
  return element("label", { className: "axis" }, names?.[axis] ?? `axis ${axis}`, input, number);
}

function failure(error) {
  return [element("p", { className: "error" }, `The values cannot be read: ${error.cause?.message ?? error.message}`)];
}

/** The parts of a figure; chunks that zarrita does not know are read as the server encodes them anew. */
async function drawing(path, metadata, index) {
  try {
    return await draw(location.origin, path, metadata, index);
  } catch {
    return await draw(`${location.origin}/.../core`, path, metadata, index);
  }
}

async function draw(url, path, metadata, index) {
  const zarr = await import("zarrita");
  const store = new zarr.FetchStore(url, { fetch: (request) => fetch(request, { headers: merged(request) }) });
  const escaped = path.split("/").map(encodeURIComponent).join("/");
  const array = await zarr.open.v3(zarr.root(store).resolve(escaped), { kind: "array" });
  if (array.shape.includes(0)) return [element("figcaption", {}, "no values")];
  const read = await zarr.get(array, selection(zarr, array.shape, index));
  if (array.shape.length === 0) return [element("output", {}, String(read))];
  if (Array.isArray(read.data)) return [element("pre", {}, read.data.slice(0, SHOWN).join("\n"))];
  const values = unpacked(read.data, metadata);
  return read.shape.length === 1 ? line(values) : plane(values, read.shape);
}

/** One element of each leading axis, and of the others as many, at even steps, as can be shown. */
function selection(zarr, shape, index) {
  return shape.map((size, axis) => {
    const most = Math.min(size, MOST);
    return axis < index.length ? index[axis] : zarr.slice(0, most, Math.ceil(most / SHOWN));
  });
}

function merged(request) {
  return { ...Object.fromEntries(request.headers), ...headers() };
}

/** Numbers as CF has them: without fill values, scaled. */
function unpacked(data, { attributes, data_type: type }) {
  const missing = new Set([attributes._FillValue, attributes.missing_value].flat().map((value) => number(value, type)));
  const scale = Number(attributes.scale_factor ?? 1);
  const offset = Number(attributes.add_offset ?? 0);
  const count = data.length;
  const take = typeof data.get === "function" ? (i) => Number(data.get(i)) : (i) => Number(data[i]);
  return Float64Array.from({ length: count }, (_, i) => {
    const value = take(i);
    return missing.has(value) ? NaN : value * scale + offset;
  });
}

/** A fill value as xarray writes it for Zarr v3: of floats, base64 of eight bytes. */
function number(value, type) {
  if (typeof value !== "string" || value === "NaN") return typeof value === "number" ? rounded(value, type) : NaN;
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    return rounded(new DataView(bytes.buffer).getFloat64(0, true), type);
  } catch {
    return NaN;
  }
}

function rounded(value, type) {
  return type === "float32" ? Math.fround(value) : value;
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

function plane(values, [rows, columns]) {
  const [low, high] = extent(values);
  const canvas = element("canvas", { width: columns, height: rows, className: "plane" });
  const scale = Math.min(768 / columns, 512 / rows);
  canvas.style.width = `${Math.max(2, Math.round(columns * scale))}px`;
  const image = new ImageData(columns, rows);
  values.forEach((value, i) => {
    if (Number.isFinite(value)) image.data.set([...ramp((value - low) / (high - low || 1)), 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return [canvas, legend(low, high)];
}

function line(values) {
  const [low, high] = extent(values);
  const [width, height] = [768, 200];
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.strokeStyle = `rgb(${ramp(0.45)})`;
  context.lineWidth = 1.5;
  let down = false;
  values.forEach((value, i) => {
    const x = (i / Math.max(1, values.length - 1)) * width;
    const y = height - 4 - ((value - low) / (high - low || 1)) * (height - 8);
    if (!Number.isFinite(value)) down = false;
    else if (down) context.lineTo(x, y);
    else context.moveTo(x, y);
    down = Number.isFinite(value);
  });
  context.stroke();
  return [canvas, legend(low, high)];
}

function legend(low, high) {
  if (low > high) return element("figcaption", {}, "missing values only");
  const bar = element("canvas", { width: 128, height: 1, className: "ramp" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 128; x += 1) {
    context.fillStyle = `rgb(${ramp(x / 127)})`;
    context.fillRect(x, 0, 1, 1);
  }
  return element("figcaption", {}, `${short(low)} `, bar, ` ${short(high)}`);
}

function short(value) {
  return Number(value.toPrecision(6)).toString();
}

function ramp(share) {
  const at = share * (RAMP.length - 1);
  const i = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[i].map((part, channel) => Math.round(part + (RAMP[i + 1][channel] - part) * (at - i)));
}
