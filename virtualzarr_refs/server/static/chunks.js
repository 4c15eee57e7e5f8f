// The chunk map: a cell for each chunk in C order of the grid, its colour that of its file, the darker the more bytes.

import { counted, element, inBytes } from "./elements.js";
import { readJson } from "./server.js";

const WIDTH = 768;
const GOLDEN_ANGLE = 137.508;

/** A figure that fills when the map has arrived. */
export function chunkMap(path) {
  const figure = element("figure", { id: "chunks" });
  readJson(`.../chunks/${path}`).then(
    (map) => figure.replaceChildren(...draw(map)),
    (error) => figure.replaceChildren(element("p", { className: "error" }, error.message)),
  );
  return figure;
}

function draw(map) {
  const summary = summarise(map);
  const caption = element("figcaption", {}, summary);
  if (map.chunks.length === 0) return [caption];
  const columns = columnsOf(map);
  const rows = Math.ceil(map.chunks.length / columns);
  const size = Math.max(2, Math.min(24, Math.floor(WIDTH / columns)));
  const canvas = element("canvas", { width: columns * size, height: rows * size });
  const context = canvas.getContext("2d");
  const largest = Math.max(1, ...map.chunks.map((chunk) => chunk?.[2] ?? 0));
  map.chunks.forEach((chunk, position) => {
    context.fillStyle = colour(chunk, largest);
    const gap = size > 4 ? 1 : 0;
    context.fillRect((position % columns) * size, Math.floor(position / columns) * size, size - gap, size - gap);
  });
  canvas.addEventListener("mousemove", (event) => {
    const scale = canvas.width / canvas.clientWidth;
    const position = Math.floor((event.offsetY * scale) / size) * columns + Math.floor((event.offsetX * scale) / size);
    caption.textContent = position < map.chunks.length ? describe(map, position) : summary;
  });
  canvas.addEventListener("mouseleave", () => (caption.textContent = summary));
  return [canvas, caption];
}

/** As many columns as the last axis has chunks, or about as many as rows where that makes a picture too thin. */
function columnsOf({ grid_shape: grid, chunks }) {
  const last = grid.at(-1) ?? 1;
  const square = Math.ceil(Math.sqrt(chunks.length * 3));
  return last * last * 16 < chunks.length || last > WIDTH / 2 ? Math.min(square, WIDTH / 2) : last;
}

function colour(chunk, largest) {
  if (chunk === null) return "rgb(128 128 128 / 20%)";
  if (chunk[0] === null) return "rgb(128 128 128)";
  return `hsl(${(210 + chunk[0] * GOLDEN_ANGLE) % 360} 60% ${75 - 40 * Math.sqrt(chunk[2] / largest)}%)`;
}

function describe({ grid_shape: grid, chunks, sources }, position) {
  const index = [];
  for (let axis = grid.length - 1, rest = position; axis >= 0; axis -= 1) {
    index.unshift(rest % grid[axis]);
    rest = Math.floor(rest / grid[axis]);
  }
  const [chunk, name] = [chunks[position], `chunk (${index.join(", ")})`];
  if (chunk === null) return `${name}: missing`;
  const [source, offset, length] = chunk;
  if (source === null) return `${name}: ${inBytes(length)}, kept inline`;
  return `${name}: ${inBytes(length)} of ${sources[source]}${offset === null ? ", as a shard" : `, at byte ${offset.toLocaleString("en")}`}`;
}

function summarise({ chunks, total, sources }) {
  const stored = chunks.reduce((sum, chunk) => sum + (chunk?.[2] ?? 0), 0);
  const missing = chunks.filter((chunk) => chunk === null).length;
  const shown = chunks.length < total ? `the first ${chunks.length.toLocaleString("en")} of ` : "";
  return `${shown}${counted(total, "chunk")}, ${missing} missing; ${inBytes(stored)} in ${counted(sources.length, "file")}`;
}
