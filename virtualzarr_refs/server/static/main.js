// The page: the tree at the left, one node at the right; the address has the path of the node behind "#/".

import { chunkMap } from "./chunks.js";
import { element, table } from "./elements.js";
import { picture } from "./picture.js";
import { readJson, Refused, useToken } from "./server.js";

const access = document.getElementById("access");
const tree = document.getElementById("tree");
const main = document.getElementById("node");
let nodes = new Map();

async function start() {
  try {
    const root = await readJson("zarr.json");
    nodes = new Map([["", root], ...Object.entries(root.consolidated_metadata?.metadata ?? {})]);
  } catch (error) {
    access.hidden = !(error instanceof Refused && error.status === 401);
    if (access.hidden) main.replaceChildren(element("p", { className: "error" }, error.message));
    return;
  }
  access.hidden = true;
  tree.replaceChildren(element("ul", {}, link("", "/"), ...branches("")));
  show();
}

/** The items of all nodes right beneath a path. */
function branches(path) {
  const prefix = path === "" ? "" : `${path}/`;
  const names = [...nodes.keys()].filter((key) => key !== "" && key.startsWith(prefix));
  return names.filter((key) => !key.slice(prefix.length).includes("/")).map((key) => {
    const item = link(key, key.slice(prefix.length));
    if (nodes.get(key).node_type === "group") item.append(element("ul", {}, ...branches(key)));
    return item;
  });
}

function link(path, name) {
  const document_ = nodes.get(path);
  const facts = document_.node_type === "array" ? ` ${typeName(document_)} ${shapeOf(document_)}` : "";
  return element("li", {}, element("a", { href: `#/${encodeURI(path)}` }, name, element("small", {}, facts)));
}

function typeName({ data_type: type }) {
  return typeof type === "string" ? type : type.name;
}

function shapeOf({ shape, dimension_names: names }) {
  return `(${shape.map((size, axis) => (names?.[axis] ? `${names[axis]}: ${size}` : size)).join(", ")})`;
}

function chunksOf({ chunk_grid: grid }) {
  const lengths = grid.configuration.chunk_shape ?? grid.configuration.chunk_shapes;
  return `${grid.name}, ${JSON.stringify(lengths)}`;
}

function show() {
  const path = decodeURI(location.hash.replace(/^#\/?/, ""));
  for (const a of tree.querySelectorAll("a")) {
    if (a.getAttribute("href") === `#/${encodeURI(path)}`) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  const found = nodes.get(path);
  document.title = `/${path}`;
  const parts = found === undefined ? [element("p", { className: "error" }, "There is no such node.")] : describe(path, found);
  main.replaceChildren(element("h1", {}, `/${path}`), ...parts);
}

function describe(path, metadata) {
  const attributes = Object.entries(metadata.attributes ?? {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  const about = attributes.length ? [element("h2", {}, "Attributes"), table(attributes)] : [];
  if (metadata.node_type === "group") return about;
  const facts = table([
    ["Type", typeName(metadata)],
    ["Shape", shapeOf(metadata)],
    ["Chunks", chunksOf(metadata)],
    ["Codecs", metadata.codecs.map((codec) => codec.name).join(", ")],
    ["Fill value", JSON.stringify(metadata.fill_value)],
  ]);
  return [facts, element("h2", {}, "Values"), picture(path, metadata), element("h2", {}, "Where the chunks lie"), chunkMap(path), ...about];
}

access.addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(access.querySelector("input").value);
  start();
});
addEventListener("hashchange", show);
start();
