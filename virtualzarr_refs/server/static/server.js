// Requests to the server that the page came from, with the token that it asks for, if any.

let token = null;

/** A request that was refused; `status` is the answer's. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function useToken(given) {
  token = given;
}

export function headers() {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** The parsed JSON under a path; each part of the path is escaped. */
export async function readJson(path) {
  const escaped = path.split("/").map(encodeURIComponent).join("/");
  const response = await fetch(`/${escaped}`, { headers: headers() });
  const body = await response.json();
  if (!response.ok) throw new Refused(response.status, body.error);
  return body;
}
