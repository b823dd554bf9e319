import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { type Dashboard, queriesOf } from '../support/dashboards.ts';
import { describeWithTools } from '../support/tools.ts';

const folder = path.join(import.meta.dirname, '../../deploy/monitoring/dashboards');
const dashboards = readdirSync(folder).map(
  (name) => [name, JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Dashboard] as const,
);

test('each dashboard has its own id, and panels that do not overlap', () => {
  expect(dashboards.map(([name, { uid }]) => `${uid}.json` === `holdfast-${name}`)).toEqual(dashboards.map(() => true));
  for (const [name, { panels }] of dashboards) {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Map<string, string>();
    for (const { gridPos, title, type } of panels) {
      expect(`${name} ${title}: ends at ${Math.min(gridPos.x + gridPos.w, 24)}`).toBe(
        `${name} ${title}: ends at ${gridPos.x + gridPos.w}`,
      );
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x} ${y}`)).toBeUndefined();
          taken.set(`${x} ${y}`, title);
        }
      expect(['row', 'timeseries']).toContain(type);
    }
  }
});

await describeWithTools('queries of dashboards', ['config-checks'], () => {
  /** Prometheus' own parser reads them as rules that record. */
  async function parse(queries: readonly string[]): Promise<void> {
    const { 'config-checks': checks } = await ensureToolchain({ only: ['config-checks'] });
    const temporary = mkdtempSync(path.join(tmpdir(), 'holdfast-dashboards-'));
    try {
      const file = path.join(temporary, 'rules.yml');
      const rules = queries.map((expr, number) => ({ record: `panel:${number}`, expr }));
      writeFileSync(file, stringify({ groups: [{ name: 'panels', rules }] }));
      await new Promise<void>((resolve, reject) => {
        const child = execFile(checks, ['alerts', file], (error) => (error ? reject(error) : resolve()));
        child.stdin?.end('[]');
      });
    } finally {
      rmSync(temporary, { recursive: true });
    }
  }

  test('are accepted by Prometheus', async () => {
    const queries = dashboards.flatMap(([, dashboard]) => queriesOf(dashboard));
    expect(queries.length).toBeGreaterThan(60);
    await parse(queries);
    await expect(parse(['sum by (status (holdfast_connections)'])).rejects.toThrow('parse error');
  });
});
