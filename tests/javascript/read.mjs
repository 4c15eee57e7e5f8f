// Reads arrays with zarrita: node read.mjs LIBRARY STORE PATH...
// LIBRARY is the file of zarrita's entry point, STORE the url of a hierarchy. Writes one JSON object a line: the type,
// the shape and the values of each array, as base64 of their bytes or, of a scalar, as a number; or why it cannot be read.
import { pathToFileURL } from "node:url";

const [library, store, ...paths] = process.argv.slice(2);
const zarr = await import(pathToFileURL(library));
const root = zarr.root(new zarr.FetchStore(store));

async function read(path) {
  const array = await zarr.open.v3(root.resolve(path), { kind: "array" });
  const values = await zarr.get(array, array.shape.map(() => null));
  const facts = { path, type: array.dtype };
  if (array.shape.length === 0) return { ...facts, value: values };
  const { buffer, byteOffset, byteLength } = values.data;
  return { ...facts, shape: values.shape, bytes: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
}

for (const path of paths) {
  const result = await read(path).catch((error) => ({ path, error: String(error.cause ?? error) }));
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
