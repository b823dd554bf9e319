import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
const file = path.join(root, 'deploy/monitoring/alerts.yml');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const alerts = (parse(readFileSync(file, 'utf8')) as { groups: { rules: Alert[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);

test('each alert leads to its own section of the runbook', () => {
  const headings = new Set([...read('docs/runbook.md').matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
  expect(alerts.length).toBeGreaterThan(20);
  expect(new Set(alerts.map(({ alert }) => alert))).toEqual(headings);
  for (const { alert, annotations, labels } of alerts) {
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^[A-Z].*\.$/),
      runbook_url: `docs/runbook.md#${alert.toLowerCase()}`,
    });
    expect(labels.severity).toMatch(/^(page|warn)$/);
  }
});

test('alerts ask only for metrics that processes have', () => {
  const sources = globSync('src/**/*.ts', { cwd: root })
    .filter((name) => !name.endsWith('.test.ts'))
    .map(read)
    .join('\n');
  const named = new Set(alerts.flatMap(({ expr }) => expr.match(/holdfast_\w+/g) ?? []));
  expect(named.size).toBeGreaterThan(20);
  const isThere = (name: string): boolean => sources.includes(`'${name.replace(/_(bucket|count|sum)$/, '')}'`);
  expect([...named].filter((name) => !isThere(name))).toEqual([]);
  // A name of a scrape job is the operator's choice.
  expect(alerts.filter(({ expr }) => /\bjob[=!]|\bup\b/.test(expr))).toEqual([]);
});

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

await describeWithTools('alerts, as Prometheus evaluates them', ['config-checks'], () => {
  /** Returns the alerts that fire ten minutes after the first value. */
  async function firing(series: readonly Series[]): Promise<string[]> {
    const { 'config-checks': checks } = await ensureToolchain({ only: ['config-checks'] });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const child = execFile(checks, ['alerts', file], (error, stdout) => (error ? reject(error) : resolve(stdout)));
    child.stdin?.end(JSON.stringify([{ series, at: 10 }]));
    const [fired] = JSON.parse(await promise) as [string[]];
    return fired;
  }
  const minutes = (count: number, value = 1): number[] => Array.from({ length: count }, () => value);
  /** A process as the scrape by annotations of pods sees it. */
  const running = (role: string, values = minutes(11)): Series => ({
    labels: { __name__: 'holdfast_build_info', job: 'kubernetes-pods', role, version: '0.1.0', instance: role },
    values,
  });

  test.each([
    ['a server', ['server']],
    ['a cluster', ['api', 'worker']],
  ])('are silent for %s that works, whatever the name of the scrape job', async (_, roles) => {
    expect(await firing(roles.map((role) => running(role)))).toEqual([]);
  });

  test.each([
    ['no process answers', [], ['HoldfastDown']],
    ['no API replica answers', [running('api', minutes(5)), running('worker')], ['HoldfastDown']],
    ['no worker answers', [running('api'), running('worker', minutes(5))], ['HoldfastNoWorker']],
  ])('say that %s', async (_, series, expected) => {
    expect(await firing(series)).toEqual(expected);
  });

  test('say that requests fail, and that jobs wait', async () => {
    const requests = (status: string, step: number): Series => ({
      labels: { __name__: 'holdfast_http_request_seconds_count', status, method: 'GET', route: '/' },
      values: Array.from({ length: 11 }, (_, minute) => minute * step),
    });
    const waiting = {
      labels: { __name__: 'holdfast_jobs_oldest_waiting_seconds', queue: 'small' },
      values: minutes(11, 31),
    };
    const all = [running('api'), running('worker'), requests('200', 100), requests('503', 10), waiting];
    expect(await firing(all)).toEqual(['HoldfastErrors', 'HoldfastJobsWaiting']);
    // Refusals of a read-only installation are no fault.
    const readOnly = { labels: { __name__: 'holdfast_read_only', instance: 'api' }, values: minutes(11) };
    expect(await firing([...all, readOnly])).toEqual(['HoldfastJobsWaiting']);
  });
});
