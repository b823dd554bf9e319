import { Gauge, type Registry } from 'prom-client';
import { withTimeout } from '../timeout/with-timeout.ts';

/** Other metrics must not wait for a database that is down. */
const queryLimitMs = 1_000;
/** The pause after a failure, unless the gauge's own interval is shorter. */
const retryMs = 60_000;
const noResponse = (): Error => new Error(`No response within ${queryLimitMs} ms`);

/** Joins a run that continues after the time limit: otherwise, each scrape of a slow database would take more connections. */
export function oneAtATime<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => {
    running ??= read().finally(() => {
      running = null;
    });
    return running;
  };
}

/** Keeps a late result. Otherwise, a query that always takes longer would never have one, just when there is much to count. */
function keepingResult<T>(read: () => Promise<T>) {
  let latest: T | null = null;
  const ask = oneAtATime(async () => {
    latest = await read();
  });
  return {
    ask: (): Promise<boolean> =>
      withTimeout(ask(), queryLimitMs, noResponse).then(
        () => true,
        () => false,
      ),
    /** A result is taken once. */
    take: (): T | null => {
      const taken = latest;
      latest = null;
      return taken;
    },
  };
}

export function gaugesOf(registers: Registry[]) {
  return {
    gaugeBy: (name: string, help: string, label: string, read: () => Readonly<Record<string, number>>) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [key, value] of Object.entries(read())) this.set({ [label]: key }, value);
        },
      }),
    /** Queries at most every `everyMs`. Values stay in between, and while the database responds slowly. */
    gaugeByQuery: (
      name: string,
      help: string,
      label: string,
      read: () => Promise<Readonly<Record<string, number>>>,
      everyMs = 0,
    ) =>
      gaugeByQuery({ name, help, labelNames: [label], registers, everyMs }, async (gauge) => {
        const values = Object.entries(await read());
        return () => {
          for (const [key, value] of values) gauge.set({ [label]: key }, value);
        };
      }),
    /** Unlike `gaugeByQuery`, drops series that are no longer returned. */
    gaugeByLabels: <L extends string>(
      name: string,
      help: string,
      labelNames: readonly L[],
      read: () => Promise<readonly { readonly labels: Readonly<Record<L, string>>; readonly value: number }[]>,
      everyMs = 0,
    ) =>
      gaugeByQuery({ name, help, labelNames, registers, everyMs }, async (gauge) => {
        const values = await read();
        return () => {
          gauge.reset();
          for (const { labels, value } of values) gauge.set(labels, value);
        };
      }),
    gauge: (name: string, help: string, read: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      }),
    /** The gauges share a query, at most every `everyMs`, and are absent until the first response. */
    gaugesByQuery: <K extends string>(
      gauges: Readonly<Record<K, { readonly name: string; readonly help: string }>>,
      read: () => Promise<Readonly<Record<K, number>>>,
      everyMs = 0,
    ) => {
      let readAt = Number.NEGATIVE_INFINITY;
      let reading: Promise<void> | null = null;
      const { ask, take } = keepingResult(read);
      const set = (): void => {
        const values = take();
        if (values) for (const key of keys) created[key].set(values[key]);
      };
      const readOnce = async (): Promise<void> => {
        readAt = performance.now();
        if (!(await ask())) readAt -= Math.max(0, everyMs - retryMs);
        set();
      };
      // The gauges of one scrape are collected at the same time.
      const collect = async (): Promise<void> => {
        set();
        if (reading === null && performance.now() - readAt < everyMs) return;
        reading ??= readOnce().finally(() => {
          reading = null;
        });
        await reading;
      };
      const keys = Object.keys(gauges) as K[];
      const created = Object.fromEntries(
        keys.map((key) => [key, new Gauge({ ...gauges[key], registers, collect })]),
      ) as Record<K, Gauge>;
      for (const key of keys) created[key].remove();
    },
  };
}

interface QueriedGauge<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly L[];
  readonly registers: Registry[];
  readonly everyMs: number;
}

/** `read` returns a function that sets the values. If the query took too long, the next scrape calls this function. */
function gaugeByQuery<L extends string>(
  { everyMs, labelNames, ...options }: QueriedGauge<L>,
  read: (gauge: Gauge<L>) => Promise<() => void>,
): Gauge<L> {
  let readAt = Number.NEGATIVE_INFINITY;
  const gauge: Gauge<L> = new Gauge({
    ...options,
    labelNames: [...labelNames],
    async collect() {
      take()?.();
      if (performance.now() - readAt < everyMs) return;
      readAt = performance.now();
      if (!(await ask())) readAt -= Math.max(0, everyMs - retryMs);
      take()?.();
    },
  });
  const { ask, take } = keepingResult(() => read(gauge));
  return gauge;
}
