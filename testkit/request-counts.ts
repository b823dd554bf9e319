/** One line of the server's request histogram. */
interface RequestCount {
  method: string;
  route: string;
  status: number;
  count: number;
}

/** How many requests the server has answered, by route. */
export class RequestCounts {
  readonly #rows: readonly RequestCount[];

  constructor(rows: readonly RequestCount[]) {
    this.#rows = rows;
  }

  /** Requests whose route ends so, by default with any status. */
  count(routeEnd: string, isWanted: (status: number) => boolean = () => true): number {
    const rows = this.#rows.filter(({ route, status }) => route.endsWith(routeEnd) && isWanted(status));
    return rows.reduce((sum, { count }) => sum + count, 0);
  }

  /** Requests that were answered with 4xx or 5xx, as text for a comparison. */
  failures(isWanted: (status: number) => boolean = (status) => status >= 400): string[] {
    return this.#rows
      .filter(({ status }) => isWanted(status))
      .map(({ method, route, status, count }) => `${method} ${route} ${status} x${count}`);
  }
}

const line = /^holdfast_http_request_seconds_count\{(.*)\} (\d+)$/;

/** Reads the counts from the metrics at the management URL. */
export async function readRequestCounts(url: string): Promise<RequestCounts> {
  const answer = await fetch(`${url}/metrics`);
  if (!answer.ok) throw new Error(`GET /metrics: ${answer.status}`);
  const rows: RequestCount[] = [];
  for (const text of (await answer.text()).split('\n')) {
    const [, labelText, count] = line.exec(text) ?? [];
    if (labelText === undefined) continue;
    const labels = new Map([...labelText.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
    rows.push({
      method: labels.get('method') ?? '',
      route: labels.get('route') ?? '',
      status: Number(labels.get('status')),
      count: Number(count),
    });
  }
  return new RequestCounts(rows);
}
