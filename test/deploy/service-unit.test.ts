import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../src/shared/platform/config/config.ts';

const root = path.join(import.meta.dirname, '../..');
const unit = readFileSync(path.join(root, 'deploy/linux/holdfast.service'), 'utf8');

test('the unit gives a shutdown the time of its settings, and says which they are', () => {
  const { drainMs, shutdownMs } = parseConfig({});
  const [, comment = '', seconds] = /((?:#.*\n)*)TimeoutStopSec=(\d+)\n/.exec(unit) ?? [];
  expect(Number(seconds) * 1000).toBeGreaterThanOrEqual(drainMs + shutdownMs);
  expect(comment).toContain(`HOLDFAST_DRAIN_SECONDS (${drainMs / 1000})`);
  expect(comment).toContain(`HOLDFAST_SHUTDOWN_SECONDS (${shutdownMs / 1000})`);
  const page = readFileSync(path.join(root, 'docs/vm.md'), 'utf8').replace(/\s+/g, ' ');
  expect(page).toContain(`\`TimeoutStopSec=${seconds}\``);
});
