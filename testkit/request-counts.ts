/** One line of the server's request histogram. */
interface RequestCount {
  method: string;
  route: string;
  status: number;
  count: number;
}

/** Number of requests that the server has handled, by method, route and status. */
export class RequestCounts {
  readonly #rows: readonly RequestCount[];

  constructor(rows: readonly RequestCount[]) {
    this.#rows = rows;
  }

  /** Routes that end with `routeEnd`. Default: any status. */
  count(routeEnd: string, isWanted: (status: number) => boolean = () => true): number {
    const rows = this.#rows.filter(({ route, status }) => route.endsWith(routeEnd) && isWanted(status));
    return rows.reduce((sum, { count }) => sum + count, 0);
  }

  /** Requests with error responses (4xx and 5xx), as text for comparisons. */
  failures(isWanted: (status: number) => boolean = (status) => status >= 400): string[] {
    return this.#rows
      .filter(({ status }) => isWanted(status))
      .map(({ method, route, status, count }) => `${method} ${route} ${status} x${count}`);
  }
}

const line = /^holdfast_http_request_seconds_count\{(.*)\} (\d+)$/;

export async function readRequestCounts(url: string): Promise<RequestCounts> {
  const response = await fetch(`${url}/metrics`);
  if (!response.ok) throw new Error(`GET /metrics: ${response.status}`);
  const rows: RequestCount[] = [];
  for (const text of (await response.text()).split('\n')) {
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
