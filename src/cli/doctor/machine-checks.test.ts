import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseConfig } from '../../shared/platform/config/config.ts';
import { machineChecks } from './machine-checks.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-machine-'));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const stores = {
  HOLDFAST_DATABASE_URL: 'postgres://holdfast@db.example/holdfast',
  HOLDFAST_S3_BUCKET: 'holdfast',
};
const redis = { HOLDFAST_REDIS_URL: 'redis://redis.example' };
const isChecked = (settings: Readonly<Record<string, string>>): boolean =>
  machineChecks(parseConfig({ HOLDFAST_DATA_DIR: dataDir, ...settings })).some(({ name }) => name === 'data-directory');

test('the data directory is checked where something is in it, and not in a worker of a cluster', () => {
  expect(isChecked({})).toBe(true);
  // Its master keys.
  expect(isChecked(stores)).toBe(true);
  // A worker has none.
  expect(isChecked({ ...stores, ...redis })).toBe(false);
  writeFileSync(path.join(dataDir, 'master-keys'), '');
  expect(isChecked({ ...stores, ...redis })).toBe(true);
});

test('a public URL with a path is a warning that says what does not work', async () => {
  const settings = parseConfig({ HOLDFAST_DATA_DIR: dataDir, HOLDFAST_PUBLIC_URL: 'https://example.com/holdfast' });
  const check = machineChecks(settings).find(({ name }) => name === 'settings');
  expect(await check?.run()).toMatchObject({ status: 'warn', fix: expect.stringContaining('host name') });
});
