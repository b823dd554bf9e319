import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { ensureToolchain } from '../../../testkit/toolchain/toolchain.ts';

/** The metrics of the processes that answer, by the URL of the process. */
export type Scrape = ReadonlyMap<string, ReadonlyMap<string, number>>;

const root = path.join(import.meta.dirname, '../../..');
const alertFile = path.join(root, 'deploy/monitoring/alerts.yml');
const scrapeMs = 20_000;
const minutes = [1, 2, 3, 4, 6, 8, 11, 16, 21];
/** So that an alert that waits for some minutes cannot fire at once. */
const calmMinutes = 20;
const growing = /_(total|count|sum|bucket)$/;

/**
 * Reads `/metrics` of these processes, as Prometheus does: one that does not answer in time has none. That is later than there, because a process of a
 * busy machine is not dead.
 */
export async function scrape(urls: readonly string[]): Promise<Scrape> {
  const found = new Map<string, ReadonlyMap<string, number>>();
  for (const url of urls) {
    const text = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(scrapeMs) }).then(
      (response) => response.text(),
      () => null,
    );
    if (text !== null) found.set(url, valuesOf(text));
  }
  return found;
}

function valuesOf(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, series, value] = /^(holdfast_\S*?(?:\{.*?\})?) (\S+)/.exec(line) ?? [];
    if (series !== undefined) values.set(series, Number(value));
  }
  return values;
}

/**
 * Returns the alerts that fire if an incident goes on as between the two scrapes, and after how many minutes. Before it, nothing happens for a while;
 * from then on, gauges have their last value, counters grow as fast as they did, and a process that does not answer has no metrics.
 */
export async function firingAlerts(before: Scrape, after: Scrape, elapsedMs: number): Promise<Map<string, number>> {
  const perMinute = 60_000 / elapsedMs;
  const all = [...before].flatMap(([instance, values]) =>
    [...values.keys(), ...(after.get(instance)?.keys() ?? [])].map((series) => ({ instance, series })),
  );
  const known = new Map(all.map((each) => [`${each.instance} ${each.series}`, each]));
  const courses = [...known.values()].map(({ instance, series }) => {
    const name = series.replace(/\{.*/, '');
    const first = before.get(instance)?.get(series);
    const last = after.get(instance)?.get(series);
    const slope = growing.test(name) ? Math.max(0, (last ?? 0) - (first ?? 0)) * perMinute : 0;
    return { labels: { __name__: name, instance, ...labelsOf(series) }, first: first ?? 0, last, slope };
  });
  const cases = minutes.map((at) => ({
    at: calmMinutes + at,
    series: courses.map(({ first, labels, last, slope }) => {
      const isCounter = growing.test(labels.__name__);
      const calm = Array.from({ length: calmMinutes + 1 }, () => first);
      const course = Array.from({ length: at }, (_, minute) =>
        isCounter ? first + (minute + 1) * slope : (last ?? 0),
      );
      return { labels, values: last === undefined ? calm : [...calm, ...course] };
    }),
  }));
  const fired = await evaluate(cases);
  const first = new Map<string, number>();
  for (const [at, names] of fired.entries())
    for (const name of names) if (!first.has(name)) first.set(name, minutes[at] as number);
  return first;
}

function labelsOf(series: string): Record<string, string> {
  return Object.fromEntries([...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

async function evaluate(cases: readonly object[]): Promise<string[][]> {
  const { 'config-checks': checks } = await ensureToolchain({ only: ['config-checks'] });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = execFile(checks, ['alerts', alertFile], { maxBuffer: 2 ** 26 }, (error, stdout) =>
    error ? reject(error) : resolve(stdout),
  );
  child.stdin?.end(JSON.stringify(cases));
  return JSON.parse(await promise) as string[][];
}

interface Rule {
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: { readonly runbook_url?: string };
}

function ruleOf(alert: string): Rule | undefined {
  const { groups } = parse(readFileSync(alertFile, 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules).find((each) => each.alert === alert);
}

/** The section of the runbook that this alert names, in one line; empty if there is none. */
export function runbookOf(alert: string): string {
  const [file, anchor] = ruleOf(alert)?.annotations?.runbook_url?.split('#') ?? [];
  if (file === undefined) return '';
  const sections = readFileSync(path.join(root, file), 'utf8').split(/^#+ /m);
  const isNamed = (section: string): boolean => section.split('\n', 1)[0]?.toLowerCase() === anchor;
  return (sections.find(isNamed) ?? '').replace(/\s+/g, ' ');
}

/** Titles of the panels that show a metric of this alert. */
export function panelsOf(alert: string): string[] {
  const metrics = new Set(ruleOf(alert)?.expr.match(/holdfast_\w+/g));
  const folder = path.join(root, 'deploy/monitoring/dashboards');
  const panels = globSync('*.json', { cwd: folder }).flatMap(
    (file) =>
      (
        JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as {
          panels: { title: string; targets?: { expr: string }[] }[];
        }
      ).panels,
  );
  return panels
    .filter(({ targets = [] }) =>
      targets.some(({ expr }) => expr.match(/holdfast_\w+/g)?.some((name) => metrics.has(name))),
    )
    .map(({ title }) => title);
}
